"""Classification data of any kind that timm or torchvision know, behind mmengine's data set interface."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mmengine.dist import barrier, is_main_process
from mmengine.registry import DATASETS
from timm.data import create_dataset, create_transform
from torch.utils.data import Dataset
from torchvision.transforms import v2

from lvit_dense.catalog import naming_unknown_arguments
from lvit_dense.datasets.imagenet_labels import imagenet_labels
from lvit_dense.datasets.torchvision_sets import SETS, open_set


@DATASETS.register_module()
class TimmDataset(Dataset):
    """Pictures as normalised tensors, ``dict(inputs=(3, H, W) float32, targets=int)``.

    Args:
        root: folder of the data; for an ImageFolder it holds ``train/<class>/*`` and ``val/<class>/*``.
        split: ``"train"``, ``"val"`` or another folder below root, or a split that the data set knows.
        name: ``""`` = ImageFolder, a set of torchvision such as ``"torch/cifar10"`` or ``"torch/flowers102"``, or
            another of timm's names (``"hfds/..."``, ...).
        transform: arguments of :func:`timm.data.create_transform`; ``is_training`` follows ``split``.
        download: fetch the data where its library can; only ever done when asked for.

    Raises:
        FileNotFoundError: no such root or split, or no data and no ``download``.
        ValueError: a split that the set does not have, or training pictures under a name that would not be augmented.
    """

    @naming_unknown_arguments
    def __init__(
        self,
        root: str,
        split: str,
        transform: Mapping[str, Any],
        name: str = "",
        download: bool = False,
    ) -> None:
        if split != "train" and split.startswith("train"):
            raise ValueError(f"split={split!r} would be read without augmentation: call the training folder 'train'")
        self.split = split
        # torchvision's data sets hand out pictures as they are stored, grey ones (MNIST and its kin) among them
        changes = v2.Compose([v2.RGB(), create_transform(is_training=split == "train", **transform)])
        waits = download and not is_main_process()  # for the first process, which fetches
        if waits:
            barrier()
        self._data = self._open(root, split, name, changes, download and not waits)
        if download and not waits:
            barrier()

    def _open(self, root: str, split: str, name: str, changes: v2.Compose, download: bool) -> Any:
        if name in SETS:
            return open_set(name, root, split, changes, download)
        if name == "" and not (Path(root) / split).is_dir():
            raise FileNotFoundError(
                f"no folder {Path(root) / split}: an ImageFolder holds train/<class>/*.jpg and val/<class>/*.jpg; "
                "point to it with --cfg-options train_dataloader.dataset.root=... val_dataloader.dataset.root=..."
            )
        return create_dataset(name, root=root, split=split, is_training=False, download=download, transform=changes)

    @property
    def metainfo(self) -> dict[str, Any]:
        """``classes``: the class names in label order, where the data set has names."""
        reader = getattr(self._data, "reader", self._data)
        classes = getattr(reader, "class_to_idx", None) or {}
        return {"classes": tuple(sorted(classes, key=classes.__getitem__))}

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, index: int) -> dict[str, Any]:
        image, target = self._data[index]
        return {"inputs": image, "targets": target}


@DATASETS.register_module()
class ImageNetFolders(TimmDataset):
    """Test pictures with ImageNet-1K's labels, in folders named by WordNet id (n01440764) or by label (0 to 999).

    Targets are labels of all 1000 classes; ``metainfo["labels"]`` holds those that the data has, for metrics that
    compare these alone (ImageNet-A and -R have 200).

    Args:
        root, split, transform: see :class:`TimmDataset`; ``split=""`` = the class folders lie in root itself.
        num_classes: class folders that the complete data has.

    Raises:
        FileNotFoundError: no such folder.
        DataError: folders of other names, or not as many as the data has.
    """

    @naming_unknown_arguments
    def __init__(self, root: str, split: str, transform: Mapping[str, Any], num_classes: int) -> None:
        folder = Path(root) / split
        if not folder.is_dir():
            raise FileNotFoundError(
                f"no folder {folder}: expected {num_classes} class folders of ImageNet-1K in it; point to it with "
                "--cfg-options test_dataloader.dataset.root=..."
            )
        self._labels = imagenet_labels(folder, num_classes)
        super().__init__(root, split, transform)

    def _open(self, root: str, split: str, name: str, changes: v2.Compose, download: bool) -> Any:
        return create_dataset(name, root=root, split=split, class_map=self._labels, transform=changes)

    @property
    def metainfo(self) -> dict[str, Any]:
        """``classes`` (folder names) and ``labels`` (their numbers in ImageNet-1K), by number."""
        pairs = sorted((label, folder) for folder, label in self._labels.items())
        return {"classes": tuple(folder for _, folder in pairs), "labels": tuple(label for label, _ in pairs)}
