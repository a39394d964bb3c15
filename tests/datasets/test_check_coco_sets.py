"""COCO data that mmdet thins out, test sets without annotations, and class names given as one string."""

import json
import os

import pytest
from mmengine.registry import DATASETS

from lvit_dense.datasets.checks import check
from lvit_dense.datasets.demo import CLASSES
from lvit_dense.engine.coco_ap import CocoAP
from tests.datasets.conftest import coco, edit_json, fatal, first


def kinds(cfg, *splits) -> list:
    return [(finding.kind, finding.fatal) for finding in check(cfg, splits or ("train",), most=0).findings]


def pictures_used(cfg, split: str = "train") -> int:
    """How many pictures mmdet itself uses."""
    settings = {**cfg[f"{split}_dataloader"].dataset, "pipeline": [], "_scope_": "mmdet", "serialize_data": False}
    import mmdet.datasets  # noqa: F401

    return len(DATASETS.build(settings))


def every(content: dict, **changes) -> None:
    for annotation in content["annotations"]:
        annotation.update(changes)


# areas, boxes
@pytest.mark.parametrize("area", [0, -3, 0.0])
def test_annotations_without_area_are_counted_and_fatal_only_if_none_is_left(root, area):
    edit_json(root, lambda content: first(content, area=area))
    (finding,) = check(coco(root), ["train"], most=0).findings
    assert (
        finding.kind == "zero-area"
        and not finding.fatal
        and f"annotation 1 of 000000000001.jpg: area {area}" in (finding.value)
    )
    for split in ("train", "val"):
        edit_json(root, lambda content: every(content, area=area), split)
        (last, *_) = fatal(coco(root))
        assert last.kind == "no-data" and "zero-area" in last.value


@pytest.mark.parametrize("area", [None, "12", float("nan")])
def test_an_area_that_is_no_number(root, area):
    edit_json(root, lambda content: first(content, area=area))
    assert kinds(coco(root)) == [("missing-area", True)]


@pytest.mark.parametrize("side", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("index", range(4))
def test_boxes_that_are_not_finite(root, index, side):
    box = [5.0, 5.0, 20.0, 20.0]
    box[index] = side
    edit_json(root, lambda content: first(content, bbox=box))
    assert kinds(coco(root)) == [("bad-box", True)]


# mmdet's filter
def test_pictures_below_min_size(root):
    edit_json(root, lambda content: every(content, bbox=[1, 1, 9, 9]))
    edit_json(root, lambda content: content["images"][0].update(width=28, height=28))
    cfg = coco(root, pipeline=[])
    (finding,) = check(cfg, ["train"], most=0).findings
    assert finding.kind == "small-pictures" and not finding.fatal and pictures_used(cfg) == 3
    assert finding.value == "1 of 4 images are smaller than filter_cfg.min_size=32 and are dropped"

    edit_json(root, lambda content: [image.update(width=28, height=28) for image in content["images"]])
    (finding,) = fatal_of(cfg)
    assert finding.kind == "no-data" and "4 below filter_cfg.min_size=32" in finding.value
    with pytest.raises(ValueError, match="need at least one array to concatenate"):
        DATASETS.build({**cfg.train_dataloader.dataset, "_scope_": "mmdet"})
    assert fatal_of(coco(root, pipeline=[], filter_cfg=None)) == []
    assert fatal_of(coco(root, pipeline=[], test_mode=True)) == []


def fatal_of(cfg, split: str = "train") -> list:
    return [finding for finding in check(cfg, [split], most=0).findings if finding.fatal]


def test_annotations_of_foreign_classes_only(root):
    for split in ("train", "val"):
        edit_json(root, lambda content: every(content, category_id=1), split)
    cfg = coco(root, classes=CLASSES[1:], num_classes=5)
    assert pictures_used(cfg) == 0
    (finding,) = fatal_of(cfg)
    assert finding.kind == "no-data" and "4 of them without an object of the config's classes" in finding.value
    (finding,) = fatal_of(coco(root, classes=CLASSES[1:], num_classes=5, test_mode=True), "val")
    assert finding.kind == "no-data" and "of other classes)" in finding.value  # AP would be -1


# test sets without annotations
def without_annotations(root):
    edit_json(root, lambda content: content.pop("annotations"), "val")
    evaluator = {
        "type": "CocoAP",
        "ann_file": str(root / "coco/annotations/instances_val2017.json"),
        "format_only": True,
        "outfile_prefix": "x",
    }
    cfg = coco(root, test_mode=True)
    cfg.merge_from_dict({"test_evaluator": evaluator})
    return cfg


def test_a_test_set_without_annotations_needs_format_only(root):
    cfg = without_annotations(root)
    assert check(cfg, ["test"]).findings == [] and pictures_used(cfg, "test") == 2
    metric = CocoAP(cfg.test_evaluator.ann_file, format_only=True, outfile_prefix="x")
    assert len(metric.truth.getCatIds(catNms=list(CLASSES))) == 6
    cfg.test_evaluator = [cfg.test_evaluator, {**cfg.test_evaluator, "format_only": False}]
    (finding,) = fatal_of(cfg, "test")
    assert finding.kind == "bad-json" and "no list 'annotations'" in finding.value
    assert "test_evaluator.format_only=True" in finding.cure
    cfg.test_evaluator = None
    assert fatal_of(cfg, "test")[0].kind == "bad-json"


def test_training_data_needs_annotations_whatever_the_evaluator(root):
    edit_json(root, lambda content: content.pop("annotations"))
    (finding,) = fatal_of(without_annotations(root))
    assert finding.kind == "bad-json" and "format_only" not in finding.cure


# class names
def test_classes_from_a_file_are_read_as_mmengine_reads_them(root, tmp_path):
    file = tmp_path / "classes.txt"
    file.write_text("\n".join(CLASSES) + "\n")
    assert check(coco(root, classes=str(file))).findings == []
    file.write_text("\n".join(CLASSES[::-1]))
    assert {finding.kind for finding in fatal(coco(root, classes=str(file)))} == {"category-order"}


@pytest.mark.parametrize("kind", ["coco", "ade"])
def test_one_class_name_without_its_comma(root, kind):
    from tests.datasets.conftest import ade

    def only_discs(content):
        content["categories"] = content["categories"][:1]
        every(content, category_id=1)

    for split in ("train", "val"):
        edit_json(root, only_discs, split)
    cfg = coco(root, classes="disc", num_classes=1) if kind == "coco" else ade(root, classes="disc")
    (finding,) = fatal_of(cfg)
    assert finding.kind == "class-names" and finding.file == "train_dataloader.dataset.metainfo.classes"
    assert "'disc'" in finding.value and "comma" in finding.cure and "classes=('disc',)" in finding.cure


# the metric's JSON
def test_the_metrics_json_through_a_link_is_the_same_file(root, tmp_path):
    link = tmp_path / "linked"
    link.symlink_to(root / "coco")
    cfg = coco(root)
    cfg.val_evaluator.ann_file = str(link / "annotations/instances_val2017.json")
    assert check(cfg).findings == []
    cfg.val_evaluator.ann_file = os.path.relpath(root / "coco/annotations/../annotations/instances_val2017.json")
    assert check(cfg).findings == []
    other = root / "coco/annotations/other.json"
    other.write_text(json.dumps({}))
    cfg.val_evaluator.ann_file = str(other)
    assert [finding.kind for finding in fatal(cfg)] == ["evaluator-json"]


# pictures that are read over a network
@pytest.mark.parametrize(
    "changes", [{"data_root": "http://host/coco"}, {"data_prefix": {"img": "s3://bucket/train2017"}}]
)
def test_remote_pictures_are_not_checked(root, changes):
    assert kinds(coco(root, **changes)) == [("not-checked", False)]
