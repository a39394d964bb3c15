"""One cell run to its ledger line: what is recorded, what fails, what changed afterwards."""

from dataclasses import replace

import pytest

from lvit_dense.experiment.ledger import Ledger, checkpoint_problem
from lvit_dense.experiment.run_cell import is_finished, run_cell
from tests.chain.conftest import SEGMENTOR, STUDENT


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.jsonl")


def test_a_finished_run_is_recorded_with_what_it_was_made_of(chain, student, ledger):
    assert not is_finished(chain, STUDENT, ledger)
    assert run_cell(chain, STUDENT, ledger)
    (line,) = ledger.lines()
    assert line["state"] == "finished" and 0 <= line["metrics"]["val"]["accuracy/top1"] <= 100
    assert line["checkpoint"] == f"{STUDENT.name}/epoch_2.pth"
    assert all(len(line[key]) == 64 for key in ("checkpoint_sha256", "teacher_sha256", "config_sha256"))
    assert {"torch", "timm", "lvit-dense"} <= line["versions"].keys()
    assert is_finished(chain, STUDENT, ledger)


def test_a_run_whose_checkpoint_changed_is_not_finished(chain, student, ledger, tmp_path):
    run_cell(chain, STUDENT, ledger)
    (line,) = ledger.lines()
    assert checkpoint_problem(line, tmp_path) == "missing"
    ledger.append({**line, "checkpoint_sha256": "0" * 64})
    assert not is_finished(chain, STUDENT, ledger)


def test_evaluations_follow_training(chain, segmentor, ledger):
    assert run_cell(chain, SEGMENTOR, ledger)
    assert {"val", "tta"} <= ledger.lines()[0]["metrics"].keys()


def test_a_failed_run_is_recorded_with_its_last_line(chain, student, ledger, tmp_path):
    broken = replace(chain, root=tmp_path / "runs", teacher=str(tmp_path / "no_weights.pth"))
    broken.write_configs()
    assert not run_cell(broken, STUDENT, ledger)
    (line,) = ledger.lines()
    assert (line["state"], line["step"]) == ("failed", STUDENT.name)
    assert "no_weights.pth" in line["error"]
    assert not is_finished(broken, STUDENT, ledger)
