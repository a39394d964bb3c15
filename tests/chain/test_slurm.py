"""tools/slurm_*.sh with an srun that writes down how it was called and starts the tasks on this machine."""

import json
import os
import subprocess
import sys

import pytest

from lvit_dense.engine.results import read_results
from tests.chain.conftest import SEGMENTOR, TOOLS

SRUN = """#!{python}
import json, os, subprocess, sys
at = sys.argv.index({python!r})
json.dump(sys.argv[1:at], open(os.environ["SRUN_LOG"], "w"))
tasks = int(next(a for a in sys.argv if a.startswith("--ntasks=")).split("=")[1])
if os.environ.get("SRUN_DRY"):
    print(json.dumps(sys.argv[at:]))
    sys.exit()
running = []
for task in range(tasks):
    slurm = dict(SLURM_PROCID=str(task), SLURM_NTASKS=str(tasks), SLURM_LOCALID=str(task), SLURM_NODELIST="node[1-2]")
    running.append(subprocess.Popen(sys.argv[at:], env=dict(os.environ, **slurm)))
sys.exit(max(process.wait() for process in running))
"""
SCONTROL = "#!/bin/sh\n[ \"$*\" = 'show hostnames node[1-2]' ] && echo 127.0.0.1 && echo 127.0.0.2\n"


@pytest.fixture
def slurm(tmp_path):
    """Call a script on a machine with this srun; its output, and the arguments of srun."""
    for name, text in (("srun", SRUN.format(python=sys.executable)), ("scontrol", SCONTROL)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)

    def call(script, *arguments, **variables):
        log = tmp_path / "srun.json"
        outer = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")}
        own = dict(PATH=f"{tmp_path}:{os.environ['PATH']}", PYTHON=sys.executable, SRUN_LOG=str(log))
        environment = {**outer, **own, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", **variables}
        command = [str(TOOLS / script), *map(str, arguments)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
        return done.stdout + done.stderr, json.loads(log.read_text())

    return call


def test_variables_become_arguments_of_srun(slurm):
    text, flags = slurm("slurm_train.sh", "gpu", "my job", "configs/a.py", "work", "--amp", SRUN_DRY="1")
    assert flags == [
        "-p", "gpu", "--job-name=my job", "--gres=gpu:8", "--ntasks=8", "--ntasks-per-node=8", "--cpus-per-task=5",
        "--kill-on-bad-exit=1",
    ]  # fmt: skip
    command = json.loads(text)
    assert command[1] == "-u" and command[2].endswith("tools/train.py")
    assert command[3:] == ["configs/a.py", "--work-dir", "work", "--amp", "--launcher", "slurm"]

    variables = dict(GPUS="16", GPUS_PER_NODE="4", CPUS_PER_TASK="7", SRUN_ARGS="--qos high --exclusive")
    text, flags = slurm("slurm_test.sh", "gpu", "job", "configs/a.py", "a.pth", "--tta", SRUN_DRY="1", **variables)
    assert flags[3:] == [
        "--gres=gpu:4", "--ntasks=16", "--ntasks-per-node=4", "--cpus-per-task=7", "--kill-on-bad-exit=1", "--qos",
        "high", "--exclusive",
    ]  # fmt: skip
    assert json.loads(text)[3:] == ["configs/a.py", "a.pth", "--tta", "--launcher", "slurm"]
    _, flags = slurm("slurm_test.sh", "gpu", "job", "configs/a.py", "a.pth", SRUN_DRY="1", GPUS="1")
    assert flags[3:6] == ["--gres=gpu:1", "--ntasks=1", "--ntasks-per-node=1"]


@pytest.mark.slow
def test_two_tasks_train_and_are_tested(slurm, chain, student, tmp_path):
    folder = tmp_path / "run"
    flags = [flag for flag in chain.train_command(SEGMENTOR)[3:] if flag != "--resume"]
    variables = dict(GPUS="2", PORT="29731")
    text, _ = slurm("slurm_train.sh", "gpu", "job", chain.config(SEGMENTOR), folder, *flags, **variables)
    assert "batch 2 x 2 processes" in text
    slurm("slurm_test.sh", "gpu", "job", chain.config(SEGMENTOR), folder, "--work-dir", folder, **variables)
    results = read_results(folder)
    assert results["test"]["metrics"] == pytest.approx(results["val"]["metrics"])


def test_the_scripts_say_what_they_want():
    for script, usage in (("slurm_train.sh", "CONFIG WORK_DIR"), ("slurm_test.sh", "CONFIG CHECKPOINT")):
        done = subprocess.run([str(TOOLS / script), "partition"], capture_output=True, text=True)
        assert done.returncode == 2 and f"PARTITION JOB_NAME {usage}" in done.stderr and "GPUS" in done.stderr
