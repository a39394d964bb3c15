"""Arms on really pre-trained weights and real photographs: ViT-S/14 students on small pictures, on two cores.

The data folder holds ``vit_small_patch14_518.safetensors`` (a ViT-S/14 of the DINOv2 family), ``objects/`` (folders of
7 classes) and ``scenes/`` (COCO and ADE20K layout, the same classes in photographs).
"""

import json
from pathlib import Path

from lvit_dense.experiment import small_data
from lvit_dense.experiment.cell import Cell
from lvit_dense.experiment.small_data import Classes, Options, Schedule
from lvit_dense.experiment.suite import Suite

WIDTH = 384  # ViT-Small
SIDE = 70  # pixels of the classification pictures: 5 x 5 tokens of 14 pixels
OBJECTS = ("bird", "fish", "flower", "fruit", "insect", "mammal", "vegetable")
SEGMENTS = ("background", "mammal", "bird", "fruit", "flower", "vegetable", "fish", "insect")
COLOURS = (
    (120, 120, 120), (230, 57, 70), (29, 120, 200), (255, 183, 3), (255, 112, 200), (6, 170, 120), (131, 56, 236),
    (40, 40, 40),
)  # fmt: skip

INITS = ("random", "copy", "mlpcopy", "fullcopy")
SEEDS = {"relu": 2, "ttt": 1}
DENSE = (
    ("softmax", "teacher", False), ("relu", "random", False), ("relu", "mlpcopy", False), ("relu", "mlpcopy", True),
    ("ttt", "mlpcopy", True),
)  # fmt: skip
FOLDED = (("softmax", "fullcopy", False), ("relu", "fullcopy", False), ("relu", "fullcopy", True))


MULTI_SCALE = {task: {"tta": ("--tta",)} for task in ("maskrcnn", "upernet")}


def real_suite(root: Path, data: Path) -> Suite:
    """Classification of ``objects``: softmax twice, every plan of ReLU and TTT; ``scenes``: five arms of seed 0."""
    cells = [Cell("imagenet", "softmax", "small", init) for init in ("random", "fullcopy")]
    cells += [
        Cell("imagenet", operator, "small", init, distill, seed)
        for operator, seeds in SEEDS.items()
        for seed in range(seeds)
        for init in INITS
        for distill in (False, True)
    ]
    cells += [Cell(task, o, "small", i, d) for task in ("maskrcnn", "upernet") for o, i, d in DENSE]
    things = Classes(SEGMENTS[1:], COLOURS[1:])
    names = {
        "train": {"ann_file": "instances_training.json", "img": "images/training/"},
        "val": {"ann_file": "instances_validation.json", "img": "images/validation/"},
    }
    options = {
        "imagenet": _objects(data),
        "maskrcnn": small_data.coco(data / "scenes", things, Schedule(4, 1, 2e-4, 4), (224, 168), WIDTH, 96, names),
        "upernet": small_data.ade20k(
            data / "scenes", Classes(SEGMENTS, COLOURS), Schedule(200, 20, 2e-4, 4), 160, 160, WIDTH, 96, "whole"
        ),
    }
    for task in ("maskrcnn", "upernet"):
        options[task]["default_hooks"]["visualization"] = {"draw": True, "interval": 20}
    return Suite(root, tuple(cells), _weights(data), options, evaluations=MULTI_SCALE)


def voc_suite(root: Path, data: Path, students: Path) -> Suite:
    """Overfit both dense tasks on three Pascal VOC photographs with palette masks and ignored borders (255).

    Args:
        students: folder of the ImageNet runs of :func:`real_suite`.
    """
    voc = data / "voc3"
    categories = json.loads((voc / "instances.json").read_text())["categories"]
    names = [category["name"] for category in categories]
    colours = [COLOURS[i % len(COLOURS)] for i in range(len(names))]
    split = {"ann_file": "instances.json", "img": ""}
    coco = small_data.coco(
        voc, Classes(names[1:], colours[1:]), Schedule(60, 6, 2e-4, 3), (224, 168), WIDTH, 96,
        {"train": split, "val": split},
    )  # fmt: skip
    ade = small_data.ade20k(voc, Classes(names, colours), Schedule(60, 6, 2e-4, 3), 160, 160, WIDTH, 96, "whole")
    for loader in ("train_dataloader", "val_dataloader", "test_dataloader"):
        prefix = {"img_path": "JPEGImages", "seg_map_path": "SegmentationClass"}
        ade[loader]["dataset"].update(data_prefix=prefix, reduce_zero_label=False)
    arms = [(o, i, d) for o, i, d in DENSE if d or i == "teacher"]
    cells = tuple(Cell(task, o, "small", i, d) for task in ("maskrcnn", "upernet") for o, i, d in arms)
    options = {"maskrcnn": coco, "upernet": ade}
    return Suite(root, cells, _weights(data), options, upstream=students, evaluations=MULTI_SCALE)


def folded_suite(root: Path, data: Path) -> Suite:
    """Some of the same arms with the teacher's LayerScale multiplied into proj and fc2, students without LayerScale."""
    options = _objects(data)
    options["model"]["backbone"]["init_values"] = None
    options["model"]["transfer"] = {"plan": {"fold_layer_scale": True}}
    cells = tuple(Cell("imagenet", operator, "small", init, distill) for operator, init, distill in FOLDED)
    return Suite(root, cells, _weights(data), {"imagenet": options})


def _objects(data: Path) -> Options:
    crop = (0.35, 1.0)
    options = small_data.imagenet(data / "objects", Classes(OBJECTS, COLOURS), SIDE, Schedule(10, 1, 1e-4, 32), crop)
    options["model"]["backbone"]["patch_size"] = 14
    return options


def _weights(data: Path) -> str:
    return str(data / "vit_small_patch14_518.safetensors")
