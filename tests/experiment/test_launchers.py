"""SLURM submission against a fake sbatch on PATH that records what it got."""

import io
import json
import os

import pytest
from rich.console import Console

from lvit_dense.experiment.launchers import Run, run_slurm
from lvit_dense.experiment.ledger import Ledger, file_sha256
from lvit_dense.experiment.reproduction import TABLES

SBATCH = """#!/usr/bin/env python3
import json, os, sys
with open(os.environ["SBATCH_LOG"], "a+") as file:
    file.seek(0)
    job = 100 + len(file.readlines())
    file.write(json.dumps(sys.argv[1:]) + "\\n")
print(f"{job};cluster")
"""


@pytest.fixture
def sbatch(tmp_path, monkeypatch):
    """A function that reads the recorded submissions as (job name, array, dependency, command)."""
    tool = tmp_path / "bin" / "sbatch"
    tool.parent.mkdir()
    tool.write_text(SBATCH)
    tool.chmod(0o755)
    log = tmp_path / "sbatch.log"
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("SBATCH_LOG", str(log))

    def submissions():
        found = []
        for text in log.read_text().splitlines():
            flags = dict(argument.lstrip("-").partition("=")[::2] for argument in json.loads(text))
            found.append((flags["job-name"], flags["array"], flags.get("dependency"), flags))
        return found

    return submissions


def run_of(root, rows, seeds, gpus=8):
    table = TABLES.get("table_d")()
    return Run(
        "table_d", table.suite(root, table.cells(table.select(rows), seeds)), Ledger(root / "ledger.jsonl"), gpus
    )


def test_dense_arrays_wait_for_the_same_seed_of_their_imagenet_array(sbatch, tmp_path):
    run_slurm(run_of(tmp_path / "runs", ["ReLU MLPCopy + dist"], [0, 2]), ["--partition=gpu"], quiet())
    (imagenet, detector, segmentor) = sbatch()
    assert imagenet[:3] == ("imagenet_relu_base@mlpcopy+distill", "0,2", None)
    assert detector[:3] == ("maskrcnn_relu_base@mlpcopy+distill", "0,2", "aftercorr:100")
    assert segmentor[:3] == ("upernet_relu_base@mlpcopy+distill", "0,2", "aftercorr:100")
    assert [("kill-on-invalid-dep" in entry[3]) for entry in sbatch()] == [False, True, True]
    flags = imagenet[3]
    assert flags["partition"] == "gpu" and flags["gpus-per-node"] == "8"
    assert '--cell imagenet_relu_base@mlpcopy+distill@seed"$SLURM_ARRAY_TASK_ID"' in flags["wrap"]
    assert "reproduce.py cell table_d" in flags["wrap"] and "--gpus 8" in flags["wrap"]


def test_what_is_finished_is_not_submitted_and_not_waited_for(sbatch, tmp_path):
    run = run_of(tmp_path / "runs", ["ReLU Copy"], [0, 1])
    checkpoint = tmp_path / "runs" / "last.pth"
    checkpoint.parent.mkdir()
    checkpoint.write_bytes(b"weights")
    done = {"state": "finished", "checkpoint": "last.pth", "checkpoint_sha256": file_sha256(checkpoint)}
    run.ledger.append({"cell": "imagenet_relu_base@copy", **done})
    run.ledger.append({"cell": "maskrcnn_relu_base@copy", **done})
    run_slurm(run, [], quiet())
    submitted = [entry[:3] for entry in sbatch() if "distill" not in entry[0]]
    assert submitted == [
        ("imagenet_relu_base@copy", "1", None),
        ("maskrcnn_relu_base@copy", "1", "aftercorr:100"),
        ("upernet_relu_base@copy", "1", "aftercorr:100"),
        ("upernet_relu_base@copy", "0", None),
    ]


def test_what_sbatch_says_against_a_job_is_passed_on(tmp_path, monkeypatch):
    tool = tmp_path / "sbatch"
    tool.write_text("#!/bin/sh\necho 'invalid partition specified: gpux' >&2\nexit 1\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(RuntimeError, match="sbatch refused imagenet_relu_base@copy: invalid partition"):
        run_slurm(run_of(tmp_path / "runs", ["ReLU Copy"], [0]), ["--partition=gpux"], quiet())


def test_without_sbatch_the_cure_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"no sbatch on PATH: .* --launcher local"):
        run_slurm(run_of(tmp_path / "runs", ["ReLU Copy"], [0]), [], quiet())


def quiet():
    return Console(file=io.StringIO())
