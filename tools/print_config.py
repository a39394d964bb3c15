#!/usr/bin/env python
"""Print a config as it is after all of its _base_ files and overrides, or what differs between two.

  python tools/print_config.py configs/maskrcnn_relu_base.py
  python tools/print_config.py configs/maskrcnn_relu_base.py --key optim_wrapper
  python tools/print_config.py configs/maskrcnn_relu_base.py --cfg-options train_dataloader.batch_size=4 --out full.py
  python tools/print_config.py configs/maskrcnn_relu_base.py --diff configs/maskrcnn_softmax_base.py
  python tools/print_config.py configs/imagenet_ttt_base.py --recipe xu2024 --diff configs/imagenet_ttt_base.py

The output of --out is a config of its own: it has no _base_, and tools/train.py takes it.
"""

import argparse
import sys
from pathlib import Path

from mmengine.config import DictAction

from lvit_dense.experiment.flags import add_preset_flags


def parse_args() -> argparse.Namespace:
    """Flags."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", help="config file")
    add_preset_flags(parser)
    parser.add_argument("--key", help="print this part only, such as model.backbone or param_scheduler.0")
    parser.add_argument("--diff", metavar="OTHER", help="print what differs from this config: key, here, there")
    parser.add_argument("--out", type=Path, help="write the whole config to this .py file")
    parser.add_argument("--cfg-options", nargs="+", action=DictAction, metavar="KEY=VALUE", help="override settings")
    return parser.parse_args()


def main() -> None:
    """Print, compare or write."""
    args = parse_args()
    from mmengine.config import Config

    from lvit_dense.experiment.flatten import difference, part
    from lvit_dense.experiment.launch import load_config, one_line_errors

    with one_line_errors():
        cfg = load_config(args.config, args.cfg_options, args.recipe, args.data)
        other = load_config(args.diff, None) if args.diff else None
        shown = part(cfg, args.key) if args.key else cfg
    if other is not None:
        for key, (here, there) in difference(cfg.to_dict(), other.to_dict()).items():
            print(f"{key}: {here} | {there}")
    elif args.out:
        if args.out.suffix != ".py":
            sys.exit(f"error: --out {args.out}: expected a name that ends in .py")
        cfg.dump(args.out)
        print(f"{args.out} written")
    elif isinstance(shown, Config):
        print(shown.pretty_text)
    elif isinstance(shown, dict):
        print(Config(shown).pretty_text)
    else:
        print(repr(shown))


if __name__ == "__main__":
    main()
