#!/usr/bin/env python
"""Compare arms at a small scale on real input; a second call continues where the first stopped.

python tools/small_scale.py ../shared/real                      train what is missing, print the table
python tools/small_scale.py ../shared/real --tasks imagenet     the classification stage only
python tools/small_scale.py ../shared/real --commands           print every command and run nothing
"""

import argparse
import shlex
import sys
from dataclasses import replace
from pathlib import Path

from rich.console import Console


def main() -> None:
    """Run the steps and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with the weights, objects/ and scenes/")
    parser.add_argument("--root", type=Path, default=Path("work_dirs/real"), help="folder of the runs and results")
    parser.add_argument("--workers", type=int, default=2, help="commands at once")
    parser.add_argument("--tasks", nargs="+", default=["imagenet", "maskrcnn", "upernet"], help="stages to run")
    parser.add_argument("--commands", action="store_true", help="print the commands only")
    args = parser.parse_args()

    from lvit_dense.experiment import report
    from lvit_dense.experiment.schedule import run_steps
    from lvit_dense.experiment.small_scale import real_suite

    whole = real_suite(args.root, args.data)
    suite = replace(whole, cells=tuple(cell for cell in whole.cells if cell.task in args.tasks))
    suite.write_configs()
    if args.commands:
        print("\n".join(shlex.join(step.command()) for step in suite.steps()))
        return
    console = Console()
    outcomes = run_steps(suite.steps(), args.workers, console)
    report.write(whole, args.root, "ViT-S/14 students on real pictures (validation, in percent)", console)
    sys.exit(any(outcome.state in ("failed", "blocked") for outcome in outcomes.values()))


if __name__ == "__main__":
    main()
