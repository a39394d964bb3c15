"""The ready-list: order, failures, what is present, resumption."""

import io
import os
import signal
import sys
import threading
import time

import pytest
from rich.console import Console

from lvit_dense.experiment.schedule import Step, run_steps


@pytest.fixture
def make(tmp_path):
    order = tmp_path / "order.txt"

    def step(name, *needs, fail=False):
        result = tmp_path / f"{name}.result"
        code = f"open({str(order)!r}, 'a').write('{name}\\n');" + (
            "raise SystemExit('the cause')" if fail else f"open({str(result)!r}, 'w').write('x')"
        )
        return Step(
            name,
            f"title of {name}",
            lambda: [sys.executable, "-c", code],
            tmp_path / f"{name}.log",
            result.exists,
            needs,
        )

    step.order = lambda: order.read_text().split() if order.exists() else []
    return step


def run(steps, **kwargs):
    text = io.StringIO()
    outcomes = run_steps(steps, console=Console(file=text, width=200), **kwargs)
    return {name: outcome.state for name, outcome in outcomes.items()}, text.getvalue()


def test_needs_come_first_and_a_second_run_does_nothing(make):
    steps = [make("c", "a", "b"), make("a"), make("b", "a")]
    assert run(steps, workers=2)[0] == {"a": "done", "b": "done", "c": "done"}
    assert make.order() == ["a", "b", "c"]
    assert set(run(steps)[0].values()) == {"present"}
    assert make.order() == ["a", "b", "c"]


def test_a_failure_stops_only_what_needs_it_and_shows_its_last_line(make):
    states, text = run([make("a", fail=True), make("b", "a"), make("c", "b"), make("d")], workers=2)
    assert states == {"a": "failed", "b": "blocked", "c": "blocked", "d": "done"}
    assert "the cause" in text and "a.log" in text


def test_an_unknown_need_is_an_error_before_anything_runs(make):
    with pytest.raises(ValueError, match="zz"):
        run([make("a"), make("b", "zz")])
    assert make.order() == []


def test_exit_code_zero_without_the_result_is_a_failure(tmp_path):
    step = Step("a", "a", lambda: [sys.executable, "-c", "pass"], tmp_path / "log", lambda: False)
    assert run([step])[0] == {"a": "failed"}


def test_an_interruption_ends_the_commands_and_a_second_call_continues(tmp_path):
    result = tmp_path / "result"
    slow = f"import time; open({str(tmp_path / 'started')!r}, 'w'); time.sleep(60)"
    quick = f"open({str(result)!r}, 'w')"
    commands = iter([slow, quick])
    step = Step("a", "a", lambda: [sys.executable, "-c", next(commands)], tmp_path / "log", result.exists)

    def interrupt():
        while not (tmp_path / "started").exists():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=interrupt).start()
    with pytest.raises(SystemExit) as end:
        run([step])
    assert end.value.code == 130
    assert run([step])[0] == {"a": "done"}
