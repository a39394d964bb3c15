"""The plan and the state of a table's runs, for the terminal."""

import time
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table as View

from lvit_dense.engine.results import read_progress
from lvit_dense.experiment.cell import Cell
from lvit_dense.experiment.cell_lock import is_running
from lvit_dense.experiment.cost import SUSTAINED, expected_cost
from lvit_dense.experiment.launchers import Run
from lvit_dense.experiment.ledger import checkpoint_problem
from lvit_dense.experiment.metrics import METRICS

REFRESH = 2.0  # seconds


def print_plan(run: Run, console: Console) -> None:
    """Every run in order: what it starts from, what it is expected to cost, its command."""
    view = View(title=f"{run.table}: {len(run.suite.cells)} runs in this order")
    for name, justify in (("run", "left"), ("starts from", "left"), ("GPU h", "right"), ("GB", "right")):
        view.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    hours = gigabytes = 0.0
    for cell in run.suite.cells:
        cost = expected_cost(cell)
        hours, gigabytes = (hours + cost.hours, gigabytes + cost.gigabytes) if cost else (hours, gigabytes)
        needs = ", ".join(needed.name for needed in run.suite.needs(cell)) or "-"
        view.add_row(cell.name, needs, *((f"{cost.hours:.0f}", f"{cost.gigabytes:.1f}") if cost else ("-", "-")))
    console.print(view)
    if hours:
        console.print(
            f"about {hours:.0f} GPU hours and {gigabytes:.0f} GB of checkpoints: an estimate from counted operations "
            f"at an assumed {SUSTAINED / 1e12:.0f} TFLOP/s, not a measurement"
        )
    print_commands(run, console)


def print_commands(run: Run, console: Console) -> None:
    """What every run consists of, one command a line."""
    for cell in run.suite.cells:
        for step in run.suite.steps_of(cell, run.gpus):
            console.print(" ".join(step.command()), soft_wrap=True, highlight=False)


def show_status(run: Run, console: Console, once: bool) -> None:
    """The state of every run, refreshed until Ctrl-C; once where asked or where there is no terminal."""
    if once or not console.is_terminal:
        console.print(status(run))
        return
    try:
        with Live(status(run), console=console, auto_refresh=False) as live:
            while True:
                time.sleep(REFRESH)
                live.update(status(run), refresh=True)
    except KeyboardInterrupt:
        pass


def status(run: Run) -> View:
    """One row per run."""
    view = View(title=f"{run.table} in {run.suite.root}")
    for name in ("run", "state", "results", "minutes"):
        view.add_column(name, overflow="fold")
    newest = run.ledger.newest()
    for cell in run.suite.cells:
        view.add_row(cell.name, *_state(run, cell, newest.get(cell.name)))
    return view


def _state(run: Run, cell: Cell, line: dict[str, Any] | None) -> tuple[str, str, str]:
    work_dir = run.suite.work_dir(cell)
    done, total = read_progress(work_dir)
    progress = f", {done} of {total} steps" if total else ""
    if is_running(work_dir):
        return f"[cyan]running{progress}[/]", "", ""
    if line is None:
        return (f"[yellow]interrupted{progress}[/]" if total else "[dim]waiting[/]"), "", ""
    if line["state"] == "failed":
        return f"[red]failed{progress}: {escape(line['error'])}[/] ({run.suite.root / line['log']})", "", ""
    problem = checkpoint_problem(line, run.suite.root)
    state = f"[red]checkpoint {problem}: {line['checkpoint']}[/]" if problem else "[green]finished[/]"
    shown = [
        f"{name} {metric.factor * line['metrics'][metric.kind][metric.name]:.1f}"
        for name, metric in METRICS.items()
        if metric.task == cell.task and metric.name in line["metrics"].get(metric.kind, {})
    ]
    return state, "  ".join(shown), f"{line['seconds'] / 60:.1f}"
