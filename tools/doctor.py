#!/usr/bin/env python
"""Examine the installation: versions, mmcv's ops, GPUs, data, weights, room on disk. One cure per problem.

  python tools/doctor.py                 a table; exit code 1 if there is a problem
  python tools/doctor.py --json          the same for programs, and for bug reports
  python tools/doctor.py --root DIR      look for data/ and work_dirs/ below DIR instead of here

Nothing is changed, downloaded or trained. A note is something that is missing but not always needed, such as a GPU or
the data of a task that you do not run. `tools/check_data.py CONFIG` looks inside the data.
"""

import argparse
import contextlib
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

MARKS = {"ok": "  ok  ", "note": " note ", "problem": "PROBLEM"}


def parse_args() -> argparse.Namespace:
    """Flags."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--root", type=Path, default=Path(), help="folder of data/ and work_dirs/ (default: here)")
    return parser.parse_args()


def main() -> None:
    """Examine and print."""
    args = parse_args()
    try:
        from lvit_dense.experiment.doctor import examine
    except ImportError as error:
        sys.exit(
            f"PROBLEM lvit_dense cannot be imported ({error}): `make install`, then .venv/bin/python tools/doctor.py"
        )
    # the packages print greetings and warnings of their own when they are imported
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        lines = examine(args.root)
    if args.json:
        print(json.dumps([asdict(line) for line in lines], indent=1))
    else:
        group = ""
        for line in lines:
            if line.group != group:
                group = line.group
                print(f"\n{group}")
            print(f"  {MARKS[line.state]:8}{line.name:44} {line.value}")
            if line.state != "ok":
                print(f"{'':10}-> {line.cure}")
        count = {state: sum(line.state == state for line in lines) for state in MARKS}
        print(f"\n{count['problem']} problems, {count['note']} notes, {count['ok']} fine")
    sys.exit(any(line.state == "problem" for line in lines))


if __name__ == "__main__":
    main()
