"""The demo data: drawn shapes in the three layouts of ImageNet (folders), COCO and ADE20K.

What decides the class is the outline alone; colour, texture, size and rotation are drawn without looking at it.
The COCO and the ADE20K folder show the same scenes. Everything is a function of the sizes and the seed.
"""

import io
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from lvit_dense.datasets.demo_shapes import SHAPES, Dice, Mask, Placement, develop, ground, paint

CLASSES: tuple[str, ...] = tuple(SHAPES)
# lists: mmdet takes a tuple for one colour
PALETTE: list[tuple[int, int, int]] = [
    (230, 57, 70),
    (29, 120, 200),
    (255, 183, 3),
    (131, 56, 236),
    (6, 170, 120),
    (255, 112, 200),
]
SEGMENTATION_CLASSES: tuple[str, ...] = ("ground", *CLASSES)
SEGMENTATION_PALETTE: list[tuple[int, int, int]] = [(120, 120, 120), *PALETTE]

STAMP = "demo.json"
VERSION = 1  # raised when the drawing changes, so that older data is written anew
TILT = 25.0  # shapes lean at most so many degrees to either side
_SPLITS = ("train", "val")


@dataclass(frozen=True)
class DemoSizes:
    """How much is written.

    Args:
        train_pictures, val_pictures: single-object pictures per class.
        train_scenes, val_scenes: scenes with several objects.
        picture: side of the square pictures in pixels.
        scene: longer and shorter side of the scenes; odd-numbered scenes stand upright.
    """

    train_pictures: int = 200
    val_pictures: int = 40
    train_scenes: int = 240
    val_scenes: int = 60
    picture: int = 96
    scene: tuple[int, int] = (128, 96)


class Scene(NamedTuple):
    """One picture, (H, W, 3) RGB, with the class index and visible mask (H, W) of each object."""

    image: NDArray[np.uint8]
    labels: list[int]
    masks: list[Mask]

    def label_map(self) -> NDArray[np.uint8]:
        """(H, W) in ADE20K's numbers: 0 would be unlabelled (it does not occur), 1 ground, 2.. the shapes."""
        values = np.ones(self.image.shape[:2], np.uint8)
        for label, mask in zip(self.labels, self.masks):
            values[mask] = label + 2
        return values


def draw_picture(label: int, index: int, split: str, side: int = 96, seed: int = 0) -> Scene:
    """A picture of one shape of class ``label``, wholly or nearly wholly visible."""
    dice = Dice(seed, _SPLITS.index(split), 0, label, index)
    canvas = ground(dice, side, side)
    radius = side * dice.between(0.34, 0.46)
    room = max(side / 2 - 0.95 * radius, 0.0)
    x, y = (side / 2 + dice.between(-room, room) for _ in range(2))
    mask = paint(dice, canvas, Placement(CLASSES[label], x, y, radius, dice.direction(TILT)))
    return Scene(develop(dice, canvas), [label], [mask])


def draw_scene(index: int, split: str, size: tuple[int, int] = (128, 96), seed: int = 0) -> Scene:
    """A scene of two to four shapes; later ones cover earlier ones, but never more than 60 % of them."""
    dice = Dice(seed, _SPLITS.index(split), 1, index)
    width, height = size if index % 2 == 0 else size[::-1]
    canvas = ground(dice, height, width)
    labels: list[int] = []
    masks: list[Mask] = []
    areas: list[int] = []
    for _ in range(2 + dice.below(3)):
        label = dice.below(len(CLASSES))
        place = _find_place(dice, label, (height, width), masks, areas)
        if place is None:
            continue
        covered = paint(dice, canvas, place)
        masks = [mask & ~covered for mask in masks]
        labels.append(label)
        masks.append(covered)
        areas.append(int(covered.sum()))
    return Scene(develop(dice, canvas), labels, masks)


def _find_place(dice: Dice, label: int, size: tuple[int, int], masks: list[Mask], areas: list[int]) -> Placement | None:
    """Try places until every earlier shape keeps at least 40 % of its full area; None when there is no room."""
    height, width = size
    for _ in range(12):
        radius = min(size) * dice.between(0.19, 0.35)
        x, y = dice.between(0.7 * radius, width - 0.7 * radius), dice.between(0.7 * radius, height - 0.7 * radius)
        place = Placement(CLASSES[label], x, y, radius, dice.direction(TILT))
        covered = place.inside(height, width) >= 0
        if all(int((mask & ~covered).sum()) >= 0.4 * area for mask, area in zip(masks, areas)):
            return place
    return None


def run_lengths(mask: Mask) -> dict[str, Any]:
    """COCO's uncompressed run-length form of (H, W), column by column, beginning with the zeros: exact, holes too."""
    flat = mask.T.reshape(-1)
    changes = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    bounds = [0, *changes.tolist(), flat.size]
    counts = [end - start for start, end in pairwise(bounds)]
    return {"size": [int(side) for side in mask.shape], "counts": [0, *counts] if flat[0] else counts}


def _annotation(mask: Mask) -> dict[str, Any]:
    """The geometric part of a COCO annotation."""
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    x, y = int(columns[0]), int(rows[0])
    box = [x, y, int(columns[-1]) + 1 - x, int(rows[-1]) + 1 - y]
    return {"bbox": box, "area": int(mask.sum()), "iscrowd": 0, "segmentation": run_lengths(mask)}


def _jpeg(image: NDArray[np.uint8]) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "JPEG", quality=92, subsampling=0)
    return buffer.getvalue()


def _write_pictures(root: Path, sizes: DemoSizes, seed: int) -> None:
    """``imagenet/{train,val}/<class>/<class>_00000.jpg``."""
    for split, count in zip(_SPLITS, (sizes.train_pictures, sizes.val_pictures)):
        for label, name in enumerate(CLASSES):
            folder = root / "imagenet" / split / name
            folder.mkdir(parents=True)
            for index in range(count):
                scene = draw_picture(label, index, split, sizes.picture, seed)
                (folder / f"{name}_{index:05d}.jpg").write_bytes(_jpeg(scene.image))


def _folders(root: Path, *names: str) -> Iterator[Path]:
    for name in names:
        (root / name).mkdir(parents=True)
        yield root / name


def _write_scenes(root: Path, sizes: DemoSizes, seed: int) -> None:
    """The same scenes as ``coco/`` and ``ade/ADEChallengeData2016/``."""
    (root / "coco/annotations").mkdir(parents=True)
    categories = [{"id": label + 1, "name": name, "supercategory": "shape"} for label, name in enumerate(CLASSES)]
    for split, long, count in zip(_SPLITS, ("training", "validation"), (sizes.train_scenes, sizes.val_scenes)):
        ade = "ade/ADEChallengeData2016"
        coco, pictures, labels = _folders(
            root, f"coco/{split}2017", f"{ade}/images/{long}", f"{ade}/annotations/{long}"
        )
        images: list[dict[str, Any]] = []
        annotations: list[dict[str, Any]] = []
        for index in range(count):
            scene = draw_scene(index, split, sizes.scene, seed)
            jpeg = _jpeg(scene.image)
            height, width, _ = scene.image.shape
            name = f"{index + 1:012d}.jpg"
            (coco / name).write_bytes(jpeg)
            stem = f"ADE_{split}_{index + 1:08d}"
            (pictures / f"{stem}.jpg").write_bytes(jpeg)
            Image.fromarray(scene.label_map()).save(labels / f"{stem}.png")
            images.append({"id": index + 1, "file_name": name, "width": width, "height": height})
            for label, mask in zip(scene.labels, scene.masks):
                owner = {"id": len(annotations) + 1, "image_id": index + 1, "category_id": label + 1}
                annotations.append(owner | _annotation(mask))
        content = {"images": images, "annotations": annotations, "categories": categories}
        (root / f"coco/annotations/instances_{split}2017.json").write_text(json.dumps(content))


def _count_files(root: Path) -> int:
    return sum(len(files) for _, _, files in os.walk(root))


def _is_complete(root: Path, parameters: dict[str, Any]) -> bool:
    """Whether ``root`` holds data of these parameters with no file missing.

    Raises:
        FileExistsError: ``root`` holds something that this module did not write.
    """
    if not root.exists() or (root.is_dir() and not any(root.iterdir())):
        return False
    if not (root / STAMP).is_file():
        raise FileExistsError(
            f"{root} is no demo data (it has no {STAMP}) and is not overwritten; name a new or empty folder"
        )
    stamp = json.loads((root / STAMP).read_text())
    return {**stamp, "files": None} == {**parameters, "files": None} and stamp["files"] == _count_files(root)


def write_demo(root: str | Path, sizes: DemoSizes | None = None, seed: int = 0) -> None:
    """Write the demo data below ``root``, or leave it as it is when it is already there.

    ``imagenet/{train,val}/<class>/*.jpg``, ``coco/{train2017,val2017,annotations}`` and
    ``ade/ADEChallengeData2016/{images,annotations}/{training,validation}``. The data is made in a folder beside
    ``root`` and moved at the end, so a broken-off run leaves no half data; data of other sizes, of an older version
    or with missing files is replaced.

    Raises:
        FileExistsError: ``root`` holds something else.
    """
    root = Path(root)
    sizes = sizes or DemoSizes()
    parameters = {"version": VERSION, "seed": seed, **asdict(sizes), "scene": list(sizes.scene)}
    if _is_complete(root, parameters):
        return
    root.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{root.name}-", dir=root.parent) as workshop:
        new = Path(workshop) / "new"
        _write_pictures(new, sizes, seed)
        _write_scenes(new, sizes, seed)
        stamp = {**parameters, "files": _count_files(new) + 1}
        (new / STAMP).write_text(json.dumps(stamp, indent=1))
        if _is_complete(root, parameters):  # another process was quicker
            return
        if root.exists():
            shutil.move(root, Path(workshop) / "old")
        new.rename(root)
