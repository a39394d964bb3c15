#!/usr/bin/env python
"""Draw what a config's data set gives to the model: boxes and masks, label maps, or class names.

  python tools/browse_dataset.py configs/maskrcnn_relu_base.py                     16 training samples, as augmented
  python tools/browse_dataset.py configs/upernet_relu_base.py --raw --count 9      as they lie on disk
  python tools/browse_dataset.py configs/imagenet_relu_base.py --split val --out sheets/imagenet
  python tools/browse_dataset.py configs/imagenet_relu_base.py --recipe xu2024     its augmentation

Writes one picture per sample and a sheet of all of them, sheet.png. Colours, names and masks that look wrong here are
wrong in training too. Samples are taken at equal distances; augmentation is random with --seed.
"""

import argparse
from pathlib import Path

from mmengine.config import DictAction

from lvit_dense.experiment.flags import add_preset_flags


def parse_args() -> argparse.Namespace:
    """Flags."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", help="config file")
    add_preset_flags(parser)
    parser.add_argument("--split", choices=["train", "val", "test"], default="train")
    parser.add_argument("--count", type=int, default=16, help="samples (default 16)")
    parser.add_argument("--raw", action="store_true", help="without transforms between reading and packing")
    parser.add_argument("--out", type=Path, help="folder (default: work_dirs/browse/CONFIG_SPLIT)")
    parser.add_argument("--seed", type=int, default=0, help="of the augmentation (default 0)")
    parser.add_argument("--cfg-options", nargs="+", action=DictAction, metavar="KEY=VALUE", help="override settings")
    args = parser.parse_args()
    if args.count < 1:
        parser.error(f"--count {args.count}: expected at least 1")
    return args


def main() -> None:
    """Draw and write."""
    args = parse_args()
    from mmengine.runner import set_random_seed
    from rich.progress import track

    from lvit_dense.datasets.checks import quick_check
    from lvit_dense.experiment.browse import contact_sheet, draw_samples, open_dataset, save
    from lvit_dense.experiment.launch import load_config, one_line_errors

    folder = args.out or Path("work_dirs/browse") / f"{Path(args.config).stem}_{args.split}"
    with one_line_errors():
        cfg = load_config(args.config, args.cfg_options, args.recipe, args.data)
        quick_check(cfg, (args.split,))
        set_random_seed(args.seed)
        dataset = open_dataset(cfg, args.split, args.raw)
    pictures = []
    drawn = draw_samples(cfg, dataset, args.count, args.split)
    for name, picture in track(drawn, total=min(args.count, len(dataset)), description="drawing"):
        save(picture, folder / f"{name}.png")
        pictures.append(picture)
    save(contact_sheet(pictures), folder / "sheet.png")
    print(f"{len(pictures)} of {len(dataset)} samples in {folder}; all of them on {folder / 'sheet.png'}")


if __name__ == "__main__":
    main()
