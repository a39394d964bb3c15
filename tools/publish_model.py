#!/usr/bin/env python
"""Make a file for others of a run's checkpoint: weights and facts alone, the beginning of its SHA-256 in its name.

  python tools/publish_model.py work_dirs/maskrcnn_relu_base@mlpcopy+distill zoo/maskrcnn_relu_base.pth
      writes zoo/maskrcnn_relu_base-1a2b3c4d.pth
  python tools/publish_model.py work_dirs/upernet_relu_base@random/iter_160000.pth zoo/upernet_relu_base.pth \\
      --metafile zoo/metafile.yml
      and adds a row (name, collection, config, results from results.jsonl, file, sha256) to zoo/metafile.yml

Optimiser, schedules, message hub, random states and the second set of weights of an EMA are left out. tools/test.py,
--teacher, and a dense config's transfer.source take the new file as they take the old one; it can be read with
torch.load(FILE, weights_only=True). The text of the run's config stays in it (the inferencers of mmdet and mmseg want
it), with the paths that it names.
"""

import argparse
from pathlib import Path


def parse_args() -> argparse.Namespace:
    """Flags."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path, help="a .pth file, or a work dir (its newest checkpoint)")
    parser.add_argument("out", type=Path, metavar="OUT.pth", help="where to; the hash is put before .pth")
    parser.add_argument("--metafile", type=Path, metavar="FILE", help="add a row for the model to this .yml file")
    return parser.parse_args()


def main() -> None:
    """Publish, then say what was written and what was left out."""
    args = parse_args()
    from lvit_dense.experiment.launch import one_line_errors
    from lvit_dense.experiment.publish import add_row, find_checkpoint, metafile_row, publish

    with one_line_errors():
        checkpoint = find_checkpoint(args.checkpoint)
        published = publish(checkpoint, args.out)
    before, after = (path.stat().st_size / 1e6 for path in (checkpoint, published.path))
    print(f"{published.path}: {after:.1f} MB of {checkpoint}'s {before:.1f} MB; sha256 {published.sha256}")
    print(f"left out of meta: {', '.join(published.left_out) or 'nothing'}")
    if args.metafile:
        with one_line_errors():
            row = metafile_row(checkpoint, published)
            add_row(args.metafile, row)
        found = ", ".join(f"{name} {value}" for result in row["Results"] for name, value in result["Metrics"].items())
        print(f"{args.metafile}: {row['Name']}: {found or 'no results of this checkpoint in results.jsonl'}")


if __name__ == "__main__":
    main()
