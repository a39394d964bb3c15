"""One cell run to its ledger line: what is recorded, what fails, what changed afterwards."""

import shutil
import threading
from dataclasses import replace

import pytest

from lvit_dense.experiment.cell_lock import alone
from lvit_dense.experiment.ledger import Ledger, checkpoint_problem
from lvit_dense.experiment.run_cell import is_finished, record, run_cell
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


@pytest.mark.parametrize("harm", ["tampered", "missing"])
def test_a_changed_checkpoint_is_not_recorded_as_the_runs_own(harm, chain, student, ledger, tmp_path):
    own = replace(chain, root=tmp_path / "runs")
    shutil.copytree(student, own.work_dir(STUDENT))
    assert run_cell(own, STUDENT, ledger)
    checkpoint = own.root / ledger.lines()[0]["checkpoint"]
    content = checkpoint.read_bytes()
    if harm == "tampered":
        checkpoint.write_bytes(content[:-1] + b"x")
    else:
        checkpoint.rename(tmp_path / "elsewhere.pth")
        (checkpoint.parent / "last_checkpoint").write_text(str(checkpoint))
    with pytest.raises(ValueError, match=rf"epoch_2\.pth is {harm}: .*Put that file back, or remove"):
        run_cell(own, STUDENT, ledger)
    assert len(ledger.lines()) == 1 and not is_finished(own, STUDENT, ledger)
    checkpoint.write_bytes(content)
    assert run_cell(own, STUDENT, ledger)


def test_a_second_process_waits_and_takes_what_the_first_made(chain, student, tmp_path, ledger):
    own = replace(chain, root=tmp_path / "runs")
    shutil.copytree(student, own.work_dir(STUDENT))
    done = []
    second = threading.Thread(target=lambda: done.append(run_cell(own, STUDENT, ledger)))
    with alone(own.work_dir(STUDENT)):
        second.start()
        second.join(0.3)
        assert second.is_alive() and not ledger.lines()
        ledger.append(record(own, STUDENT, 1.0))
    second.join(20)
    assert done == [True] and len(ledger.lines()) == 1


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
    assert "no_weights.pth" in (broken.root / line["log"]).read_text()
    assert not is_finished(broken, STUDENT, ledger)
