"""Flags that several tools have in common, as OpenMMLab users know them."""

import argparse
import os

from mmengine.config import DictAction


def add_launch_flags(parser: argparse.ArgumentParser) -> None:
    """``--cfg-options``, ``--launcher`` and both spellings of the local rank."""
    parser.add_argument(
        "--cfg-options",
        nargs="+",
        action=DictAction,
        metavar="KEY=VALUE",
        help="override settings: a.b=1 list='[1,2]' a.0.b=x",
    )
    parser.add_argument("--launcher", choices=["none", "pytorch", "slurm", "mpi"], default="none")
    parser.add_argument("--local_rank", "--local-rank", type=int, default=0)


def add_preset_flags(parser: argparse.ArgumentParser) -> None:
    """``--recipe`` and ``--data``: files of configs/recipes and configs/data, merged over an ImageNet config."""
    group = parser.add_argument_group("recipe and data of the ImageNet stage")
    group.add_argument(
        "--recipe", metavar="NAME", help="configs/recipes/NAME.py over the config (default: the paper's)"
    )
    group.add_argument(
        "--data",
        metavar="NAME",
        help="configs/data/NAME.py over the config: a transfer set, or a test set (default: ImageNet)",
    )


def parse_launched(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Parse the command line and tell mmengine the local rank where the launcher gave it as a flag."""
    args = parser.parse_args()
    os.environ.setdefault("LOCAL_RANK", str(args.local_rank))
    return args
