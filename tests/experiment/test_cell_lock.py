"""The lock of a work dir: who holds it, and for how long."""

import subprocess
import sys

from lvit_dense.experiment.cell_lock import alone, is_running


def test_it_is_held_inside_only(tmp_path):
    work_dir = tmp_path / "runs" / "cell"
    assert not is_running(work_dir)
    with alone(work_dir):
        assert is_running(work_dir)
    assert not is_running(work_dir)


def test_a_command_that_outlives_its_starter_keeps_it(tmp_path):
    with alone(tmp_path) as lock:
        command = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(lock,))
    assert is_running(tmp_path)
    command.communicate(b"\n")
    assert not is_running(tmp_path)
