"""Recipes, transfer sets and test sets through tools/train.py and tools/test.py."""

import json

import pytest
from mmengine.config import Config
from PIL import Image
from timm.data import ImageNetInfo

from lvit_dense.engine.results import read_results
from tests.chain.conftest import STUDENT, TEACHER, TOOLS
from tests.datasets.test_imagenet_sets import write_pets


def dumped(folder):
    return Config.fromfile(next(folder.glob("*.py")))


@pytest.fixture(scope="module")
def run(chain, tmp_path_factory):
    """A run of the heavier recipe that keeps the recipe's batch, with a head for all of ImageNet's classes."""
    folder = tmp_path_factory.mktemp("recipe") / "run"
    options = ["model.num_classes=1000", "train_dataloader.batch_size=4", "train_cfg.max_epochs=1"]
    options += ["train_cfg.val_interval=1", "auto_scale_lr.base_batch_size=12"]
    chain.train(TEACHER, "--work-dir", str(folder), "--recipe", "xu2024", "--keep-batch", "--cfg-options", *options)
    return folder


def test_a_run_of_another_recipe_writes_it_into_its_config(run):
    cfg = dumped(run)
    assert (cfg.recipe, cfg.model.data_preprocessor.mixup.cutmix_alpha) == ("xu2024", 1.0)
    assert cfg.train_dataloader.dataset.transform.auto_augment.startswith("rand-m9")
    assert cfg.optim_wrapper.accumulative_counts == 3
    assert read_results(run)["trained"]["iter"] == 9


def test_a_test_set_has_a_line_of_its_own(chain, run, tmp_path):
    wnids = ImageNetInfo().label_names()
    for label in (5, 700):
        folder = tmp_path / wnids[label]
        folder.mkdir()
        Image.new("RGB", (48, 40), (label % 256, 0, 0)).save(folder / "a.jpg")
    command = ["python", TOOLS / "test.py", chain.config(TEACHER), run, "--work-dir", run, "--data", "imagenet_r"]
    settings = ["model.num_classes=1000", f"test_dataloader.dataset.root={tmp_path}"]
    settings += ["test_dataloader.dataset.num_classes=2"]
    chain.run([*command, "--cfg-options", *settings])
    results = read_results(run)
    assert results["test@imagenet_r"]["data"] == "imagenet_r"
    assert results["test@imagenet_r"]["metrics"].keys() == {"accuracy/top1"}  # of two classes there is no fifth place
    assert "test" not in results
    lines = [json.loads(text) for text in (run / "results.jsonl").read_text().splitlines()]
    assert [line.get("data") for line in lines if line["kind"] == "test"] == ["imagenet_r"]


def test_a_transfer_set_is_distilled_from_the_same_teacher(chain, teacher, tmp_path):
    write_pets(tmp_path)
    options = [f"{split}_dataloader.dataset.root={tmp_path}" for split in ("train", "val", "test")]
    options += ["train_dataloader.batch_size=2", "train_cfg.max_epochs=1", "train_cfg.val_interval=1"]
    chain.train(STUDENT, "--data", "pets", "--cfg-options", *options)
    folder = chain.root / "pets" / STUDENT.name
    cfg = dumped(folder)
    assert (cfg.data_set, cfg.model.num_classes, cfg.model.distill.teacher) == ("pets", 37, str(teacher))
    assert read_results(folder)["val"]["data"] == "pets"
    assert "loss_distill" in next(folder.glob("*/vis_data/scalars.json")).read_text()
