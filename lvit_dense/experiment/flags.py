"""Flags that tools/train.py and tools/test.py have in common, as OpenMMLab users know them."""

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


def parse_launched(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Parse the command line and tell mmengine the local rank where the launcher gave it as a flag."""
    args = parser.parse_args()
    os.environ.setdefault("LOCAL_RANK", str(args.local_rank))
    return args
