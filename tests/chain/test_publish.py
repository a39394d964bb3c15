"""A published checkpoint in place of the run's own: evaluation, and the next stage."""

import json
import pickle
import sys

import pytest
import torch
import yaml

from lvit_dense.experiment.suite import TOOLS
from lvit_dense.transfer import newest_checkpoint, read_source
from tests.chain.conftest import DETECTOR, STUDENT


@pytest.fixture(scope="module")
def published(chain, student, tmp_path_factory):
    zoo = tmp_path_factory.mktemp("zoo")
    command = [sys.executable, TOOLS / "publish_model.py", student, zoo / "student.pth"]
    chain.run([*command, "--metafile", zoo / "metafile.yml"])
    (file,) = zoo.glob("student-*.pth")
    return file


def predictions(chain, checkpoint, folder):
    tool = [sys.executable, TOOLS / "test.py", chain.config(STUDENT), checkpoint]
    chain.run([*tool, "--work-dir", folder, "--out", folder / "out.pkl"])
    return pickle.loads((folder / "out.pkl").read_bytes())


def scores(predicted):
    return torch.stack([torch.as_tensor(sample["scores"]) for sample in predicted])


def test_it_is_smaller_and_predicts_the_same(chain, student, published, tmp_path):
    own = newest_checkpoint(student)
    assert published.stat().st_size < 0.5 * own.stat().st_size
    found = [scores(predictions(chain, file, tmp_path / file.stem)) for file in (own, published)]
    assert len(found[0]) and torch.equal(*found)


def test_it_is_a_source_like_the_runs_own(chain, student, published, tmp_path):
    own, other = read_source(str(student)), read_source(str(published))
    assert (own.family, own.facts) == (other.family, other.facts)
    assert all(torch.equal(own.state[name], value) for name, value in other.state.items())
    options = [f"model.backbone.transfer.source={published}", "train_cfg.max_epochs=1"]
    folder = tmp_path / "run"
    command = [sys.executable, str(TOOLS / "train.py"), str(chain.config(DETECTOR)), "--work-dir", str(folder)]
    chain.run([*command, "--cfg-options", *options])
    assert json.loads((folder / "transfer.json").read_text())["sha256"] == other.sha256


def test_the_metafile_has_the_runs_result(student, published):
    (row,) = yaml.safe_load((published.parent / "metafile.yml").read_text())["Models"]
    assert row["Name"] == STUDENT.name and row["Weights"] == published.name
    assert 0 <= row["Results"][0]["Metrics"]["Top 1 Accuracy"] <= 100
