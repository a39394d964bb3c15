"""Parts of configs, differences between them, and drawn samples of data sets."""

import copy
import json

import numpy as np
import pytest
from mmengine.config import Config

import lvit_dense.datasets  # noqa: F401  (registers TimmDataset and the loader)
from lvit_dense.datasets.demo import CLASSES, PALETTE, SEGMENTATION_CLASSES, SEGMENTATION_PALETTE, DemoSizes, write_demo
from lvit_dense.experiment.browse import contact_sheet, draw_samples, open_dataset
from lvit_dense.experiment.flatten import difference, flatten, part

NESTED = {"model": {"type": "A", "sizes": [1, 2], "empty": {}}, "steps": [{"type": "x"}, {"type": "y", "lr": 1.0}]}


def test_part_by_dotted_key():
    cfg = Config(NESTED)
    assert part(cfg, "model.type") == "A" and part(cfg, "steps.1.lr") == 1.0 and part(cfg, "model.sizes.0") == 1
    with pytest.raises(KeyError, match="model has no 'size': did you mean 'sizes'"):
        part(cfg, "model.size")
    with pytest.raises(KeyError, match="steps has no '2'"):
        part(cfg, "steps.2")
    with pytest.raises(KeyError, match=r"model\.type has no 'x'"):
        part(cfg, "model.type.x")


def test_difference_names_both_values():
    assert flatten(NESTED)["steps.1.type"] == "y" and flatten(NESTED)["model.empty"] == {}
    other = {"model": {"type": "B", "sizes": [1, 2], "empty": {}}, "steps": [{"type": "x"}], "seed": 0}
    assert difference(NESTED, other) == {
        "model.type": ("A", "B"),
        "steps.1.type": ("y", "(absent)"),
        "steps.1.lr": (1.0, "(absent)"),
        "seed": ("(absent)", 0),
    }
    assert difference(NESTED, NESTED) == {}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("browse") / "demo"
    write_demo(root, DemoSizes(train_pictures=1, val_pictures=1, train_scenes=4, val_scenes=1))
    return root


def detection(root):
    dataset = {
        "type": "CocoDataset",
        "data_root": str(root / "coco"),
        "ann_file": "annotations/instances_train2017.json",
        "data_prefix": {"img": "train2017/"},
        "metainfo": {"classes": CLASSES, "palette": PALETTE},
        "pipeline": [
            {"type": "LoadImageFromFile"},
            {"type": "LoadAnnotations", "with_bbox": True, "with_mask": True},
            {"type": "Resize", "scale": (256, 256), "keep_ratio": True},
            {"type": "RandomFlip", "prob": 0.5},
            {"type": "PackDetInputs"},
        ],
    }
    loader = {"dataset": {"type": "RepeatDataset", "times": 1, "dataset": dataset}}
    return Config({"default_scope": "mmdet", "visualizer": {"type": "DetLocalVisualizer"}, "train_dataloader": loader})


def segmentation(root):
    dataset = {
        "type": "BaseSegDataset",
        "data_root": str(root / "ade/ADEChallengeData2016"),
        "data_prefix": {"img_path": "images/training", "seg_map_path": "annotations/training"},
        "img_suffix": ".jpg",
        "seg_map_suffix": ".png",
        "reduce_zero_label": True,
        "metainfo": {"classes": SEGMENTATION_CLASSES, "palette": SEGMENTATION_PALETTE},
        "pipeline": [
            {"type": "LoadImageFromFile"},
            {"type": "LoadAnnotations"},
            {"type": "Resize", "scale": (256, 256), "keep_ratio": True},
            {"type": "PackSegInputs"},
        ],
    }
    visualizer = {"type": "SegLocalVisualizer"}
    return Config({"default_scope": "mmseg", "visualizer": visualizer, "train_dataloader": {"dataset": dataset}})


def classification(root):
    transform = {"input_size": 64, "mean": (0.5, 0.5, 0.5), "std": (0.2, 0.2, 0.2)}
    dataset = {"type": "TimmDataset", "root": str(root / "imagenet"), "split": "train", "transform": transform}
    return Config({"default_scope": "mmengine", "train_dataloader": {"dataset": dataset}})


@pytest.mark.parametrize(
    ("make", "size", "raw_size"),
    [
        (detection, {(192, 256, 3), (256, 192, 3)}, {(96, 128, 3), (128, 96, 3)}),
        (segmentation, {(192, 256, 3), (256, 192, 3)}, {(96, 128, 3), (128, 96, 3)}),
        (classification, {(320, 320, 3)}, {(320, 320, 3)}),
    ],
)
def test_samples_are_drawn_as_augmented_and_raw(root, make, size, raw_size):
    for raw, expected in ((False, size), (True, raw_size)):
        cfg = make(root)
        drawn = list(draw_samples(cfg, open_dataset(cfg, "train", raw), 2, "train"))
        assert len(drawn) == 2 and len({name for name, _ in drawn}) == 2
        pictures = [picture for _, picture in drawn]
        assert {picture.shape for picture in pictures} <= expected
        assert all(picture.dtype == np.uint8 and picture.std() > 5 for picture in pictures)
        assert contact_sheet(pictures, 64).shape == (64, 128, 3)


def test_drawn_objects_change_the_picture(root):
    from PIL import Image

    cfg = detection(root)
    ((_, picture),) = draw_samples(cfg, open_dataset(cfg, "train", raw=True), 1, "train")
    plain = np.asarray(Image.open(root / "coco/train2017/000000000001.jpg"))
    changed = np.abs(picture.astype(int) - plain).max(-1) > 40
    assert 0.02 < changed.mean() < 0.9


@pytest.mark.parametrize("wrapped", [False, True])
def test_raw_keeps_pictures_without_objects(root, tmp_path, wrapped):
    annotations = json.loads((root / "coco/annotations/instances_train2017.json").read_text())
    bare = annotations["images"][0]["id"]
    annotations["annotations"] = [entry for entry in annotations["annotations"] if entry["image_id"] != bare]
    (tmp_path / "bare.json").write_text(json.dumps(annotations))
    cfg = detection(root)
    inner = cfg.train_dataloader.dataset.dataset
    inner.update(ann_file=str(tmp_path / "bare.json"), filter_cfg={"filter_empty_gt": True, "min_size": 8})
    if not wrapped:
        cfg.train_dataloader.dataset = inner
    assert len(open_dataset(copy.deepcopy(cfg), "train")) == 3
    dataset = open_dataset(cfg, "train", raw=True)
    assert len(dataset) == 4
    assert len(list(draw_samples(cfg, dataset, 4, "train"))) == 4


def test_missing_split_is_named(root):
    with pytest.raises(KeyError, match="no test_dataloader; it has: train"):
        open_dataset(detection(root), "test")
