"""The demo: the whole chain with a tiny ViT on generated pictures, in minutes on two cores."""

from collections.abc import Mapping
from pathlib import Path

from lvit_dense.datasets.demo import CLASSES, PALETTE, SEGMENTATION_CLASSES, SEGMENTATION_PALETTE
from lvit_dense.experiment import small_data
from lvit_dense.experiment.cell import Cell
from lvit_dense.experiment.small_data import Classes, Options, Schedule
from lvit_dense.experiment.suite import Suite

TITLE = "A small Table D: tiny ViT, generated pictures (validation, in percent)"
CROP = (0.7, 1.0)  # share of a picture that a training crop covers
SIDE = 96  # pixels of the classification pictures
WIDTH = 96  # channels of the ViT, depth 4, 3 heads
SOFTMAX = Cell("imagenet", "softmax", "tiny")  # trained first; the students' teacher
ARMS = (("random", False), ("mlpcopy", True))
BACKBONE = {"arch": [WIDTH, 4, 3], "img_size": SIDE, "drop_path_rate": 0.0}
SCHEDULES = {
    SOFTMAX.config_name: Schedule(16, 2, 1e-3, 32),
    "imagenet": Schedule(8, 1, 1e-3, 32),
    "maskrcnn": Schedule(5, 1, 1e-3, 8),
    "upernet": Schedule(240, 24, 1e-3, 8),
}


def demo_suite(root: Path, data: Path) -> Suite:
    """Train a softmax teacher, two ReLU students (random, mlpcopy+distill), and detect and segment with both."""
    students = tuple(
        Cell(task, "relu", "tiny", init, distill)
        for task in ("imagenet", "maskrcnn", "upernet")
        for init, distill in ARMS
    )
    options = demo_options(data, SCHEDULES)
    for task in ("maskrcnn", "upernet"):
        options[task]["default_hooks"]["visualization"] = {"draw": True, "interval": 20}
    return Suite(root, (SOFTMAX, *students), str(SOFTMAX.work_dir(root)), options, BACKBONE)


def demo_options(data: Path, schedules: Mapping[str, Schedule]) -> dict[str, Options]:
    """Settings of the three tasks, and of the teacher's config, on the generated pictures below ``data``."""
    names = {
        split: {"ann_file": f"annotations/instances_{split}2017.json", "img": f"{split}2017/"}
        for split in ("train", "val")
    }
    shapes = Classes(CLASSES, PALETTE)
    segments = Classes(SEGMENTATION_CLASSES, SEGMENTATION_PALETTE)
    ade = data / "ade" / "ADEChallengeData2016"
    return {
        name: small_data.imagenet(data / "imagenet", shapes, SIDE, schedules[name], CROP)
        for name in (SOFTMAX.config_name, "imagenet")
    } | {
        "maskrcnn": small_data.coco(data / "coco", shapes, schedules["maskrcnn"], (128, 96), WIDTH, 64, names),
        "upernet": small_data.ade20k(ade, segments, schedules["upernet"], 96, 96, WIDTH, 64, "whole"),
    }
