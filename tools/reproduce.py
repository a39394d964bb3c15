#!/usr/bin/env python
"""Reproduce a table: every run it needs, in order, resumable, and the report beside the paper's numbers.

python tools/reproduce.py plan table_d                         what would run: order, upstream, cost, commands
python tools/reproduce.py run table_d --dry-run                the commands alone
python tools/reproduce.py run small                            Tables D and E at a small scale: half an hour, two cores
python tools/reproduce.py run table_d --gpus 8                 on this machine, 8 GPUs per run (torchrun)
python tools/reproduce.py run table_d --rows mlpcopy --seeds 0 1 2
python tools/reproduce.py run table_d --launcher slurm --gpus 8 --sbatch-flags="--partition=gpu --time=72:00:00"
python tools/reproduce.py status table_d                       live; Ctrl-C ends the view, not the runs
python tools/reproduce.py report table_d --check               Markdown, CSV, JSON, HTML, PNG; exit 1 on a miss

Finished runs are not run again, a failed run does not stop those that do not need it, and `run` after an interruption
continues. Runs share ROOT (default work_dirs, small: work_dirs/small): tables that need the same run train it once.
"""

import argparse
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from lvit_dense.experiment.launchers import Run
    from lvit_dense.experiment.reproduction import Table


def main() -> None:
    """Read the flags and do what the first word says."""
    args = parse_args()
    from lvit_dense.experiment.launch import one_line_errors

    console = Console()
    with one_line_errors():
        sys.exit(0 if ACTIONS[args.action](args, console) else 1)


def parse_args() -> argparse.Namespace:
    """Action, table and the choice of rows and seeds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=list(ACTIONS))
    parser.add_argument("table", help="table_1, table_2, table_d, table_e, table_g or small")
    parser.add_argument("--rows", nargs="+", metavar="TEXT", help="only rows whose label contains one of these texts")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0], help="default: 0; the paper has three")
    parser.add_argument("--root", type=Path, help="folder of the runs and the ledger")
    parser.add_argument("--gpus", type=int, default=1, help="GPUs of each run (CPU: 1)")
    parser.add_argument("--dry-run", action="store_true", help="plan, run: print every command and run nothing")
    run = parser.add_argument_group("run")
    run.add_argument("--launcher", choices=("local", "slurm"), default="local")
    run.add_argument("--workers", type=int, help="runs at once here (default: as many as the GPUs give; CPU: 2)")
    run.add_argument("--sbatch-flags", default="", help="further flags of sbatch, in one quoted text")
    parser.add_argument("--once", action="store_true", help="status: print once")
    parser.add_argument("--check", action="store_true", help="report: exit 1 where a number misses its tolerance")
    parser.add_argument("--cell", help=argparse.SUPPRESS)  # the launchers' own: run this cell and record it
    return parser.parse_args()


def plan(args: argparse.Namespace, console: Console) -> bool:
    """Print what would run."""
    from lvit_dense.experiment.views import print_commands, print_plan

    run = build(args)
    (print_commands if args.dry_run else print_plan)(run, console)
    return True


def run(args: argparse.Namespace, console: Console) -> bool:
    """Run what is missing, then report."""
    from lvit_dense.experiment.launchers import run_local, run_slurm

    if args.dry_run:
        return plan(args, console)
    ready = build(args)
    table_of(args).prepare(ready.suite.root)
    ready.suite.write_configs()
    if args.launcher == "slurm":
        run_slurm(ready, shlex.split(args.sbatch_flags), console)
        return True
    devices = devices_of(args.gpus)
    workers = args.workers or len(devices) or 2
    complete = run_local(ready, workers, devices[:workers], console)
    return report(args, console) and complete


def cell(args: argparse.Namespace, console: Console) -> bool:
    """Run one cell and write its ledger line."""
    from lvit_dense.experiment.cell import Cell
    from lvit_dense.experiment.run_cell import run_cell

    wanted = Cell.parse(args.cell)
    args.seeds = [wanted.seed]
    ready = build(args)
    replace(ready.suite, cells=(wanted,)).write_configs()
    return run_cell(ready.suite, wanted, ready.ledger, args.gpus)


def status(args: argparse.Namespace, console: Console) -> bool:
    """Show the state of every run."""
    from lvit_dense.experiment.views import show_status

    show_status(build(args), console, args.once)
    return True


def report(args: argparse.Namespace, console: Console) -> bool:
    """Write the report; with ``--check`` say whether every number is within its tolerance."""
    from lvit_dense.experiment.results_table import collect, misses
    from lvit_dense.experiment.table_report import write_report

    table, ready = table_of(args), build(args)
    rows = collect(table, table.select(args.rows), ready.ledger, args.seeds)
    write_report(table, args.table, rows, ready, console)
    missed = misses(table, rows)
    for text in missed:
        console.print(f"[red]miss[/]     {text}")
    return not (args.check and missed)


def table_of(args: argparse.Namespace) -> "Table":
    """The table by its name."""
    from lvit_dense.experiment.reproduction import TABLES

    return TABLES.get(args.table)()


def build(args: argparse.Namespace) -> "Run":
    """The runs of the chosen rows and seeds, with their ledger."""
    from lvit_dense.experiment.launchers import Run
    from lvit_dense.experiment.ledger import LEDGER, Ledger

    table = table_of(args)
    root = args.root or (Path("work_dirs") if table.comparable else Path("work_dirs") / args.table)
    suite = table.suite(root, table.cells(table.select(args.rows), args.seeds))
    return Run(args.table, suite, Ledger(root / LEDGER), args.gpus)


def devices_of(gpus: int) -> list[str]:
    """This machine's GPUs in groups of ``gpus``; empty without GPUs.

    Raises:
        ValueError: fewer GPUs than one run wants.
    """
    import torch

    count = torch.cuda.device_count()
    if count < gpus and (count or gpus > 1):
        raise ValueError(f"--gpus {gpus}: this machine has {count}; give at most {max(count, 1)}")
    return [",".join(map(str, range(first, first + gpus))) for first in range(0, count - gpus + 1, gpus)]


ACTIONS = {"plan": plan, "run": run, "status": status, "report": report, "cell": cell}

if __name__ == "__main__":
    main()
