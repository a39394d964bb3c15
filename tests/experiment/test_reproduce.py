"""tools/reproduce.py as users call it: plan, status, report and its exit code."""

import json
import runpy
import sys

import pytest

from lvit_dense.experiment.cell_lock import alone
from lvit_dense.experiment.ledger import Ledger, file_sha256
from lvit_dense.experiment.suite import TOOLS


@pytest.fixture
def reproduce(monkeypatch, capsys, tmp_path):
    """Call the tool with ROOT below tmp_path; (exit code, what it printed)."""
    monkeypatch.setenv("COLUMNS", "220")
    tool = TOOLS / "reproduce.py"

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", [str(tool), *arguments, "--root", str(tmp_path / "runs")])
        with pytest.raises(SystemExit) as end:
            runpy.run_path(str(tool), run_name="__main__")
        return end.value.code, capsys.readouterr().out

    return call


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "runs" / "ledger.jsonl")


def finished(ledger, cell, top1):
    """Put a finished ImageNet run into the ledger; its checkpoint."""
    checkpoint = ledger.path.parent / cell / "epoch_300.pth"
    checkpoint.parent.mkdir(parents=True)
    checkpoint.write_text(cell)
    line = {"cell": cell, "state": "finished", "metrics": {"val": {"accuracy/top1": top1}}, "seconds": 60.0}
    line |= {"log": f"{cell}/train.log", "commit": "abcdef0123", "dirty": False}
    line |= {"checkpoint": f"{cell}/epoch_300.pth", "checkpoint_sha256": file_sha256(checkpoint)}
    ledger.append(line)
    return checkpoint


def test_plan_shows_order_upstream_and_cost(reproduce, tmp_path):
    code, text = reproduce("plan", "table_d")
    assert code == 0 and "table_d: 26 runs in this order" in text and "not a measurement" in text
    needs = {cells[1].strip(): cells[2].strip() for line in text.splitlines() if len(cells := line.split("│")) > 2}
    assert len(needs) == 26
    assert needs["maskrcnn_relu_base@copy+distill"] == "imagenet_relu_base@copy+distill"
    assert needs["upernet_softmax_base@teacher"] == "-"
    assert not (tmp_path / "runs").exists()


def test_dry_run_prints_every_command_of_the_chosen_rows(reproduce, tmp_path):
    code, text = reproduce("run", "table_e", "--dry-run", "--rows", "TTT Copy + dist", "--seeds", "1", "2")
    assert code == 0 and not (tmp_path / "runs").exists()
    tools = [line.split()[1].rpartition("/")[2] for line in text.splitlines()]
    of_a_seed = ["train.py", "train.py", "test.py"]  # Mask R-CNN, UperNet, UperNet multi-scale
    assert tools == ["train.py", "train.py", *of_a_seed, *of_a_seed]
    assert text.count("--seed 2") == 3 and text.count("--tta") == 2


def test_an_unknown_table_is_one_line(reproduce):
    code, _ = reproduce("plan", "table_f")
    assert code.startswith("error: unknown table 'table_f'") and "table_e" in code and "\n" not in code


def test_status_names_every_state(reproduce, ledger, tmp_path):
    arms = ["fullcopy", "copy", "random", "mlpcopy", "variant1", "variant2"]
    runs = [f"imagenet_relu_base@{arm}" for arm in arms]
    finished(ledger, runs[0], 80.8)
    finished(ledger, runs[1], 75.6).write_text("other weights")
    finished(ledger, runs[2], 76.5).unlink()
    ledger.append({"cell": runs[3], "state": "failed", "error": "CUDA [out of memory]", "log": f"{runs[3]}/train.log"})
    for run in runs[3:]:
        work_dir = tmp_path / "runs" / run
        work_dir.mkdir(parents=True)
        (work_dir / "progress.json").write_text(json.dumps({"iter": 10, "max_iters": 300}))
    with alone(tmp_path / "runs" / runs[5]):
        code, text = reproduce("status", "table_g", "--once")
    states = {cells[1].strip(): cells[2].strip() for line in text.splitlines() if len(cells := line.split("│")) > 2}
    assert code == 0 and len(states) == 14
    assert [states[run] for run in runs[:3]] == [
        "finished", f"checkpoint tampered: {runs[1]}/epoch_300.pth", f"checkpoint missing: {runs[2]}/epoch_300.pth"
    ]  # fmt: skip
    assert states[runs[3]].startswith("failed, 10 of 300 steps: CUDA [out of memory]")
    assert states[runs[4]] == "interrupted, 10 of 300 steps"
    assert states[runs[5]] == "running, 10 of 300 steps"
    assert states["imagenet_relu_base@variant3"] == "waiting"


def test_check_fails_on_a_miss_and_on_nothing_else(reproduce, ledger, tmp_path):
    finished(ledger, "imagenet_relu_base@fullcopy", 80.5)
    assert reproduce("report", "table_g", "--check")[0] == 0
    finished(ledger, "imagenet_relu_base@copy", 75.0)
    code, text = reproduce("report", "table_g", "--check")
    assert code == 1 and "ReLU Copy, top1: 75.0 instead of 75.6 ± 0.4" in text
    assert reproduce("report", "table_g")[0] == 0
    folder = tmp_path / "runs" / "report_table_g"
    assert sorted(path.name for path in folder.iterdir()) == [
        f"report.{end}" for end in ("csv", "html", "json", "md", "png")
    ]
