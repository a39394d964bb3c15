"""Several processes without GPUs: tools/dist_train.sh and tools/dist_test.sh with gloo."""

import os
import subprocess
import sys

import pytest

from lvit_dense.engine.results import read_results
from lvit_dense.transfer import newest_checkpoint
from tests.chain.conftest import DETECTOR, SEGMENTOR, STUDENT, TOOLS


def launch(*command):
    """Run a shell tool with two processes on one thread each; return its output."""
    environment = {**os.environ, "PYTHON": sys.executable, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([str(c) for c in command], env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


def arguments(chain, cell, folder):
    flags = chain.train_command(cell)[3:]
    return [chain.config(cell), "2", *(flag for flag in flags if flag != "--resume"), "--work-dir", folder]


def test_upernet_trains_resumes_and_is_tested_on_two_processes(chain, student, tmp_path):
    folder = tmp_path / "run"
    train = [TOOLS / "dist_train.sh", *arguments(chain, SEGMENTOR, folder)]
    text = launch(*train, "--cfg-options", "train_cfg.max_iters=2")
    assert "SyncBN needs CUDA" in text
    assert "batch 2 x 2 processes" in text
    assert newest_checkpoint(folder).name == "iter_2.pth"
    launch(*train, "--resume")
    assert newest_checkpoint(folder).name == "iter_4.pth"
    launch(TOOLS / "dist_test.sh", chain.config(SEGMENTOR), folder, "2", "--work-dir", folder)
    results = read_results(folder)
    assert results["test"]["metrics"] == pytest.approx(results["val"]["metrics"])


@pytest.mark.slow
@pytest.mark.parametrize("cell", [STUDENT, DETECTOR], ids=lambda cell: cell.name)
def test_distillation_and_mask_rcnn_on_two_processes(chain, student, cell, tmp_path):
    launch(TOOLS / "dist_train.sh", *arguments(chain, cell, tmp_path / "run"))
    assert "trained" in read_results(tmp_path / "run")


def test_the_scripts_say_what_they_want():
    for script, usage in (("dist_train.sh", "CONFIG GPUS"), ("dist_test.sh", "CONFIG CHECKPOINT GPUS")):
        done = subprocess.run([str(TOOLS / script)], capture_output=True, text=True)
        assert done.returncode == 2 and usage in done.stderr
