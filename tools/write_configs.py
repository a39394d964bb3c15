#!/usr/bin/env python
"""Write the leaf configs, configs/{imagenet,maskrcnn,upernet}_OPERATOR_SIZE.py, and the metafile that lists them.

python tools/write_configs.py            write them
python tools/write_configs.py --check    exit with 1 and name every file that is not what would be written
"""

import argparse
import sys
from pathlib import Path

from lvit_dense.experiment.leaves import leaves
from lvit_dense.experiment.model_index import METAFILE, metafile


def main() -> None:
    """Write or check all leaf configs and their metafile."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with what is there and write nothing")
    check = parser.parse_args().check
    folder = Path(__file__).resolve().parent.parent / "configs"
    expected = {**leaves(), METAFILE: metafile()}
    stale = {p.name for p in folder.glob("*.py")} - expected.keys()
    wrong = {
        name for name, text in expected.items() if not (folder / name).is_file() or (folder / name).read_text() != text
    }
    if check:
        for name in sorted(wrong | stale):
            print(f"configs/{name} {'has no generator' if name in stale else 'is not up to date'}")
        print(f"{len(expected)} files, {len(wrong)} not up to date, {len(stale)} unknown")
        sys.exit(bool(wrong | stale))
    for name in sorted(wrong):
        (folder / name).write_text(expected[name])
    print(f"{len(expected)} files, {len(wrong)} written")


if __name__ == "__main__":
    main()
