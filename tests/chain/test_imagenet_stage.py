"""The ImageNet stage through tools/train.py and tools/test.py."""

import json

import pytest
import torch

from lvit_dense.engine.results import read_results
from lvit_dense.transfer import newest_checkpoint, read_source
from tests.chain.conftest import STUDENT, TEACHER


def weights(folder):
    return torch.load(newest_checkpoint(folder), map_location="cpu", weights_only=False)


def losses(folder):
    """Losses of the newest run in a work dir, in order."""
    newest = sorted(folder.glob("*/vis_data/scalars.json"))[-1]
    return [line["loss"] for text in newest.read_text().splitlines() if "loss" in (line := json.loads(text))]


def test_the_teachers_checkpoint_says_what_it_is(teacher):
    source = read_source(str(teacher))
    assert source.family == "lvit_dense"
    assert (source.facts.embed_dim, source.facts.depth, source.facts.num_heads) == (32, 4, 2)
    assert tuple(source.facts.grid) == (4, 4)
    assert read_results(teacher)["trained"]["iter"] == 6


def test_transfer_is_reported_and_the_copies_start_from_the_teacher(teacher, student):
    report = json.loads((student / "transfer.json").read_text())
    assert read_source(str(teacher)).sha256 in json.dumps(report)
    assert "mlp" in json.dumps(report)


def test_no_teacher_in_the_students_checkpoint_nor_its_optimiser(student, teacher):
    checkpoint = weights(student)
    assert {key.split(".")[0] for key in checkpoint["state_dict"]} == {"vit", "head"}
    shapes = [v["exp_avg"].shape for v in checkpoint["optimizer"]["state"].values()]
    assert len(shapes) == sum(1 for _ in checkpoint["state_dict"])
    assert checkpoint["meta"]["lvit_dense"]["operator"] == "relu"


def test_training_leaves_the_teachers_file_alone_and_repeats_exactly(chain, teacher, tmp_path):
    before = newest_checkpoint(teacher).read_bytes()
    runs = []
    for name in ("first", "second"):
        chain.train(STUDENT, "--work-dir", str(tmp_path / name))
        runs.append((losses(tmp_path / name), weights(tmp_path / name)["state_dict"]))
    assert newest_checkpoint(teacher).read_bytes() == before
    assert runs[0][0] == runs[1][0]
    for key, value in runs[0][1].items():
        assert torch.equal(value, runs[1][1][key]), key


def test_test_py_repeats_the_last_validation_from_a_work_dir_and_from_a_file(chain, student):
    chain.test(STUDENT)
    results = read_results(student)
    assert results["test"]["metrics"] == results["val"]["metrics"]
    assert set(results["test"]["metrics"]) == {"accuracy/top1", "accuracy/top5"}


def test_resume_continues_where_the_run_stopped(chain, teacher, tmp_path):
    folder = tmp_path / "run"
    chain.train(
        TEACHER, "--work-dir", str(folder), "--cfg-options", "train_cfg.max_epochs=1", "train_cfg.val_interval=1"
    )
    assert weights(folder)["meta"]["epoch"] == 1
    chain.train(TEACHER, "--work-dir", str(folder), "--resume")
    assert weights(folder)["meta"]["epoch"] == 2
    assert weights(folder)["meta"]["iter"] == 6


def test_a_checkpoint_of_another_model_is_refused_with_counts(chain, teacher):
    with pytest.raises(ValueError, match="does not fit the model"):
        chain.test(STUDENT, "--cfg-options", "model.backbone.arch=(32,3,2)")
