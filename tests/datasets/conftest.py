"""A few scenes in all three layouts, configs that read them, and ways to break them."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from mmengine.config import Config
from PIL import Image

from lvit_dense.datasets.checks import check
from lvit_dense.datasets.demo import CLASSES, SEGMENTATION_CLASSES, DemoSizes, write_demo


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    root = tmp_path_factory.mktemp("sound") / "demo"
    write_demo(root, DemoSizes(train_pictures=2, val_pictures=2, train_scenes=4, val_scenes=2))
    return root


@pytest.fixture
def root(sound, tmp_path):
    return shutil.copytree(sound, tmp_path / "demo")


def coco(root: Path, classes=CLASSES, num_classes=6, wrap=False, **changes) -> Config:
    def loader(split: str) -> dict:
        dataset = {
            "type": "CocoDataset",
            "data_root": str(root / "coco"),
            "ann_file": f"annotations/instances_{split}2017.json",
            "data_prefix": {"img": f"{split}2017/"},
            "metainfo": {"classes": classes},
            "filter_cfg": {"filter_empty_gt": True, "min_size": 32},
            "pipeline": [{"type": "LoadAnnotations", "with_bbox": True, "with_mask": True}],
        } | changes
        return {"dataset": {"type": "RepeatDataset", "times": 2, "dataset": dataset} if wrap else dataset}

    heads = {"bbox_head": {"num_classes": num_classes}, "mask_head": [{"num_classes": num_classes}]}
    evaluator = {"type": "CocoMetric", "ann_file": str(root / "coco/annotations/instances_val2017.json")}
    return Config(
        {
            "default_scope": "mmdet",
            "model": {"roi_head": heads},
            "train_dataloader": loader("train"),
            "val_dataloader": loader("val"),
            "test_dataloader": loader("val"),
            "val_evaluator": evaluator,
        }
    )


def ade(root: Path, kind="BaseSegDataset", classes=SEGMENTATION_CLASSES, **changes) -> Config:
    def loader(split: str) -> dict:
        dataset = {
            "type": kind,
            "data_root": str(root / "ade/ADEChallengeData2016"),
            "data_prefix": {"img_path": f"images/{split}", "seg_map_path": f"annotations/{split}"},
            "metainfo": {"classes": classes},
            "reduce_zero_label": True,
        } | changes
        return {"dataset": dataset}

    loaders = {"train_dataloader": loader("training"), "val_dataloader": loader("validation")}
    return Config({"default_scope": "mmseg", "model": {"decode_head": {"num_classes": 7}}, **loaders})


def imagefolder(root: Path, **changes) -> Config:
    import lvit_dense.datasets.imagenet  # noqa: F401  (registers TimmDataset, as custom_imports does)

    def loader(split: str) -> dict:
        return {"dataset": {"type": "TimmDataset", "root": str(root / "imagenet"), "split": split} | changes}

    loaders = {"train_dataloader": loader("train"), "val_dataloader": loader("val")}
    return Config({"default_scope": "mmengine", "model": {"num_classes": 6, "backbone": {}}, **loaders})


def edit_json(root: Path, change, split: str = "train") -> None:
    file = root / f"coco/annotations/instances_{split}2017.json"
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


def labels(root: Path, index: int = 1) -> Path:
    return root / f"ade/ADEChallengeData2016/annotations/training/ADE_train_{index:08d}.png"


def fatal(cfg: Config) -> list:
    return [finding for finding in check(cfg).findings if finding.fatal]


def first(content: dict, **changes) -> None:
    content["annotations"][0].update(changes)
    for key in [key for key, value in changes.items() if value == "REMOVE"]:
        del content["annotations"][0][key]


def rewrite_labels(root: Path, change) -> None:
    for file in (root / "ade/ADEChallengeData2016/annotations").rglob("*.png"):
        Image.fromarray(change(np.asarray(Image.open(file))).astype(np.uint8)).save(file)
