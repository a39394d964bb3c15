"""Run commands that depend on each other, a few at a time, with progress bars; what is finished is not run again."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

POLL = 0.5  # seconds between two looks at the running commands


@dataclass(frozen=True)
class Step:
    """One command.

    Attributes:
        name: unique; other steps refer to it in ``needs``.
        title: what a person reads while it runs.
        command: arguments; asked for when the step starts, so that it can resume what is there by then.
        log: file for the command's output.
        done: whether its result exists already.
        needs: names of steps that must have succeeded before.
        progress: (done, total) while it runs; (0, 0) when unknown.
    """

    name: str
    title: str
    command: Callable[[], list[str]]
    log: Path
    done: Callable[[], bool]
    needs: tuple[str, ...] = ()
    progress: Callable[[], tuple[int, int]] = lambda: (0, 0)


@dataclass
class Outcome:
    """How a step ended: ``present`` (was done before), ``done``, ``failed`` or ``blocked`` (by a failed one)."""

    state: str
    seconds: float = 0.0


def run_steps(
    steps: Iterable[Step],
    workers: int = 1,
    console: Console | None = None,
    devices: Sequence[str] = (),
) -> dict[str, Outcome]:
    """Run all steps in an order that their needs allow, at most ``workers`` at once.

    A failed step stops only those that need it. Ctrl-C ends the running commands and the program; calling again
    continues. The CPU cores are shared out among the commands that can run at once.

    Args:
        devices: one ``CUDA_VISIBLE_DEVICES`` for each worker, such as ``("0,1", "2,3")``; empty = as it is.
    """
    console = console or Console()
    waiting = {step.name: step for step in steps}
    unknown = {need for step in waiting.values() for need in step.needs} - waiting.keys()
    if unknown:
        raise ValueError(f"steps need {sorted(unknown)}, which no step makes")
    outcomes: dict[str, Outcome] = {}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    running: dict[str, _Running] = {}
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the commands as Ctrl-C does
    with Progress(*columns, console=console, transient=True) as bars:
        try:
            while waiting or running:
                _start_ready(waiting, running, outcomes, workers, bars, console, devices)
                for name in [n for n, r in running.items() if r.process.poll() is not None]:
                    outcomes[name] = running.pop(name).finish(bars, console)
                for current in running.values():
                    current.show(bars)
                time.sleep(POLL if running else 0)
        except KeyboardInterrupt:
            console.print("interrupted: the same command continues")
            raise SystemExit(130) from None
        finally:
            signal.signal(signal.SIGTERM, previous)
            for current in running.values():
                current.process.terminate()
            for current in running.values():
                current.process.wait()
    return outcomes


class _Running:
    """A started command with its bar."""

    def __init__(self, step: Step, environment: dict[str, str], bars: Progress) -> None:
        self.step = step
        self.devices = environment.get("CUDA_VISIBLE_DEVICES", "")
        self.began = time.time()
        step.log.parent.mkdir(parents=True, exist_ok=True)
        with step.log.open("ab") as log:
            self.process = subprocess.Popen(step.command(), stdout=log, stderr=subprocess.STDOUT, env=environment)
        self.bar: TaskID = bars.add_task(step.title, total=None)

    def show(self, bars: Progress) -> None:
        done, total = self.step.progress()
        if total:
            bars.update(self.bar, completed=done, total=total)

    def finish(self, bars: Progress, console: Console) -> Outcome:
        bars.remove_task(self.bar)
        seconds = time.time() - self.began
        if self.process.returncode == 0 and self.step.done():
            console.print(f"[green]done[/]     {self.step.title}  [dim]{seconds:.0f} s[/]")
            return Outcome("done", seconds)
        lines = self.step.log.read_text(errors="replace").strip().splitlines()
        console.print(
            f"[red]failed[/]   {self.step.title}: {lines[-1] if lines else 'no output'}  (log: {self.step.log})"
        )
        return Outcome("failed", seconds)


def _start_ready(
    waiting: dict[str, Step],
    running: dict[str, _Running],
    outcomes: dict[str, Outcome],
    workers: int,
    bars: Progress,
    console: Console,
    devices: Sequence[str],
) -> None:
    ready = []
    for name, step in list(waiting.items()):
        states = [outcomes[need].state for need in step.needs if need in outcomes]
        if any(state in ("failed", "blocked") for state in states):
            outcomes[name] = Outcome("blocked")
            console.print(f"[yellow]blocked[/]  {step.title}: needs {', '.join(step.needs)}")
            del waiting[name]
        elif len(states) == len(step.needs):
            if step.done():
                outcomes[name] = Outcome("present")
                console.print(f"[dim]present  {step.title}[/]")
                del waiting[name]
            else:
                ready.append(step)
    started = ready[: workers - len(running)]
    if started:
        threads = max(1, (os.cpu_count() or 1) // (len(running) + len(started)))
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "PYTHONUNBUFFERED": "1"}
        for step in started:
            console.print(f"start    {step.title}")
            if devices:
                taken = {current.devices for current in running.values()}
                environment["CUDA_VISIBLE_DEVICES"] = next(d for d in devices if d not in taken)
            running[step.name] = _Running(waiting.pop(step.name), dict(environment), bars)
