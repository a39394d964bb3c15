"""Flags that several tools have in common, as OpenMMLab users know them."""

import argparse
import os
import subprocess

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


# Launcher -> its variables for rank, number of processes, and rank on this machine.
_RANKS = {
    "slurm": ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
    "mpi": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
}


def parse_launched(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Parse the command line and put what the launcher says about this process where torch and mmengine look for it."""
    args = parser.parse_args()
    for name, theirs in zip(("RANK", "WORLD_SIZE", "LOCAL_RANK"), _RANKS.get(args.launcher, ())):
        if theirs in os.environ:
            os.environ[name] = os.environ[theirs]
    if args.launcher == "slurm" and "MASTER_ADDR" not in os.environ and "SLURM_NODELIST" in os.environ:
        command = ["scontrol", "show", "hostnames", os.environ["SLURM_NODELIST"]]
        os.environ["MASTER_ADDR"] = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[
            0
        ]
    if args.launcher in _RANKS:
        os.environ.setdefault("MASTER_PORT", "29500")
    os.environ.setdefault("LOCAL_RANK", str(args.local_rank))
    return args
