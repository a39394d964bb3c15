"""Broken COCO, ADE20K and ImageFolder data: each defect gives its finding, and sound data none."""

import json
import runpy
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lvit_dense.datasets.checks import DataError, check, quick_check, skip_bad
from lvit_dense.datasets.checks.finding import report
from lvit_dense.datasets.demo import CLASSES
from tests.datasets.conftest import ade, coco, edit_json, fatal, first, imagefolder, labels, rewrite_labels


@pytest.mark.parametrize("make", [coco, ade, imagefolder])
def test_sound_data_has_no_finding_and_counts_are_given(sound, make):
    result = check(make(sound), workers=2)
    assert result.findings == []
    assert len(result.checked) == 2  # test is the same data set as val
    assert sum(amounts["opened"] for amounts in result.checked.values()) in (6, 24)
    assert quick_check(make(sound)) == []


@pytest.mark.parametrize("make", [coco, ade, imagefolder])
def test_missing_root_names_path_layout_and_cure(tmp_path, make):
    with pytest.raises(DataError, match=r"no such folder \(.* holds nothing\); expected .*layout|ImageFolder") as error:
        quick_check(make(tmp_path))
    assert str(tmp_path) in str(error.value) and "train_dataloader.dataset." in str(error.value)


def test_only_the_first_process_checks(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    assert quick_check(coco(tmp_path)) == []


def test_foreign_category_names_keep_no_image(root):
    (finding, *_) = fatal(coco(root, classes=("cat", "dog"), num_classes=2))
    assert finding.value == (
        "0 of 4 images kept; JSON has classes {disc, square, triangle, ring, star, cross}, config has {cat, dog}"
    )


def test_some_categories_missing_reordered_or_unknown(root):
    assert fatal(coco(root, classes=(*CLASSES, "cat"), num_classes=7))[0].value == (
        "the JSON lacks 1 of the config's 7 classes: {cat}"
    )
    assert {finding.kind for finding in fatal(coco(root, classes=CLASSES[::-1]))} == {"category-order"}
    findings = check(coco(root, classes=CLASSES[:5], num_classes=5)).findings
    assert {finding.kind for finding in findings} == {"foreign-class"} and not any(f.fatal for f in findings)


def test_heads_of_another_width(root):
    (finding, *_) = fatal(coco(root, num_classes=80))
    assert finding.kind == "class-count"
    assert "model.roi_head.bbox_head.num_classes=6 model.roi_head.mask_head.0.num_classes=6" in finding.cure


@pytest.mark.parametrize(
    ("changes", "kind", "is_fatal"),
    [
        ({"segmentation": "REMOVE"}, "missing-segmentation", True),
        ({"segmentation": None}, "missing-segmentation", True),
        ({"segmentation": []}, "missing-segmentation", True),
        ({"segmentation": [[]]}, "bad-polygon", False),
        ({"segmentation": [[1, 2, 3, 4]]}, "bad-polygon", False),
        ({"segmentation": [[1, 2, 3, 4, 5]]}, "bad-polygon", False),
        ({"segmentation": [[1, 2, 9, 2, 9, 9], [1, 2, 3, 4, 5, 6, 7]]}, "bad-polygon", False),
        ({"segmentation": [1, 2, 9, 2, 9, 9]}, "bad-polygon", True),
        ({"segmentation": {"size": [9, 9], "counts": [81]}}, "bad-rle", True),
        ({"segmentation": {"size": [96, 128], "counts": [81]}}, "bad-rle", True),
        ({"segmentation": {"size": [96, 128], "counts": [96 * 128]}, "iscrowd": 1}, "crowd", False),
        ({"segmentation": [[1, 2, 9, 2, 9, 9]]}, None, False),
        ({"area": "REMOVE"}, "missing-area", True),
        ({"bbox": "REMOVE"}, "bad-box", True),
        ({"bbox": [1, 2, 3]}, "bad-box", True),
        ({"bbox": [500, 2, 3, 4]}, "degenerate-box", False),
        ({"bbox": [5, 5, 0, 4]}, "degenerate-box", False),
        ({"image_id": 99}, "no-such-image", False),
        ({"category_id": 99}, "no-such-category", False),
    ],
)
def test_annotations(root, changes, kind, is_fatal):
    edit_json(root, lambda content: first(content, **changes))
    findings = check(coco(root), ["train"], most=0).findings
    assert [(finding.kind, finding.fatal) for finding in findings] == ([(kind, is_fatal)] if kind else [])
    assert all("annotation 1" in finding.value and finding.cure for finding in findings)


def test_box_only_training_needs_no_segmentation(root):
    edit_json(root, lambda content: first(content, segmentation="REMOVE"))
    cfg = coco(root, pipeline=[{"type": "LoadAnnotations", "with_bbox": True}])
    assert check(cfg, ["train"]).findings == []


def test_json_missing_broken_foreign_or_with_equal_ids(root):
    file = root / "coco/annotations/instances_train2017.json"
    edit_json(root, lambda content: content["images"][1].update(id=1))
    assert "duplicate-id" in {finding.kind for finding in fatal(coco(root))}
    file.write_text("{")
    assert fatal(coco(root))[0].kind == "bad-json"
    file.write_text('{"annotations": []}')
    assert "no list 'images' (keys: annotations)" in fatal(coco(root))[0].value
    file.write_text('{"images": [{"id": 1}], "annotations": [], "categories": []}')
    assert "images entry 1 has no file_name, width, height" in fatal(coco(root))[0].value
    file.unlink()
    assert "beside it: instances_val2017.json" in fatal(coco(root))[0].value


def test_pictures_missing_and_of_another_size(root):
    edit_json(root, lambda content: content["images"][0].update(width=96, height=128))
    (root / "coco/train2017/000000000002.jpg").unlink()
    size, missing = [finding for finding in fatal(coco(root)) if finding.kind != "bad-rle"]
    assert size.kind == "size-differs" and "96x128 as instances_train2017.json says" in size.expected
    assert missing.kind == "missing-file" and missing.file.endswith("000000000002.jpg")


def test_pictures_without_objects_are_counted(root):
    def empty_one(content):
        content["annotations"] = [one for one in content["annotations"] if one["image_id"] != 3]

    edit_json(root, empty_one)
    (finding,) = check(coco(root)).findings
    assert finding.value.startswith("1 of 4 images have no object and are dropped") and not finding.fatal
    (finding,) = check(coco(root, filter_cfg=None)).findings
    assert finding.value.startswith("1 of 4 images have no object and are used")
    edit_json(root, lambda content: content.update(annotations=[]))
    assert fatal(coco(root))[0].kind == "no-data"


def test_metric_with_a_json_of_its_own(root):
    cfg = coco(root)
    cfg.val_evaluator.ann_file = "data/coco/annotations/instances_val2017.json"
    (finding,) = fatal(cfg)
    assert finding.kind == "evaluator-json" and "which does not exist" in finding.value


@pytest.mark.parametrize(
    ("array", "kind", "value"),
    [
        (np.full((96, 128), 8, np.uint8), "label-values", "label values 8"),
        (np.full((96, 128), 254, np.uint8), "label-values", "label values 254"),
        (np.full((96, 128, 3), 3, np.uint8), "colour-labels", "mode RGB"),
        (np.full((96, 128, 4), 3, np.uint8), "colour-labels", "mode RGBA"),
        (np.full((96, 128), 300, np.uint16), "deep-labels", "300 would become 44"),
        (np.full((48, 64), 3, np.uint8), "size-differs", "labels are 64x48"),
        (np.full((96, 128), 7, np.uint16), None, None),
        (np.full((96, 128), 255, np.uint8), None, None),
    ],
)
def test_label_files(root, array, kind, value):
    Image.fromarray(array).save(labels(root))
    findings = check(ade(root)).findings
    assert [finding.kind for finding in findings] == ([kind] if kind else [])
    assert all(value in finding.value and finding.file == str(labels(root)) for finding in findings)


def test_palette_labels_are_indices(root):
    image = Image.open(labels(root)).convert("P")
    image.putdata(list(np.asarray(Image.open(labels(root))).ravel()))
    image.putpalette([0, 0, 0, 255, 0, 0, 0, 255, 0] * 10)
    image.save(labels(root))
    assert Image.open(labels(root)).mode == "P" and check(ade(root)).findings == []


def test_label_files_missing_or_undecodable(root):
    labels(root, 1).unlink()
    labels(root, 2).write_bytes(b"")
    labels(root, 3).write_bytes(labels(root, 3).read_bytes()[:60])
    assert [finding.kind for finding in fatal(ade(root))] == ["missing-file", "empty-file", "cut-off"]


def test_labels_in_another_convention(root):
    # labels 1..7 read without reduce_zero_label: 7 is outside of 0..6
    shutil.copytree(root, root.parent / "again")
    assert {finding.kind for finding in fatal(ade(root, reduce_zero_label=False))} == {"label-values"}
    # masks of 0 and 255
    rewrite_labels(root, lambda values: 255 * (values > 1))
    two = ade(root, classes=("ground", "shape"), reduce_zero_label=False)
    two.model.decode_head.num_classes = 2
    assert {finding.kind for finding in fatal(two)} == {"no-labels"}
    assert "the only class values are [0]" in fatal(two)[0].value
    # labels that begin at 0, read with reduce_zero_label: the ground is ignored, only the shapes are left
    rewrite_labels(root.parent / "again", lambda values: np.minimum(values - 1, 1))
    two.merge_from_dict(ade(root.parent / "again", classes=("ground", "shape"))._cfg_dict.to_dict())
    two.model.decode_head.num_classes = 2
    assert {finding.kind for finding in fatal(two)} == {"no-labels"}


def test_full_ade20k_archive_is_recognised(tmp_path):
    folder = tmp_path / "ade/ADEChallengeData2016/images/training/a/abbey"
    folder.mkdir(parents=True)
    (folder / "ADE_train_00000970.jpg").write_bytes(b"")
    (folder / "ADE_train_00000970_seg.png").write_bytes(b"")
    with pytest.raises(DataError, match=r"_seg\.png is a label file of the full ADE20K; .*ADEChallengeData2016\.zip"):
        quick_check(ade(tmp_path))


def test_own_classes_with_ade20kdataset_are_refused(root):
    kinds = {finding.kind: finding for finding in fatal(ade(root, kind="ADE20KDataset"))}
    assert "type=BaseSegDataset" in kinds["class-names"].cure


def test_imagefolder_defects(root):
    train = root / "imagenet/train"
    (train / "disc/disc_00000.jpg").write_bytes(b"")
    (train / "ring/readme.txt").write_text("x")
    (train / "loose.jpg").write_bytes(b"")
    shutil.rmtree(train / "star")
    (train / "hexagon").mkdir()
    kinds = {finding.kind: finding for finding in check(imagefolder(root), ["train"]).findings}
    assert set(kinds) == {"empty-file", "other-files", "loose-pictures", "class-names", "empty-class", "class-count"}
    assert "has: star" in kinds["class-names"].value and not kinds["class-count"].fatal
    cfg = imagefolder(root)
    cfg.model.num_classes = 3
    assert any(finding.kind == "class-count" and finding.fatal for finding in check(cfg).findings)


def test_unknown_types(root):
    cfg = imagefolder(root, name="hfds/owner/name")
    assert check(cfg).findings == []
    cfg.train_dataloader.dataset.type = "NoSuchDataset"
    with pytest.raises(KeyError, match="registered nowhere"):
        check(cfg)


def test_skip_bad_leaves_out_pictures_and_annotations(root, tmp_path):
    (root / "coco/train2017/000000000002.jpg").write_bytes(b"")
    edit_json(root, lambda content: first(content, segmentation=[[1, 2, 3, 4]]))
    cfg = coco(root, wrap=True)
    (line,) = skip_bad(cfg, tmp_path / "work")
    assert "leaves out 1 of 4 pictures and 1 annotations (1 bad-polygon, 1 empty-file)" in line
    written = cfg.train_dataloader.dataset.dataset.ann_file
    content = json.loads(Path(written).read_text())
    assert [image["id"] for image in content["images"]] == [1, 3, 4]
    assert 1 not in {one["id"] for one in content["annotations"]}
    assert 2 not in {one["image_id"] for one in content["annotations"]}
    assert check(cfg).findings == [] and skip_bad(cfg, tmp_path / "work") == []


def test_skip_bad_of_segmentation_and_of_what_it_cannot_cure(root, tmp_path):
    labels(root, 2).unlink()
    cfg = ade(root)
    (line,) = skip_bad(cfg, tmp_path / "work")
    assert "leaves out 1 of 4 pictures" in line
    listed = Path(cfg.train_dataloader.dataset.ann_file).read_text().split()
    assert listed == ["ADE_train_00000001", "ADE_train_00000003", "ADE_train_00000004"]
    assert check(cfg).checked["train: BaseSegDataset"]["opened"] == 3 and fatal(cfg) == []
    with pytest.raises(DataError, match=r"bbox_head\.num_classes=80"):
        skip_bad(coco(root, num_classes=80), tmp_path / "work")


def test_report_can_be_written_as_json(root):
    labels(root, 2).unlink()
    result = check(ade(root))
    content = json.loads(json.dumps(report(result.findings, result.checked)))
    assert content["fatal"] == 1 and content["counts"] == {"missing-file": 1}
    assert content["findings"][0]["file"] == str(labels(root, 2))


def test_wrapped_data_sets_are_opened_up(root):
    inner = coco(root).train_dataloader.dataset
    other = coco(root, data_root=str(root / "nowhere")).train_dataloader.dataset
    cfg = coco(root)
    balanced = {"type": "ClassBalancedDataset", "oversample_thr": 0.1, "dataset": inner}
    cfg.train_dataloader.dataset = {"type": "ConcatDataset", "datasets": [balanced, other]}
    result = check(cfg, ["train"])
    assert list(result.checked) == ["train: CocoDataset", "train 1: CocoDataset"]
    assert [finding.kind for finding in result.findings] == ["missing-root"]


def test_tool_reports_and_exits_with_1_on_fatal_findings(root, tmp_path, monkeypatch, capsys):
    tool = Path(__file__).resolve().parents[2] / "tools/check_data.py"

    def run(*flags: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["check_data.py", str(tmp_path / "config.py"), "--workers", "0", *flags])
        with pytest.raises(SystemExit) as end:
            runpy.run_path(str(tool), run_name="__main__")
        return end.value.code, capsys.readouterr().out

    ade(root).dump(tmp_path / "config.py")
    code, printed = run("--all")
    assert code == 0 and "train: BaseSegDataset: 4 pictures, 4 opened" in printed and "nothing wrong found" in printed
    for index in (1, 2, 3):
        labels(root, index).unlink()
    code, printed = run("--lines", "2", "--report", str(tmp_path / "report.json"))
    assert code == 1 and "missing-file: 3 (fatal)" in printed and "... 1 more\n" in printed
    content = json.loads((tmp_path / "report.json").read_text())
    assert content["counts"] == {"missing-file": 3} and len(content["findings"]) == 3
    assert run("--splits", "val")[0] == 0
    code, printed = run("--cfg-options", "model.decode_head.num_classes=150", "--splits", "val")
    assert code == 1 and "class-count: 1 (fatal)" in printed


def test_tool_takes_the_data_of_a_preset(sound, tmp_path, monkeypatch, capsys):
    repository = Path(__file__).resolve().parents[2]
    folder = tmp_path / "data/imagenet_a/n01498041"
    folder.mkdir(parents=True)
    shutil.copy(next((sound / "imagenet/val").rglob("*.*")), folder)
    monkeypatch.chdir(tmp_path)

    def run(data: str) -> SystemExit:
        config = str(repository / "configs/imagenet_relu_tiny.py")
        command = ["check_data.py", config, "--data", data, "--splits", "test", "--workers", "0"]
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as end:
            runpy.run_path(str(repository / "tools/check_data.py"), run_name="__main__")
        return end.value

    assert run("imagenet_a").code == 1
    printed = capsys.readouterr().out
    assert "test: ImageNetFolders: 1 classes, 1 pictures, 1 opened" in printed and "expected 200" in printed
    assert "did you mean 'imagenet_a'" in run("imagenet_aa").code
