"""The shipped configs through mmengine's Runner on a few generated pictures: data, evaluation, hooks, TTA."""

import shutil
from pathlib import Path

import pytest
import torch
from mmengine.runner import Runner
from PIL import Image

from lvit_dense.datasets.demo import CLASSES, SEGMENTATION_CLASSES, DemoSizes, write_demo
from tests.dense.conftest import tiny_config

SCENE = (96, 64)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    root = tmp_path_factory.mktemp("demo") / "data"
    write_demo(root, DemoSizes(train_pictures=1, val_pictures=1, train_scenes=4, val_scenes=2, picture=32, scene=SCENE))
    return root


def shrink(node, factor):
    """Divide the scale of every Resize of a pipeline."""
    if isinstance(node, dict):
        if node.get("type") in ("Resize", "RandomResize"):
            node["scale"] = tuple(max(1, round(side / factor)) for side in node["scale"])
        if node.get("type") == "RandomCrop":
            node["crop_size"] = (64, 64)
        node = list(node.values())
    if isinstance(node, (list, tuple)):
        for entry in node:
            shrink(entry, factor)


def configure(task, data, work_dir, tta=False):
    cfg = tiny_config(task, "relu")
    detection = task == "maskrcnn"
    root = data / ("coco" if detection else "ade/ADEChallengeData2016")
    classes = CLASSES if detection else SEGMENTATION_CLASSES
    for name in ("train_dataloader", "val_dataloader", "test_dataloader"):
        loader = cfg[name]
        loader.update(num_workers=0, persistent_workers=False)
        dataset = loader.dataset
        dataset.update(
            data_root=str(root), metainfo=dict(classes=classes, palette=[(i, i, i) for i in range(len(classes))])
        )
        if not detection:  # ADE20KDataset takes subsets of its own classes only
            dataset.update(type="BaseSegDataset", img_suffix=".jpg", seg_map_suffix=".png", reduce_zero_label=True)
        if tta and name == "test_dataloader":
            dataset.pipeline = cfg.tta_pipeline
        shrink(dataset.pipeline, 800 / SCENE[1] if detection else 512 / SCENE[1])
    if detection:
        for evaluator in (cfg.val_evaluator, cfg.test_evaluator):
            evaluator.ann_file = str(root / "annotations/instances_val2017.json")
        cfg.merge_from_dict(
            {"model.roi_head.bbox_head.num_classes": len(classes), "model.roi_head.mask_head.num_classes": len(classes)}
        )
        cfg.train_cfg.max_epochs = 1
    else:
        cfg.merge_from_dict(
            {
                "model.decode_head.num_classes": len(classes),
                "model.auxiliary_head.num_classes": len(classes),
                "train_cfg.max_iters": 2,
                "train_cfg.val_interval": 2,
                "default_hooks.checkpoint.interval": 1,
            }
        )
    cfg.update(work_dir=str(work_dir), experiment_name=work_dir.name, launcher="none")
    if tta:
        cfg.model = dict(**cfg.tta_model, module=cfg.model)
    return cfg


def log_of(work_dir: Path) -> str:
    return "".join(path.read_text() for path in work_dir.rglob("*.log"))


def test_maskrcnn_trains_evaluates_and_tests_with_views_and_masks(data, tmp_path):
    runner = Runner.from_cfg(configure("maskrcnn", data, tmp_path / "det"))
    runner.train()
    scalars = runner.message_hub.log_scalars
    single = {key: scalars[f"val/coco/{key}"].current() for key in ("bbox_mAP", "segm_mAP", "segm_mAP_75")}
    assert all(-1 <= value <= 1 for value in single.values())
    checkpoint = tmp_path / "det" / "epoch_1.pth"
    assert (tmp_path / "det" / "last_checkpoint").read_text() == str(checkpoint)
    assert len(list((tmp_path / "det").glob("best_coco_bbox_mAP*.pth"))) == 1

    cfg = configure("maskrcnn", data, tmp_path / "det_tta", tta=True)
    cfg.load_from = str(checkpoint)
    metrics = Runner.from_cfg(cfg).test()
    assert set(single) <= {key.removeprefix("coco/") for key in metrics}
    log = log_of(tmp_path / "det_tta")
    assert "test with 6 views a picture: 48x72, 48x72 flipped, 64x96, 64x96 flipped, 80x120, 80x120 flipped" in log


def test_upernet_trains_on_one_process_and_tests_with_views(data, tmp_path):
    work_dir = tmp_path / "seg"
    Runner.from_cfg(configure("upernet", data, work_dir)).train()
    assert "SyncBatchNorm (SyncBN) layers in the model will be automatically reverted to BatchNormXd" in log_of(
        work_dir
    )
    cfg = configure("upernet", data, tmp_path / "seg_tta", tta=True)
    cfg.load_from = str(work_dir / "iter_2.pth")
    metrics = Runner.from_cfg(cfg).test()
    assert 0 <= metrics["mIoU"] <= 100
    assert "test with 12 views a picture: 32x48, 32x48 flipped" in log_of(tmp_path / "seg_tta")


def test_upernet_with_a_batch_of_one_stops_before_the_first_step(data, tmp_path):
    cfg = configure("upernet", data, tmp_path / "one")
    cfg.train_dataloader.batch_size = 1
    runner = Runner.from_cfg(cfg)
    with pytest.raises(ValueError, match=r"decode_head\.psp_modules\.0\.1\.bn normalises one value per picture"):
        runner.train()
    assert runner.iter == 0


@pytest.mark.parametrize("task", ["maskrcnn", "upernet"])
def test_ema_accumulation_clipping_recomputation_and_frozen_stages_together(data, tmp_path, task):
    """Trains, resumes, and ends as the unbroken run does; what is frozen keeps its first values."""
    detection = task == "maskrcnn"

    def run(folder, length, resume=False):
        cfg = configure(task, data, tmp_path / folder)
        cfg.model.backbone.update(with_cp=True, frozen_stages=2, drop_path_rate=0.3)
        cfg.optim_wrapper.update(accumulative_counts=2, clip_grad=dict(max_norm=1.0))
        cfg.optim_wrapper.optimizer.lr = 1e-2
        cfg.param_scheduler = []
        cfg.custom_hooks.append(dict(type="EMAHook", momentum=0.1))
        cfg.merge_from_dict({"train_cfg.max_epochs" if detection else "train_cfg.max_iters": length})
        cfg.update(resume=resume, randomness=dict(seed=0), experiment_name=f"{folder}_{length}", val_dataloader=None)
        cfg.update(val_cfg=None, val_evaluator=None)
        cfg.default_hooks.checkpoint.interval = length
        Runner.from_cfg(cfg).train()
        name = f"{'epoch' if detection else 'iter'}_{length}.pth"
        return torch.load(tmp_path / folder / name, weights_only=False)

    whole = run("whole", 4)
    first = run("broken", 2)
    last = run("broken", 4, resume=True)
    assert whole["state_dict"].keys() == last["state_dict"].keys()
    for part in ("state_dict", "ema_state_dict"):
        assert all(torch.equal(value, last[part][name]) for name, value in whole[part].items())
    changed = {n for n, v in last["state_dict"].items() if not torch.equal(v, first["state_dict"][n])}
    assert not any(n.startswith(("backbone.vit.blocks.0.", "backbone.vit.blocks.1.")) for n in changed)
    assert "backbone.vit.blocks.2.mlp.fc1.weight" in changed


@pytest.mark.parametrize("task", ["maskrcnn", "upernet"])
def test_a_guessed_save_best_stops_before_the_first_step(data, tmp_path, task):
    cfg = configure(task, data, tmp_path / task)
    cfg.default_hooks.checkpoint.save_best = "bbox_mAP" if task == "maskrcnn" else "mIOU"
    runner = Runner.from_cfg(cfg)
    with pytest.raises(ValueError, match=r"did you mean '(coco/bbox_mAP|mIoU)'"):
        runner.train()
    assert runner.iter == 0


def resized(data, folder, **sizes):
    """The ADE20K data with pictures of other sizes (width, height), in turn, by split."""
    root = folder / "data"
    shutil.copytree(data, root)
    for split, wanted in sizes.items():
        for kind in ("images", "annotations"):
            files = sorted((root / "ade/ADEChallengeData2016" / kind / split).iterdir())
            for file, size in zip(files, wanted * len(files)):
                Image.open(file).resize(size, Image.Resampling.NEAREST).save(file)
    return root


def test_pictures_smaller_than_the_crop_and_a_validation_batch_of_two(data, tmp_path):
    small = [(101, 37), (19, 33), (160, 120)]
    cfg = configure("upernet", resized(data, tmp_path, training=small, validation=[(80, 60)]), tmp_path / "run")
    cfg.val_dataloader.batch_size = 2
    runner = Runner.from_cfg(cfg)
    runner.train()
    assert runner.iter == 2 and 0 <= runner.message_hub.get_scalar("val/mIoU").current() <= 100


def test_a_validation_batch_of_pictures_that_the_pipeline_makes_equal(data, tmp_path):
    """The sizes of the files differ, those of the inputs do not."""
    cfg = configure("upernet", data, tmp_path / "run")
    cfg.val_dataloader.batch_size = 2
    (resize,) = [step for step in cfg.val_dataloader.dataset.pipeline if step.type == "Resize"]
    resize.update(scale=(80, 64), keep_ratio=False)
    runner = Runner.from_cfg(cfg)
    runner.train()
    assert runner.iter == 2 and 0 <= runner.message_hub.get_scalar("val/mIoU").current() <= 100


def test_a_validation_batch_of_several_sizes_is_refused_before_the_first_step(data, tmp_path):
    cfg = configure("upernet", data, tmp_path / "run")
    cfg.val_dataloader.batch_size = 2
    runner = Runner.from_cfg(cfg)
    with pytest.raises(ValueError, match=r"val_dataloader\.batch_size=2, but .* such as 64x96 and 96x64"):
        runner.train()
    assert runner.iter == 0
