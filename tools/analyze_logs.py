#!/usr/bin/env python
"""Curves and a table from what one or several runs logged, also while they run.

  python tools/analyze_logs.py work_dirs/maskrcnn_relu_base@mlpcopy+distill
  python tools/analyze_logs.py work_dirs/imagenet_relu_tiny@* --out curves.png
  python tools/analyze_logs.py RUN --keys 'loss*' lr                    other keys, * and ? as in file names
  python tools/analyze_logs.py RUN --keys list                          what can be drawn

A run is a work dir, one of its time-stamped folders, or a vis_data/scalars.json. A resumed run is joined from all its
starts. Validation points stand at the training iteration they belong to, and are marked: there may be few of them.
"""

import argparse
import sys
from pathlib import Path


def parse_args() -> argparse.Namespace:
    """Flags."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN", help="work dir, time-stamped folder, or scalars.json"
    )
    parser.add_argument(
        "--keys", nargs="+", default=[], metavar="KEY", help="what to draw (default: loss, main metrics)"
    )
    parser.add_argument("--out", type=Path, default=Path("curves.png"), help="PNG, PDF or SVG (default: curves.png)")
    parser.add_argument("--smooth", type=float, default=0.0, help="share of the running mean, 0..1 (default 0: none)")
    return parser.parse_args()


def main() -> None:
    """Read, print the table, draw."""
    args = parse_args()
    if not 0 <= args.smooth < 1:
        sys.exit(f"error: --smooth {args.smooth}: expected a number from 0 to below 1")
    from rich.console import Console
    from rich.table import Table

    from lvit_dense.experiment.curves import choose, draw, read_log, summary

    try:
        logs = [read_log(path) for path in args.runs]
        if args.keys == ["list"]:
            print("\n".join(sorted({key for log in logs for key in (*log.train, *log.val)})))
            return
        keys = choose(logs, args.keys)
    except (FileNotFoundError, KeyError) as error:
        sys.exit(f"error: {error.args[0]}")
    rows = summary(logs)
    table = Table(*dict.fromkeys(key for row in rows for key in row))
    table.columns[0].overflow = "fold"
    for row in rows:
        table.add_row(*(row.get(str(column.header), "-") for column in table.columns))
    Console().print(table)
    if not any(keys):
        sys.exit("error: nothing was logged yet")
    draw(logs, keys, args.out, args.smooth)
    print(f"{args.out}: {', '.join(keys[0] + keys[1])}")


if __name__ == "__main__":
    main()
