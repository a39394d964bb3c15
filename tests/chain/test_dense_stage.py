"""Mask R-CNN and UperNet through tools/train.py and tools/test.py, from the ImageNet student."""

import json

from lvit_dense.engine.results import read_results
from lvit_dense.transfer import newest_checkpoint, read_source
from tests.chain.conftest import DETECTOR, SEGMENTOR


def test_the_detector_starts_from_the_student_and_reports_box_and_mask_ap(detector, student):
    report = json.dumps(json.loads((detector / "transfer.json").read_text()))
    assert read_source(str(student)).sha256 in report
    metrics = read_results(detector)["val"]["metrics"]
    assert {"coco/bbox_mAP", "coco/bbox_mAP_50", "coco/bbox_mAP_75"} <= set(metrics)
    assert {"coco/segm_mAP", "coco/segm_mAP_50", "coco/segm_mAP_75"} <= set(metrics)


def test_the_detectors_test_repeats_its_validation(chain, detector):
    chain.test(DETECTOR)
    results = read_results(detector)
    assert results["test"]["metrics"] == results["val"]["metrics"]


def test_the_segmentor_reports_single_and_multi_scale_miou(chain, segmentor, student):
    chain.test(SEGMENTOR)
    chain.test(SEGMENTOR, "--tta")
    results = read_results(segmentor)
    assert results["test"]["metrics"] == results["val"]["metrics"] != {}
    assert set(results["tta"]["metrics"]) == {"aAcc", "mIoU", "mAcc"}
    assert read_source(str(student)).sha256 in (segmentor / "transfer.json").read_text()


def test_a_dense_checkpoint_is_itself_a_source(segmentor, student):
    source = read_source(str(segmentor))
    assert source.family == "lvit_dense"
    assert not source.facts.class_token and read_source(str(student)).facts.class_token


def test_resume_of_an_iteration_based_run(chain, student, tmp_path):
    folder = tmp_path / "run"
    chain.train(SEGMENTOR, "--work-dir", str(folder), "--cfg-options", "train_cfg.max_iters=2")
    assert newest_checkpoint(folder).name == "iter_2.pth"
    chain.train(SEGMENTOR, "--work-dir", str(folder), "--resume")
    assert newest_checkpoint(folder).name == "iter_4.pth"
    # a run that was interrupted between its last checkpoint and the validation
    (folder / "results.jsonl").unlink()
    chain.train(SEGMENTOR, "--work-dir", str(folder), "--resume")
    assert read_results(folder)["val"]["metrics"].keys() == {"aAcc", "mIoU", "mAcc"}
