"""The ledger: whole lines from several writers, torn lines, checkpoints that changed."""

import json
import subprocess
import sys

from lvit_dense.experiment.ledger import Ledger, checkpoint_problem, file_sha256

WRITER = """
import sys
from pathlib import Path
from lvit_dense.experiment.ledger import Ledger
ledger = Ledger(Path(sys.argv[1]))
for i in range(100):
    ledger.append({"cell": f"{sys.argv[2]}-{i}", "state": "finished", "padding": sys.argv[2] * 5000})
"""


def test_two_processes_append_a_hundred_lines_each(tmp_path):
    path = tmp_path / "ledger.jsonl"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), name]) for name in "ab"]
    assert [writer.wait() for writer in writers] == [0, 0]
    lines = [json.loads(text) for text in path.read_text().splitlines()]
    assert len(lines) == 200
    assert {line["cell"] for line in lines} == {f"{name}-{i}" for name in "ab" for i in range(100)}
    assert all(len(line["padding"]) == 5000 for line in lines)


def test_a_torn_line_is_skipped_and_closed_off(tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.append({"cell": "first", "state": "finished"})
    with ledger.path.open("a") as file:
        file.write('{"cell": "torn", "sta')
    assert [line["cell"] for line in ledger.lines()] == ["first"]
    ledger.append({"cell": "second", "state": "failed"})
    assert [line["cell"] for line in ledger.lines()] == ["first", "second"]


def test_the_newest_line_of_a_cell_counts(tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl")
    assert ledger.newest() == {}
    for state in ("failed", "finished"):
        ledger.append({"cell": "a", "state": state})
    assert ledger.newest()["a"]["state"] == "finished"


def test_a_changed_or_missing_checkpoint_is_found(tmp_path):
    checkpoint = tmp_path / "run" / "last.pth"
    checkpoint.parent.mkdir()
    checkpoint.write_bytes(b"weights")
    line = {"checkpoint": "run/last.pth", "checkpoint_sha256": file_sha256(checkpoint)}
    assert checkpoint_problem(line, tmp_path) is None
    checkpoint.write_bytes(b"Weights")
    assert checkpoint_problem(line, tmp_path) == "tampered"
    checkpoint.unlink()
    assert checkpoint_problem(line, tmp_path) == "missing"
