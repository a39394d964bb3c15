"""Every operator, plan and distillation on Fashion-MNIST: the shape of the paper's Figures 3 to 5 in about an hour.

The data folder is what the Debian package ``dataset-fashion-mnist`` installs (four ``*-ubyte.gz`` files) or
torchvision's layout (``FashionMNIST/raw/``); 60,000 training and 10,000 test pictures, 28x28, grey, 10 classes.
"""

import gzip
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lvit_dense.experiment import small_data
from lvit_dense.experiment.cell import Cell
from lvit_dense.experiment.small_data import Options, Schedule
from lvit_dense.experiment.suite import Suite

SIDE = 28  # pixels: 7 x 7 tokens of 4
MEAN, STD = (0.286,) * 3, (0.353,) * 3
BACKBONE = {"arch": [64, 6, 2], "img_size": SIDE, "patch_size": 4, "drop_path_rate": 0.0}
TEACHER = Cell("imagenet", "softmax", "tiny")
TEACHER_STEPS = Schedule(1500, 75, 1e-3, 64)
STUDENT_STEPS = Schedule(150, 15, 1e-3, 64)
OPERATORS = ("relu", "elu", "inline", "mhla", "ttt")
INITS = ("random", "mimetic", "copy", "mlpcopy", "fullcopy")
UNDEFINED = {("ttt", "mimetic")}  # its inner model has no query-key product
SWEEPS = {"output_mse": (10, 30, 50, 100, 300), "map_mse": (3e2, 3e3, 3e4, 3e5)}
FILES = tuple(f"{split}-{kind}-ubyte" for split in ("train", "t10k") for kind in ("images-idx3", "labels-idx1"))


def prepare(source: Path, root: Path) -> Path:
    """Lay the four files out as torchvision reads them, below ``root``; return the folder to give as data root.

    Raises:
        FileNotFoundError: neither the packed nor the unpacked files are in ``source``.
    """
    if all((source / "FashionMNIST" / "raw" / name).exists() for name in FILES):
        return source
    missing = [f"{name}.gz" for name in FILES if not (source / f"{name}.gz").exists()]
    if missing:
        raise FileNotFoundError(
            f"{source} holds neither FashionMNIST/raw/ nor {', '.join(missing)}: install the Debian package "
            "dataset-fashion-mnist and give /usr/share/datasets/fashion-mnist, or a folder torchvision downloaded to"
        )
    raw = root / "FashionMNIST" / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        temporary = raw / f"{name}.tmp"
        with gzip.open(source / f"{name}.gz") as packed, temporary.open("wb") as unpacked:
            shutil.copyfileobj(packed, unpacked)
        temporary.replace(raw / name)
    return root


def fashion_suite(root: Path, data: Path, seeds: int = 2) -> Suite:
    """A softmax teacher; softmax from scratch in the students' budget; every operator x plan x distillation x seed."""
    students = [
        Cell("imagenet", operator, "tiny", init, distill, seed)
        for seed in range(seeds)
        for operator in OPERATORS
        for init in INITS
        if (operator, init) not in UNDEFINED
        for distill in (False, True)
    ]
    options = {TEACHER.config_name: _settings(data, TEACHER_STEPS), "imagenet": _settings(data, STUDENT_STEPS)}
    return Suite(root, (TEACHER, *students), str(TEACHER.work_dir(root)), options, BACKBONE)


def sweep_suites(root: Path, data: Path, teacher: Path) -> dict[tuple[str, float], Suite]:
    """(term, lambda) -> mlpcopy+distill of relu and inline with that term and weight, one seed."""
    suites = {}
    for term, weights in SWEEPS.items():
        for weight in weights:
            settings = _settings(data, STUDENT_STEPS)
            settings["model"]["distill"] = {"term": term, "weight": float(weight)}
            cells = tuple(Cell("imagenet", operator, "tiny", "mlpcopy", True) for operator in ("relu", "inline"))
            folder = root / f"{term}_{weight:g}"
            suites[term, float(weight)] = Suite(folder, cells, str(teacher), {"imagenet": settings}, BACKBONE)
    return suites


def _settings(data: Path, schedule: Schedule) -> Options:
    """The ImageNet recipe counted in iterations: one epoch of 60,000 pictures is longer than the whole budget."""
    train = _pictures(data, "train", {"scale": (0.6, 1.0), "color_jitter": None})
    val = _pictures(data, "val", {"crop_pct": 1.0})
    return {
        "model": {"num_classes": 10},
        "train_dataloader": small_data.loader(
            schedule.batch, train, sampler={"type": "InfiniteSampler", "shuffle": True, "_delete_": True}
        ),
        "val_dataloader": small_data.loader(500, val),
        "test_dataloader": small_data.loader(500, val),
        "train_cfg": {
            "_delete_": True, "by_epoch": False, "max_iters": schedule.length, "val_interval": schedule.length
        },
        "optim_wrapper": {"optimizer": {"lr": schedule.lr}},
        "param_scheduler": small_data.cosine(schedule, by_epoch=False),
        "auto_scale_lr": {"base_batch_size": schedule.batch},
        "log_processor": {"by_epoch": False},
        "default_hooks": {
            "logger": {"interval": 20},
            "checkpoint": {"by_epoch": False, "interval": max(1, schedule.length // 4), "save_best": None,
                           "max_keep_ckpts": 1},
        },
    }  # fmt: skip


def _pictures(data: Path, split: str, transform: Mapping[str, Any]) -> Options:
    common = {"input_size": SIDE, "interpolation": "bicubic", "mean": MEAN, "std": STD}
    return {
        "name": "torch/fashion_mnist",
        "root": str(data),
        "split": split,
        "transform": {**common, **transform},
    }
