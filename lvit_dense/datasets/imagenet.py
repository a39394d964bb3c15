"""Classification data of any kind that timm knows, behind mmengine's data set interface."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mmengine.registry import DATASETS
from timm.data import create_dataset, create_transform
from torch.utils.data import Dataset
from torchvision.transforms import v2

from lvit_dense.catalog import naming_unknown_arguments


@DATASETS.register_module()
class TimmDataset(Dataset):
    """Pictures as normalised tensors, ``dict(inputs=(3, H, W) float32, targets=int)``.

    Args:
        root: folder of the data; for an ImageFolder it holds ``train/<class>/*`` and ``val/<class>/*``.
        split: ``"train"`` or ``"val"`` (``"validation"``), a folder below root or a split that the data set knows.
        name: timm's data set name: ``""`` = ImageFolder, ``"torch/cifar10"``, ``"hfds/..."``, ...
        transform: arguments of :func:`timm.data.create_transform`; ``is_training`` follows ``split``.
        download: fetch the data where its library can; only ever done when asked for.

    Raises:
        FileNotFoundError: no such root or split.
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
        if name == "" and not (Path(root) / split).is_dir():
            raise FileNotFoundError(
                f"no folder {Path(root) / split}: an ImageFolder holds train/<class>/*.jpg and val/<class>/*.jpg; "
                "point to it with --cfg-options train_dataloader.dataset.root=... val_dataloader.dataset.root=..."
            )
        self.split = split
        self._data = create_dataset(name, root=root, split=split, is_training=False, download=download)
        # torchvision's data sets hand out pictures as they are stored, grey ones (MNIST and its kin) among them
        self._data.transform = v2.Compose([v2.RGB(), create_transform(is_training=split == "train", **transform)])

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
