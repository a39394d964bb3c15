"""Several processes without GPUs: tools/dist_train.sh and tools/dist_test.sh with gloo."""

import os
import subprocess
import sys

import pytest

from lvit_dense.engine.results import read_results
from lvit_dense.transfer import newest_checkpoint
from tests.chain.conftest import DETECTOR, SEGMENTOR, STUDENT, TOOLS

FAILING_HOOK = """
from mmengine.dist import get_rank
from mmengine.hooks import Hook
from mmengine.registry import HOOKS


@HOOKS.register_module()
class FailOnRankOne(Hook):
    def before_train_iter(self, runner, batch_idx, data_batch=None):
        if runner.iter == 1 and get_rank() == 1:
            raise RuntimeError("this process fails")
"""


def environment(**variables):
    return {**os.environ, "PYTHON": sys.executable, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", **variables}


def launch(*command):
    """Run a shell tool with two processes on one thread each; return its output."""
    done = subprocess.run([str(c) for c in command], env=environment(), capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


def arguments(chain, cell, folder):
    flags = chain.train_command(cell)[3:]
    return [chain.config(cell), "2", *(flag for flag in flags if flag != "--resume"), "--work-dir", folder]


def test_upernet_trains_and_is_tested_on_two_processes(chain, student, tmp_path):
    folder = tmp_path / "run"
    text = launch(TOOLS / "dist_train.sh", *arguments(chain, SEGMENTOR, folder))
    assert "SyncBN needs CUDA" in text
    assert "batch 2 x 2 processes" in text
    assert newest_checkpoint(folder).name == "iter_4.pth"
    launch(TOOLS / "dist_test.sh", chain.config(SEGMENTOR), folder, "2", "--work-dir", folder)
    results = read_results(folder)
    assert results["test"]["metrics"] == pytest.approx(results["val"]["metrics"])


@pytest.mark.slow
def test_upernet_resumes_on_two_processes(chain, student, tmp_path):
    folder = tmp_path / "run"
    train = [TOOLS / "dist_train.sh", *arguments(chain, SEGMENTOR, folder)]
    launch(*train, "--cfg-options", "train_cfg.max_iters=2")
    assert newest_checkpoint(folder).name == "iter_2.pth"
    launch(*train, "--resume")
    assert newest_checkpoint(folder).name == "iter_4.pth"


@pytest.mark.slow
@pytest.mark.parametrize("cell", [STUDENT, DETECTOR], ids=lambda cell: cell.name)
def test_distillation_and_mask_rcnn_on_two_processes(chain, student, cell, tmp_path):
    launch(TOOLS / "dist_train.sh", *arguments(chain, cell, tmp_path / "run"))
    assert "trained" in read_results(tmp_path / "run")


def test_the_scripts_say_what_they_want():
    for script, usage in (("dist_train.sh", "CONFIG GPUS"), ("dist_test.sh", "CONFIG CHECKPOINT GPUS")):
        done = subprocess.run([str(TOOLS / script)], capture_output=True, text=True)
        assert done.returncode == 2 and usage in done.stderr


@pytest.mark.slow
def test_two_nodes_meet_at_the_master_address(chain, student, tmp_path):
    """Both nodes on this machine, one process each."""
    config, _, *flags = arguments(chain, SEGMENTOR, tmp_path / "run")
    command = [str(part) for part in (TOOLS / "dist_train.sh", config, "1", *flags)]
    nodes = []
    for rank in ("0", "1"):
        variables = environment(NNODES="2", NODE_RANK=rank, MASTER_ADDR="127.0.0.1", PORT="29741")
        nodes.append(
            subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        )
    texts = [node.communicate(timeout=300)[0] for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], texts[0][-2000:] + texts[1][-2000:]
    assert "batch 2 x 2 processes" in texts[0]
    assert newest_checkpoint(tmp_path / "run").name == "iter_4.pth"


@pytest.mark.slow
def test_a_process_that_fails_ends_all_with_one_message(chain, student, tmp_path):
    """Process 1 stops in its second step while process 0 waits for its gradients."""
    (tmp_path / "failing_hook.py").write_text(FAILING_HOOK)
    config, gpus, *flags = arguments(chain, SEGMENTOR, tmp_path / "run")
    config_file = tmp_path / config.name
    config_file.write_text(
        f"_base_ = {str(config)!r}\n"
        "custom_imports = dict(imports=['failing_hook', *_base_.custom_imports.imports], allow_failed_imports=False)\n"
        "custom_hooks = [*_base_.custom_hooks, dict(type='FailOnRankOne')]\n"
    )
    command = [str(part) for part in (TOOLS / "dist_train.sh", config_file, gpus, *flags)]
    done = subprocess.run(
        command, env=environment(PYTHONPATH=str(tmp_path)), capture_output=True, text=True, timeout=120
    )
    assert done.returncode != 0
    assert (done.stdout + done.stderr).count("RuntimeError: this process fails") == 1


def test_two_nodes_need_an_address_and_a_rank():
    for variables, missing in (({}, "MASTER_ADDR"), ({"MASTER_ADDR": "127.0.0.1"}, "NODE_RANK")):
        command = [str(TOOLS / "dist_train.sh"), "config.py", "1"]
        inherited = {k: v for k, v in environment().items() if k not in ("MASTER_ADDR", "NODE_RANK")}
        done = subprocess.run(command, env={**inherited, "NNODES": "2", **variables}, capture_output=True, text=True)
        assert done.returncode != 0 and f"set {missing}" in done.stderr


@pytest.mark.slow
def test_two_jobs_on_one_machine_find_ports_of_their_own(tmp_path):
    script = tmp_path / "meet.py"
    script.write_text("import time, torch.distributed as d; d.init_process_group('gloo'); d.barrier(); time.sleep(2)")
    command = [str(TOOLS / "launch.sh"), "1", str(script)]
    jobs = [subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE, text=True) for _ in range(2)]
    errors = [job.communicate(timeout=120)[1] for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0], errors
