#!/usr/bin/env python
"""Check the data of a config before it costs a training run: files, sizes, names, annotations, label values.

  python tools/check_data.py configs/maskrcnn_relu_base.py             annotation files whole, 200 pictures of each set
  python tools/check_data.py configs/upernet_relu_base.py --all        every picture and label file
  python tools/check_data.py configs/upernet_relu_base.py --all --report bad.json
  python tools/check_data.py CONFIG --splits val --cfg-options val_dataloader.dataset.data_root=DIR
  python tools/check_data.py configs/imagenet_relu_base.py --data imagenet_a --splits test

Each finding is one line: file, what was found, what was expected, the cure. The exit code is 1 if a finding is fatal
(training or evaluation would fail or be wrong), else 0. docs/data.md explains the kinds.
"""

import argparse
import json
import os
import sys
from pathlib import Path

from mmengine.config import DictAction

from lvit_dense.experiment.flags import add_preset_flags


def parse_args() -> argparse.Namespace:
    """Flags."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", help="config file, such as configs/maskrcnn_relu_base.py")
    add_preset_flags(parser)
    parser.add_argument("--all", action="store_true", help="open every picture, not 200 of each set")
    parser.add_argument("--report", metavar="FILE", help="write counts and all findings to this JSON file")
    parser.add_argument("--splits", nargs="+", default=["train", "val", "test"], choices=["train", "val", "test"])
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes (default: one per core)")
    parser.add_argument("--lines", type=int, default=5, help="findings shown of each kind (default 5)")
    parser.add_argument("--cfg-options", nargs="+", action=DictAction, metavar="KEY=VALUE", help="override settings")
    return parser.parse_args()


def main() -> None:
    """Check, print, report."""
    args = parse_args()
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from lvit_dense.datasets.checks import check
    from lvit_dense.datasets.checks.finding import counts, report
    from lvit_dense.experiment.launch import load_config, one_line_errors

    with one_line_errors():
        cfg = load_config(args.config, args.cfg_options, args.recipe, args.data)
    bars = {}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:

        def show(title: str, done: int, total: int) -> None:
            if title not in bars:
                bars[title] = progress.add_task(title, total=total)
            progress.update(bars[title], completed=done)

        with one_line_errors(KeyError):
            result = check(cfg, args.splits, None if args.all else 200, args.workers, show)
    for title, amounts in result.checked.items():
        print(f"{title}: {', '.join(f'{amount} {name}' for name, amount in amounts.items())}")
    for kind, count in counts(result.findings).items():
        of_kind = [finding for finding in result.findings if finding.kind == kind]
        print(f"\n{kind}: {count}{' (fatal)' if any(finding.fatal for finding in of_kind) else ''}")
        for finding in of_kind[: args.lines]:
            print(f"  {finding.line()}")
        if count > args.lines:
            print(f"  ... {count - args.lines} more{'' if args.report else '; --report FILE lists all'}")
    fatal = sum(finding.fatal for finding in result.findings)
    if args.report:
        Path(args.report).write_text(json.dumps(report(result.findings, result.checked), indent=1))
    print(
        f"\n{fatal} fatal findings, {len(result.findings) - fatal} notes" if result.findings else "nothing wrong found"
    )
    sys.exit(1 if fatal else 0)


if __name__ == "__main__":
    main()
