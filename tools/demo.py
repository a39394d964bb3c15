#!/usr/bin/env python
"""The whole chain on generated pictures: softmax teacher, transfer, distillation, Mask R-CNN, UperNet, a small Table D.

python tools/demo.py            about six minutes on two cores; again: only what is missing
python tools/demo.py --root work_dirs/mine --workers 4
"""

import argparse
import resource
import sys
import time
from pathlib import Path

from rich.console import Console


def main() -> None:
    """Write the data, run every step, print and save the table and the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path("work_dirs/demo"), help="folder of the runs and results")
    parser.add_argument("--data", type=Path, default=Path("data/demo"), help="folder of the generated pictures")
    parser.add_argument("--workers", type=int, default=2, help="commands at once")
    args = parser.parse_args()

    from lvit_dense.datasets.demo import write_demo
    from lvit_dense.experiment import report
    from lvit_dense.experiment.demo import TITLE, demo_suite
    from lvit_dense.experiment.schedule import run_steps

    console = Console()
    began = time.time()
    console.print(f"data     generated pictures in three layouts: {args.data}")
    write_demo(args.data)
    suite = demo_suite(args.root, args.data)
    suite.write_configs()
    outcomes = run_steps(suite.steps(), args.workers, console)
    report.write(suite, args.root, TITLE, console)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    console.print(f"{time.time() - began:.0f} s in all, at most {peak:.1f} GiB of memory per command")
    sys.exit(any(outcome.state in ("failed", "blocked") for outcome in outcomes.values()))


if __name__ == "__main__":
    main()
