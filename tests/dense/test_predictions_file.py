"""tools/test.py --out: what is kept of each picture, and that the metrics before it still see everything."""

import pickle

import pytest
import torch
from mmengine.config import Config
from mmengine.evaluator import Evaluator
from mmengine.registry import DefaultScope, init_default_scope
from mmengine.structures import InstanceData, PixelData

from lvit_dense.experiment.configure import set_predictions_file
from tests.dense.conftest import CONFIGS, detection_sample, segmentation_sample


@pytest.fixture(autouse=True)
def scope():
    """Leave no registry scope behind."""
    made = DefaultScope._instance_dict.copy()
    yield
    DefaultScope._instance_dict.clear()
    DefaultScope._instance_dict.update(made)


def dumped(task, metrics, samples, file, classes):
    """Evaluate ``samples`` with ``--out file`` and a task's config; return the metrics and what the file holds."""
    cfg = Config.fromfile(CONFIGS / f"{task}_relu_tiny.py")
    cfg.test_evaluator = metrics
    init_default_scope(cfg.default_scope)
    set_predictions_file(cfg, str(file))
    evaluator = Evaluator(cfg.test_evaluator)
    evaluator.dataset_meta = {"classes": tuple(map(str, range(classes)))}
    evaluator.process(samples)
    values = evaluator.evaluate(len(samples))
    return values, pickle.loads(file.read_bytes())


@pytest.mark.parametrize(("classes", "dtype"), [(5, torch.uint8), (300, torch.int16)])
def test_a_segmentors_file_has_label_maps_and_no_logits(tmp_path, classes, dtype):
    _, sample = segmentation_sample(33, 45)
    sample.seg_logits = PixelData(data=torch.randn(classes, 33, 45))
    sample.pred_sem_seg = PixelData(data=sample.seg_logits.data.argmax(0, keepdim=True))
    metric = {"type": "IoUMetric", "iou_metrics": ["mIoU"]}
    values, (kept,) = dumped("upernet", metric, [sample], tmp_path / "out.pkl", classes)
    assert "mIoU" in values and "gt_sem_seg" in sample and "seg_logits" in sample
    assert not {"seg_logits", "gt_sem_seg"} & kept.keys()
    assert kept["img_path"] == "0.jpg" and kept["ori_shape"] == (33, 45)
    assert kept["pred_sem_seg"]["data"].dtype == dtype
    assert torch.equal(kept["pred_sem_seg"]["data"].long(), sample.pred_sem_seg.data)


def test_a_detectors_file_has_run_length_masks(tmp_path):
    from pycocotools import mask as coco_mask

    _, sample = detection_sample(33, 45, [(5.0, 8.0, 40.0, 30.0)])
    masks = torch.zeros(2, 33, 45, dtype=torch.bool)
    masks[0, 8:30, 5:40] = True
    sample.pred_instances = InstanceData(
        bboxes=torch.rand(2, 4), scores=torch.tensor([0.9, 0.1]), labels=torch.tensor([0, 2]), masks=masks
    )
    _, (kept,) = dumped("maskrcnn", [], [sample], tmp_path / "out.pickle", 3)
    assert not {"gt_instances", "ignored_instances"} & kept.keys() and kept["img_id"] == 0
    decoded = coco_mask.decode(kept["pred_instances"]["masks"])
    assert torch.equal(torch.from_numpy(decoded).permute(2, 0, 1).bool(), masks)
    assert torch.equal(sample.pred_instances.masks, masks)


def test_a_classifiers_predictions_are_kept_as_they_are(tmp_path):
    samples = [{"scores": torch.rand(3), "target": 1}]
    _, (kept,) = dumped("imagenet", [], samples, tmp_path / "out.pkl", 3)
    assert torch.equal(kept["scores"], samples[0]["scores"])


@pytest.mark.parametrize("name", ["predictions.json", "predictions", "pkl"])
def test_a_file_that_is_no_pickle_is_refused_before_anything_is_built(name):
    with pytest.raises(ValueError, match=rf"--out {name}: .*\.pkl") as error:
        set_predictions_file(Config({"default_scope": "mmseg", "test_evaluator": []}), name)
    assert "\n" not in str(error.value)
