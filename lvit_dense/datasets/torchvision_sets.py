"""The transfer sets of the paper's Table B, and which of their folders must be there before one is opened."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torchvision.datasets
from timm.data import create_dataset
from torch.utils.data import Dataset

from lvit_dense.catalog import suggest

SPLITS = ("train", "val", "test")


class TorchvisionSet(NamedTuple):
    """A data set of torchvision.

    Attributes:
        folder: what its archive makes below the root.
        holds: what is in that folder.
        cls: its class, for sets that timm does not know by name; they have ``split`` instead of ``train``.
        train: what it calls the pictures to train on; those to measure on are ``test`` in all sets.
    """

    folder: str
    holds: str
    cls: str = ""
    train: str = "train"


SETS = {
    "torch/cifar10": TorchvisionSet("cifar-10-batches-py", "data_batch_1..5, test_batch, batches.meta"),
    "torch/cifar100": TorchvisionSet("cifar-100-python", "train, test, meta"),
    "torch/fashion_mnist": TorchvisionSet("FashionMNIST", "raw/*-ubyte"),
    "torch/stl10": TorchvisionSet("stl10_binary", "{train,test}_{X,y}.bin, unlabeled_X.bin", "STL10"),
    "torch/food101": TorchvisionSet("food-101", "images/<class>/*.jpg, meta/{train,test}.json", "Food101"),
    "torch/flowers102": TorchvisionSet("flowers-102", "jpg/image_*.jpg, imagelabels.mat, setid.mat", "Flowers102"),
    "torch/oxford_iiit_pet": TorchvisionSet(
        "oxford-iiit-pet", "images/*.jpg, annotations/{trainval,test}.txt", "OxfordIIITPet", train="trainval"
    ),
}


def expected_layout(name: str, root: str | Path) -> str:
    """One sentence: where the files of a set of ``SETS`` lie, and how to get them."""
    known = SETS[name]
    switches = " ".join(f"{split}_dataloader.dataset.download=True" for split in ("train", "val", "test"))
    return (
        f"{Path(root) / known.folder} must hold {known.holds}; put it there, set ...dataset.root, or let torchvision "
        f"fetch it with --cfg-options {switches}"
    )


def open_set(name: str, root: str, split: str, transform: Callable[[Any], Any], download: bool) -> Dataset:
    """Open one split: ``"train"``; ``"val"`` and ``"test"`` are both the test pictures.

    Raises:
        ValueError: another split.
        FileNotFoundError: the data is not there, or not whole.
    """
    known = SETS[name]
    if split not in SPLITS:
        raise ValueError(f"{name} has no split {split!r}: {suggest(split, SPLITS)}")
    if not download and not (Path(root) / known.folder).is_dir():
        raise FileNotFoundError(f"no data of {name}: {expected_layout(name, root)}")
    try:
        if not known.cls:
            return create_dataset(name, root=root, split=split, transform=transform, download=download)
        chosen = known.train if split == "train" else "test"
        cls = getattr(torchvision.datasets, known.cls)
        return cls(root, split=chosen, transform=transform, download=download)
    except (RuntimeError, OSError) as error:
        raise FileNotFoundError(f"cannot open {name} ({error}): {expected_layout(name, root)}") from error
