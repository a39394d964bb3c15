"""ImageNet-1K's labels of folders that are named by WordNet id or by label."""

from pathlib import Path

from timm.data import ImageNetInfo

from lvit_dense.datasets.checks.finding import DataError, Finding


def imagenet_labels(folder: Path, num_classes: int) -> dict[str, int]:
    """Class folder -> label in ImageNet-1K; the folders are named n01440764 or 0 to 999.

    Args:
        num_classes: folders that the complete data has.

    Raises:
        DataError: folders of other names, or not as many.
    """
    found = sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    synsets = ImageNetInfo().label_names()
    numbers = {str(label): label for label in range(len(synsets))}
    wnids = {wnid: label for label, wnid in enumerate(synsets)}
    known = numbers if found and all(name.isdigit() for name in found) else wnids
    strange = [name for name in found if name not in known]
    where = str(folder)
    if strange:
        value = f"{len(strange)} of {len(found)} folders are no class of ImageNet-1K, first {strange[0]!r}"
        expected, cure = "WordNet ids (n01440764) or labels (0 to 999)", "Move what does not belong there"
        raise DataError([Finding("class-names", where, value, expected, cure)])
    if len(found) != num_classes:
        cure = "Unpack it again; for a selection of classes set test_dataloader.dataset.num_classes"
        raise DataError([Finding("class-count", where, f"{len(found)} class folders", str(num_classes), cure)])
    return {name: known[name] for name in found}
