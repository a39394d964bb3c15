"""Segmentation data: the pictures that mmseg lists, sets without labels, sparse labels."""

import shutil

import numpy as np
import pytest
from mmengine.registry import DATASETS

from lvit_dense.datasets.checks import check, skip_bad
from tests.datasets.conftest import ade, fatal, labels, rewrite_labels


def mmsegs_pictures(cfg, split: str = "train") -> list:
    """The picture paths that mmseg itself lists."""
    import mmseg.datasets  # noqa: F401

    data = DATASETS.build({**cfg[f"{split}_dataloader"].dataset, "pipeline": [], "_scope_": "mmseg"})
    return [data.get_data_info(index)["img_path"] for index in range(len(data))]


def opened(cfg) -> int:
    return check(cfg, ["train"]).checked["train: BaseSegDataset"]["opened"]


def images(root):
    return root / "ade/ADEChallengeData2016/images/training"


# listing
def test_hidden_files_are_no_pictures(root):
    (images(root) / "._ADE_train_00000001.jpg").write_bytes(b"\0\5\26\7")
    (images(root) / ".DS_Store").write_bytes(b"x")
    cfg = ade(root)
    assert check(cfg).findings == [] and opened(cfg) == len(mmsegs_pictures(cfg)) == 4


def test_linked_folders_are_followed(root, tmp_path):
    for folder in ("images", "annotations"):
        kind = root / f"ade/ADEChallengeData2016/{folder}"
        shutil.move(kind / "training", tmp_path / folder)
        (kind / "training").mkdir()
        (kind / "training/part").symlink_to(tmp_path / folder)
    cfg = ade(root)
    assert check(cfg).findings == [] and opened(cfg) == len(mmsegs_pictures(cfg)) == 4
    labels(root).parent.joinpath("part/ADE_train_00000002.png").unlink()
    (line,) = skip_bad(cfg, tmp_path / "work")
    assert "leaves out 1 of 4 pictures" in line and opened(cfg) == len(mmsegs_pictures(cfg)) == 3


def test_a_list_of_names_is_read_line_by_line(root, tmp_path):
    (tmp_path / "names.txt").write_text("ADE_train_00000002\n ADE_train_00000001 \n")
    cfg = ade(root)
    cfg.train_dataloader.dataset.ann_file = str(tmp_path / "names.txt")
    assert check(cfg).findings == [] and opened(cfg) == len(mmsegs_pictures(cfg)) == 2
    (tmp_path / "names.txt").unlink()
    (finding,) = fatal(cfg)
    assert finding.kind == "missing-file" and "train_dataloader.dataset.ann_file" in finding.cure
    with pytest.raises(AssertionError, match="Failed to load `ann_file`"):
        mmsegs_pictures(cfg)


def test_label_suffix_of_the_full_ade20k(root):
    for file in (root / "ade/ADEChallengeData2016/annotations").rglob("*.png"):
        file.rename(file.with_name(f"{file.stem}_seg.png"))
    assert check(ade(root, seg_map_suffix="_seg.png")).findings == []
    assert "wrong-archive" in {finding.kind for finding in fatal(ade(root))}


# sets without labels
LOAD = [{"type": "LoadImageFromFile"}, {"type": "LoadAnnotations"}, {"type": "PackSegInputs"}]
VIEWS = [{"type": "TestTimeAug", "transforms": [[{"type": "Resize"}], [{"type": "LoadAnnotations"}]]}]


@pytest.mark.parametrize("pipeline", [LOAD, VIEWS])
@pytest.mark.parametrize("format_only", [True, False])
def test_labels_that_are_loaded_need_a_folder(root, pipeline, format_only):
    cfg = ade(root)
    prefix = {"img_path": "images/validation"}
    cfg.test_dataloader = {"dataset": {**cfg.val_dataloader.dataset, "data_prefix": prefix, "pipeline": pipeline}}
    cfg.test_evaluator = {"type": "IoUMetric", "format_only": format_only, "output_dir": "x"}
    (finding,) = check(cfg).findings
    assert finding.kind == "missing-labels" and finding.fatal and "data_prefix.seg_map_path" in finding.value
    assert "remove LoadAnnotations from test_dataloader.dataset.pipeline" in finding.cure.replace("Remove", "remove")
    assert ("test_evaluator.format_only=True" in finding.cure) == (not format_only)


def test_labels_that_nobody_reads_need_no_folder(root):
    cfg = ade(root)
    prefix = {"img_path": "images/validation"}
    cfg.test_dataloader = {"dataset": {**cfg.val_dataloader.dataset, "data_prefix": prefix, "pipeline": LOAD[:1]}}
    cfg.test_evaluator = {"type": "IoUMetric", "format_only": True, "output_dir": "x"}
    assert check(cfg).findings == []
    cfg.test_evaluator.format_only = False
    assert [finding.kind for finding in fatal(cfg)] == ["missing-labels"]
    cfg.train_dataloader.dataset.data_prefix.pop("seg_map_path")
    assert [finding.kind for finding in fatal(cfg)] == ["missing-labels"] * 2


def test_labels_beside_the_pictures(root, tmp_path):
    for folder in ("images", "annotations"):
        shutil.copytree(root / f"ade/ADEChallengeData2016/{folder}/training", tmp_path / "flat", dirs_exist_ok=True)
    cfg = ade(root, data_root=str(tmp_path / "flat"))
    for split in ("train", "val"):
        cfg[f"{split}_dataloader"].dataset.pop("data_prefix")  # mmseg's default: both are data_root
    assert check(cfg).findings == []
    (tmp_path / "flat/ADE_train_00000001.png").unlink()
    assert {finding.kind for finding in fatal(cfg)} == {"missing-file"}


# sparse labels
def scribble(values, one=None):
    """255 everywhere but on 1 % of the pixels."""
    sparse = np.full_like(values, 255)
    sparse[:10, :12] = values[:10, :12] if one is None else one
    return sparse


def no_labels(cfg) -> list:
    return [finding.fatal for finding in check(cfg, ["train"]).findings if finding.kind == "no-labels"]


def test_sparse_labels_are_a_note(root):
    rewrite_labels(root, scribble)
    assert no_labels(ade(root)) == [False]
    rewrite_labels(root, lambda values: scribble(values, 3))
    assert no_labels(ade(root)) == [False]  # one class beside ignore
    rewrite_labels(root, lambda values: np.full_like(values, 255))
    assert no_labels(ade(root)) == [True]
    rewrite_labels(root, lambda values: np.zeros_like(values))
    assert no_labels(ade(root)) == [True]


def test_one_class_beside_ignore_is_a_note_unless_it_is_a_0_255_mask(root):
    for value, fatality in ((1, False), (0, True)):
        rewrite_labels(root, lambda values, value=value: scribble(values, value))
        two = ade(root, classes=("ground", "shape"), reduce_zero_label=False)
        two.model.decode_head.num_classes = 2
        assert no_labels(two) == [fatality]
    assert no_labels(ade(root, reduce_zero_label=False)) == [False]  # 7 classes: no mask of two
