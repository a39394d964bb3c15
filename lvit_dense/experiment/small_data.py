"""Settings that make the shipped configs train on a small data set in minutes: own data, small heads, short schedules.

They are what a user with own data in ImageFolder, COCO or ADE20K layout would put into a config file of theirs.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

Options = dict[str, Any]


class Classes(NamedTuple):
    """Names in label order and a colour for each."""

    names: Sequence[str]
    palette: Sequence[tuple[int, int, int]]

    def metainfo(self) -> Options:
        """As mmdet and mmseg data sets want it."""
        return {"classes": tuple(self.names), "palette": [tuple(colour) for colour in self.palette]}


class Schedule(NamedTuple):
    """Length in epochs or iterations, warm-up in the same unit, peak learning rate and pictures per step."""

    length: int
    warmup: int
    lr: float
    batch: int


def loader(batch: int, dataset: Options, **more: Any) -> Options:
    """A dataloader in the main process: worker processes cost more than they save on small pictures."""
    return {"batch_size": batch, "num_workers": 0, "persistent_workers": False, "dataset": dataset, **more}


def cosine(schedule: Schedule, by_epoch: bool) -> list[Options]:
    """Linear warm-up, then cosine to a hundredth of the peak."""
    warmup, length = schedule.warmup, schedule.length
    common: Options = {"by_epoch": by_epoch, **({"convert_to_iter_based": True} if by_epoch else {})}
    return [
        {"type": "LinearLR", "start_factor": 0.01, "begin": 0, "end": warmup, **common},
        {
            "type": "CosineAnnealingLR",
            "T_max": length - warmup,
            "eta_min": schedule.lr / 100,
            "begin": warmup,
            "end": length,
            **common,
        },
    ]


def hooks(schedule: Schedule) -> Options:
    """Log often, save three times, keep the last: the tables take the end of training, not the best of it."""
    interval = max(1, schedule.length // 3)
    return {"logger": {"interval": 10}, "checkpoint": {"interval": interval, "save_best": None, "max_keep_ckpts": 1}}


def imagenet(root: Path, classes: Classes, side: int, schedule: Schedule, crop: tuple[float, float]) -> Options:
    """ImageNet stage on ``root/{train,val}/<class>/*`` with pictures of ``side`` pixels."""
    train = {"root": str(root), "transform": {"input_size": side, "scale": crop}}
    val = {"root": str(root), "transform": {"input_size": side, "crop_pct": 1.0}}
    return {
        "model": {"num_classes": len(classes.names), "backbone": {"img_size": side}},
        "train_dataloader": loader(schedule.batch, train),
        "val_dataloader": loader(schedule.batch, val),
        "test_dataloader": loader(schedule.batch, val),
        "train_cfg": {"max_epochs": schedule.length, "val_interval": schedule.length},
        "optim_wrapper": {"optimizer": {"lr": schedule.lr}},
        "param_scheduler": cosine(schedule, by_epoch=True),
        "auto_scale_lr": {"base_batch_size": schedule.batch},
        "default_hooks": hooks(schedule),
    }


def coco(
    root: Path, classes: Classes, schedule: Schedule, scale: tuple[int, int], width: int, channels: int,
    names: dict[str, dict[str, str]],
) -> Options:  # fmt: skip
    """Mask R-CNN on COCO data, with heads of ``channels`` channels and few proposals.

    Args:
        scale: longest and shortest side of the resized picture in pixels.
        width: channels of the ViT.
        names: per split ``train`` / ``val``: ``ann_file`` and ``img`` folder below ``root``.
    """
    resize = {"type": "Resize", "scale": scale, "keep_ratio": True}
    annotations = {"type": "LoadAnnotations", "with_bbox": True, "with_mask": True}
    meta = ("img_id", "img_path", "ori_shape", "img_shape", "scale_factor")
    pipelines = {
        "train": [
            {"type": "LoadImageFromFile"},
            annotations,
            resize,
            {"type": "RandomFlip", "prob": 0.5},
            {"type": "PackDetInputs"},
        ],
        "val": [{"type": "LoadImageFromFile"}, resize, annotations, {"type": "PackDetInputs", "meta_keys": meta}],
    }
    data = {
        split: {
            "data_root": f"{root}/",
            "ann_file": names[split]["ann_file"],
            "data_prefix": {"img": names[split]["img"]},
            "metainfo": classes.metainfo(),
            "pipeline": pipelines[split],
        }
        for split in names
    }
    data["train"]["filter_cfg"] = {"filter_empty_gt": True, "min_size": 8}
    tta = [
        [{**resize, "scale": tuple(int(ratio * side) for side in scale)} for ratio in (0.75, 1.0, 1.25)],
        [{"type": "RandomFlip", "prob": p} for p in (0.0, 1.0)],
        [annotations],
        [{"type": "PackDetInputs", "meta_keys": (*meta, "flip", "flip_direction")}],
    ]
    evaluator = {"ann_file": str(root / names["val"]["ann_file"])}
    return {
        "model": _small_mask_rcnn(len(classes.names), width, channels),
        "train_dataloader": loader(schedule.batch, data["train"]),
        "val_dataloader": loader(1, data["val"]),
        "test_dataloader": loader(1, data["val"]),
        "val_evaluator": evaluator,
        "test_evaluator": evaluator,
        "tta_pipeline": [{"type": "LoadImageFromFile"}, {"type": "TestTimeAug", "transforms": tta}],
        "train_cfg": {"max_epochs": schedule.length, "val_interval": schedule.length},
        "optim_wrapper": {"optimizer": {"lr": schedule.lr}},
        "param_scheduler": cosine(schedule, by_epoch=True),
        "auto_scale_lr": {"base_batch_size": schedule.batch},
        "default_hooks": hooks(schedule),
    }


def _small_mask_rcnn(num_classes: int, width: int, channels: int) -> Options:
    proposals = {"nms_pre": 400, "max_per_img": 200}
    return {
        "neck": {"in_channels": [width] * 4, "out_channels": channels},
        "rpn_head": {"in_channels": channels, "feat_channels": channels},
        "roi_head": {
            "bbox_roi_extractor": {"out_channels": channels},
            "mask_roi_extractor": {"out_channels": channels},
            "bbox_head": {"in_channels": channels, "fc_out_channels": 4 * channels, "num_classes": num_classes},
            "mask_head": {"in_channels": channels, "conv_out_channels": channels, "num_classes": num_classes},
        },
        "train_cfg": {"rpn_proposal": proposals, "rcnn": {"sampler": {"num": 32}}},
        "test_cfg": {"rpn": proposals, "rcnn": {"max_per_img": 50}},
    }


def ade20k(
    root: Path, classes: Classes, schedule: Schedule, short_side: int, crop: int, width: int, channels: int,
    test_mode: str = "slide",
) -> Options:  # fmt: skip
    """UperNet on ADE20K-style data, with heads of ``channels`` channels, crops of ``crop`` pixels.

    Args:
        short_side: pixels of the shorter side at ratio 1; the six test ratios are multiples of it.
        width: channels of the ViT.
        test_mode: ``slide`` (windows of ``crop`` pixels, as the recipe) or ``whole`` (several times faster).
    """
    scale = (4 * short_side, short_side)
    ratios = (0.5, 0.75, 1.0, 1.25, 1.5, 1.75)
    tta = [
        [{"type": "Resize", "scale": tuple(int(r * side) for side in scale), "keep_ratio": True} for r in ratios],
        [{"type": "RandomFlip", "prob": p, "direction": "horizontal"} for p in (0.0, 1.0)],
        [{"type": "LoadAnnotations"}],
        [{"type": "PackSegInputs"}],
    ]
    train = [
        {"type": "LoadImageFromFile"},
        {"type": "LoadAnnotations"},
        {"type": "RandomResize", "scale": scale, "ratio_range": (0.5, 2.0), "keep_ratio": True},
        {"type": "RandomCrop", "crop_size": (crop, crop), "cat_max_ratio": 0.75},
        {"type": "RandomFlip", "prob": 0.5},
        {"type": "PhotoMetricDistortion"},
        {"type": "PackSegInputs"},
    ]
    val = [
        {"type": "LoadImageFromFile"},
        {"type": "Resize", "scale": scale, "keep_ratio": True},
        {"type": "LoadAnnotations"},
        {"type": "PackSegInputs"},
    ]
    common = {
        "type": "BaseSegDataset",  # ADE20KDataset takes no class names but its own
        "data_root": str(root),
        "metainfo": classes.metainfo(),
        "img_suffix": ".jpg",
        "seg_map_suffix": ".png",
        "reduce_zero_label": True,
    }
    data = {"train": {**common, "pipeline": train}, "val": {**common, "pipeline": val}}
    return {
        "model": _small_upernet(len(classes.names), width, channels, crop, test_mode),
        "train_dataloader": loader(schedule.batch, data["train"]),
        "val_dataloader": loader(1, data["val"]),
        "test_dataloader": loader(1, data["val"]),
        "tta_pipeline": [{"type": "LoadImageFromFile"}, {"type": "TestTimeAug", "transforms": tta}],
        "train_cfg": {"max_iters": schedule.length, "val_interval": schedule.length},
        "optim_wrapper": {"optimizer": {"lr": schedule.lr}},
        "param_scheduler": cosine(schedule, by_epoch=False),
        "auto_scale_lr": {"base_batch_size": schedule.batch},
        "default_hooks": hooks(schedule),
    }


def _small_upernet(num_classes: int, width: int, channels: int, crop: int, test_mode: str) -> Options:
    stride = crop * 2 // 3
    return {
        "data_preprocessor": {"size": (crop, crop)},
        "decode_head": {"in_channels": [width] * 4, "channels": channels, "num_classes": num_classes},
        "auxiliary_head": {"in_channels": width, "channels": channels // 2, "num_classes": num_classes},
        "test_cfg": {"mode": test_mode, "crop_size": (crop, crop), "stride": (stride, stride)},
    }
