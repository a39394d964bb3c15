"""Recipes and data sets as values: ``--recipe xu2024``, ``--data cifar100`` merge a small config over any ImageNet one.

Each is a file, ``configs/recipes/NAME.py`` or ``configs/data/NAME.py``, with nothing but what it changes.
"""

from pathlib import Path

from mmengine.config import Config

from lvit_dense.catalog import suggest
from lvit_dense.experiment.suite import CONFIGS

PAPER = "paper"  # the recipe that the configs hold themselves
KINDS = {"recipe": "recipes", "data": "data"}  # flag -> folder below configs/


def names(kind: str) -> list[str]:
    """What ``--recipe`` or ``--data`` takes."""
    found = sorted(path.stem for path in (CONFIGS / KINDS[kind]).glob("*.py"))
    return [PAPER, *found] if kind == "recipe" else found


def merge_presets(cfg: Config, recipe: str | None, data: str | None, training: bool) -> None:
    """Merge a recipe, then a data set, over a config of the ImageNet stage, in place; their names are kept in it.

    Args:
        recipe, data: None = the config's own.
        training: whether the data set must have a training split.

    Raises:
        ValueError: no config of the ImageNet stage, an unknown name, or a data set that is for evaluation only.
    """
    for kind, name in (("recipe", recipe), ("data", data)):
        if name is None or (kind, name) == ("recipe", PAPER):
            continue
        if cfg.get("model", {}).get("type") != "LinearViTClassifier":
            model = cfg.get("model", {}).get("type")
            raise ValueError(
                f"--{kind} {name} changes the ImageNet stage, and {Path(cfg.filename).name} trains a {model}: "
                "give it a config whose model is a LinearViTClassifier, such as configs/imagenet_relu_base.py"
            )
        if name not in names(kind):
            raise ValueError(f"unknown {kind} {name!r}: {suggest(name, names(kind))}")
        preset = Config.fromfile(CONFIGS / KINDS[kind] / f"{name}.py")
        if training and kind == "data" and "train_dataloader" not in preset:
            raise ValueError(f"--data {name} is for evaluation: tools/test.py CONFIG CHECKPOINT --data {name}")
        cfg.merge_from_dict(preset.to_dict())
        cfg["data_set" if kind == "data" else kind] = name


def work_root(root: str, recipe: str | None, data: str | None) -> Path:
    """``root/RECIPE/DATA``, each only where it is not the default, so that runs never mix."""
    return Path(root, *(name for name in (recipe, data) if name and name != PAPER))
