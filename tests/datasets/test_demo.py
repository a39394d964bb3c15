"""The demo data: the same everywhere, exact, in three readable layouts, and never half written."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pycocotools.coco import COCO

from lvit_dense.datasets import demo
from lvit_dense.datasets.demo import CLASSES, DemoSizes, draw_picture, draw_scene, run_lengths, write_demo
from lvit_dense.datasets.demo_shapes import Placement, direction

SMALL = DemoSizes(train_pictures=2, val_pictures=1, train_scenes=4, val_scenes=3)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("demo") / "data"
    write_demo(root, SMALL)
    return root


def snapshot(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in root.rglob("*.*")}


def test_pixels_are_the_same_on_every_machine():
    np.random.seed(1)
    digest = hashlib.sha256()
    for scene in (draw_picture(4, 0, "train"), draw_scene(0, "train"), draw_scene(1, "val")):
        digest.update(scene.image.tobytes() + scene.label_map().tobytes())
    assert digest.hexdigest() == "a70fc2df8ec967c8082b57112bf818a0fcf396ad683df9ae1f363dbab59e0987"


def test_seed_split_and_index_change_the_picture():
    pictures = [draw_picture(0, 0, "train"), draw_picture(0, 1, "train"), draw_picture(0, 0, "val")]
    pictures.append(draw_picture(0, 0, "train", seed=1))
    assert len({picture.image.tobytes() for picture in pictures}) == 4


@pytest.mark.parametrize(
    ("kind", "area"),
    [
        ("disc", np.pi),
        ("square", 1.6**2),
        ("triangle", 3 * 3**0.5 * 0.55**2),
        ("ring", np.pi * (1 - 0.55**2)),
        ("cross", 4 * 0.34 * (2 - 0.34)),
        ("star", 10 * 0.5 * 0.42**2 * (np.tan(np.radians(72)) - np.tan(np.radians(36)))),
    ],
)
def test_shapes_have_the_area_of_geometry(kind, area):
    inside = Placement(kind, 250.0, 250.0, 200.0, direction(20.0)).inside(500, 500)
    assert (inside >= 0).sum() == pytest.approx(area * 200.0**2, rel=5e-3)


def test_later_shapes_cover_earlier_ones():
    scenes = [draw_scene(index, "train") for index in range(12)]
    for scene in scenes:
        assert np.sum(scene.masks, 0).max() == 1  # visible masks never overlap
        assert all(mask.sum() > 50 for mask in scene.masks)
    assert {scene.image.shape for scene in scenes} == {(96, 128, 3), (128, 96, 3)}


@pytest.mark.parametrize("first", [False, True])
def test_run_lengths_are_exact(first):
    mask = np.random.default_rng(0).random((7, 5)) > 0.5
    mask[0, 0] = first
    coco = COCO()
    coco.imgs = {1: {"height": 7, "width": 5}}
    decoded = coco.annToMask({"image_id": 1, "segmentation": run_lengths(mask)})
    assert (decoded == mask).all()


def test_folders_of_classes(root):
    for split, count in (("train", 2), ("val", 1)):
        files = sorted((root / "imagenet" / split).rglob("*.jpg"))
        assert [path.parent.name for path in files] == sorted(CLASSES * count)
        assert Image.open(files[0]).size == (96, 96)


def test_coco_and_ade_show_the_same_exact_scenes(root):
    for split, long, count in (("train", "training", 4), ("val", "validation", 3)):
        coco = COCO(root / f"coco/annotations/instances_{split}2017.json")
        assert [category["name"] for category in coco.loadCats(coco.getCatIds())] == list(CLASSES)
        assert len(coco.imgs) == count
        for index, image in coco.imgs.items():
            ade = root / "ade/ADEChallengeData2016"
            jpeg = root / f"coco/{split}2017" / image["file_name"]
            assert jpeg.read_bytes() == (ade / f"images/{long}/ADE_{split}_{index:08d}.jpg").read_bytes()
            assert Image.open(jpeg).size == (image["width"], image["height"])
            png = Image.open(ade / f"annotations/{long}/ADE_{split}_{index:08d}.png")
            labels = np.ones((image["height"], image["width"]), int)
            for annotation in coco.imgToAnns[index]:
                mask = coco.annToMask(annotation).astype(bool)
                assert mask.sum() == annotation["area"]
                x, y, width, height = annotation["bbox"]
                assert mask[y : y + height, x : x + width].sum() == mask.sum()
                assert (
                    mask[:, x].any() and mask[:, x + width - 1].any() and mask[y].any() and mask[y + height - 1].any()
                )
                labels[mask] = annotation["category_id"] + 1
            assert png.mode == "L" and (np.asarray(png) == labels).all()


def test_complete_data_is_left_alone(root):
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    write_demo(root, SMALL)
    assert before == {path: path.stat().st_mtime_ns for path in root.rglob("*")}


def test_broken_off_write_leaves_nothing_and_is_redone(root, tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "_annotation", stop)
    with pytest.raises(KeyboardInterrupt):
        write_demo(tmp_path / "data", SMALL)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    write_demo(tmp_path / "data", SMALL)
    assert snapshot(tmp_path / "data") == snapshot(root)


def test_missing_file_or_other_sizes_write_anew(root, tmp_path):
    target = tmp_path / "data"
    write_demo(target, SMALL)
    (target / "coco/val2017/000000000001.jpg").unlink()
    write_demo(target, SMALL)
    assert snapshot(target) == snapshot(root)
    write_demo(target, DemoSizes(1, 1, 1, 1))
    assert json.loads((target / demo.STAMP).read_text())["train_scenes"] == 1
    assert len(list(target.rglob("*.jpg"))) == 12 + 2 * 2


def test_foreign_folder_is_never_overwritten(tmp_path):
    (tmp_path / "coco").mkdir()
    with pytest.raises(FileExistsError, match=r"is no demo data \(it has no demo.json\)"):
        write_demo(tmp_path, SMALL)
    assert list(tmp_path.iterdir()) == [tmp_path / "coco"]
