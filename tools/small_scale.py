#!/usr/bin/env python
"""Compare arms at a small scale on real input; a second call continues where the first stopped.

python tools/small_scale.py real ../shared/real                       ViT-S/14 on real pictures: three tasks
python tools/small_scale.py real ../shared/real --tasks imagenet      its classification stage only
python tools/small_scale.py fashion FOLDER                            Fashion-MNIST: operators x plans x distillation
python tools/small_scale.py lambda FOLDER                             the weight of the distillation term, after fashion
python tools/small_scale.py fashion FOLDER --commands                 print every command and run nothing
"""

import argparse
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from lvit_dense.experiment.suite import Suite


def main() -> None:
    """Run the steps and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("comparison", choices=list(COMPARISONS))
    parser.add_argument("data", type=Path, help="folder of the data (real: weights, objects/ and scenes/)")
    parser.add_argument("--root", type=Path, help="folder of the runs and results (default: work_dirs/COMPARISON)")
    parser.add_argument("--workers", type=int, default=2, help="commands at once")
    parser.add_argument("--tasks", nargs="+", default=["imagenet", "maskrcnn", "upernet"], help="stages to run")
    parser.add_argument("--commands", action="store_true", help="print the commands only")
    args = parser.parse_args()
    root = args.root or Path("work_dirs") / args.comparison
    from lvit_dense.experiment.launch import one_line_errors
    from lvit_dense.experiment.schedule import run_steps

    console = Console()
    with one_line_errors():
        suites, report = COMPARISONS[args.comparison](root, args.data)
    failed = False
    for whole in suites:
        suite = replace(whole, cells=tuple(cell for cell in whole.cells if cell.task in args.tasks))
        suite.write_configs()
        if args.commands:
            print("\n".join(shlex.join(step.command()) for step in suite.steps()))
            continue
        outcomes = run_steps(suite.steps(), args.workers, console)
        failed |= any(outcome.state in ("failed", "blocked") for outcome in outcomes.values())
    if not args.commands:
        report(console)
    sys.exit(failed)


def real(root: Path, data: Path) -> "tuple[Sequence[Suite], Callable[[Console], None]]":
    """ViT-S/14 students on real pictures; afterwards three VOC photographs, and arms with LayerScale folded away."""
    from lvit_dense.experiment import report
    from lvit_dense.experiment.small_scale import folded_suite, real_suite, voc_suite

    suite = real_suite(root, data)
    voc, folded = voc_suite(root / "voc3", data, root), folded_suite(root / "folded", data)
    title = "ViT-S/14 students on real pictures (validation, in percent)"

    def write(console: Console) -> None:
        report.write(suite, root, title, console)
        report.write(voc, voc.root, "Three VOC photographs, trained and tested on (in percent)", console)
        report.write(folded, folded.root, f"{title}, LayerScale folded", console)

    return [suite, voc, folded], write


def fashion(root: Path, data: Path) -> "tuple[Sequence[Suite], Callable[[Console], None]]":
    """The grid on Fashion-MNIST."""
    from lvit_dense.experiment.fashion import fashion_suite, prepare
    from lvit_dense.experiment.fashion_report import write_grid

    suite = fashion_suite(root, prepare(data, Path("data/fashion")))
    return [suite], lambda console: write_grid(suite, root, console)


def sweep(root: Path, data: Path) -> "tuple[Sequence[Suite], Callable[[Console], None]]":
    """Lambda on Fashion-MNIST, with the teacher that the grid trained."""
    from lvit_dense.experiment.fashion import TEACHER, prepare, sweep_suites
    from lvit_dense.experiment.fashion_report import write_sweep

    teacher = TEACHER.work_dir(root.parent / "fashion")
    suites = sweep_suites(root, prepare(data, Path("data/fashion")), teacher)
    return list(suites.values()), lambda console: write_sweep(root, suites, console)


COMPARISONS = {"real": real, "fashion": fashion, "lambda": sweep}

if __name__ == "__main__":
    main()
