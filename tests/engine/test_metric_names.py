"""save_best is compared with what the validation will report."""

from types import SimpleNamespace

import pytest
from mmengine.evaluator import BaseMetric, Evaluator

from lvit_dense.engine.accuracy import TopKAccuracy
from lvit_dense.engine.coco_ap import CocoAP
from lvit_dense.engine.metric_names import check_save_best, reported_names
from tests.engine.noisy_run import noisy_runner


def check(key, *metrics):
    check_save_best([key], SimpleNamespace(val_loop=SimpleNamespace(evaluator=Evaluator(list(metrics)))))


@pytest.fixture
def coco():
    return CocoAP("nowhere.json")


def test_a_guessed_coco_key_is_answered_with_the_valid_ones(coco):
    check("coco/segm_mAP_75", coco)
    with pytest.raises(ValueError, match=r"does not report bbox_mAP: did you mean 'coco/bbox_mAP'\? Known: coco/bbox"):
        check("bbox_mAP", coco)


def test_per_class_keys_are_known_where_they_are_reported(coco):
    with pytest.raises(ValueError, match="does not report coco/bbox_mAP_disc"):
        check("coco/bbox_mAP_disc", coco)
    classwise = CocoAP("nowhere.json", classwise=True)
    classwise.dataset_meta = dict(classes=("disc",))
    check("coco/bbox_mAP_disc", classwise)


def test_iou_metric_reports_what_is_listed_here():
    import torch
    from mmseg.evaluation import IoUMetric

    for kinds in (["mIoU"], ["mDice", "mFscore"]):
        metric = IoUMetric(iou_metrics=kinds)
        metric.dataset_meta = dict(classes=("a", "b"))
        counts = tuple(torch.tensor([3.0, 2.0]) for _ in range(4))
        assert set(metric.compute_metrics([counts])) == set(reported_names(metric))


def test_other_metrics_several_metrics_and_auto(coco):
    class Own(BaseMetric):
        def process(self, data_batch, data_samples): ...

        def compute_metrics(self, results): ...

    check("anything", coco, Own())
    check("accuracy/top5", coco, TopKAccuracy())
    check("auto", coco)
    with pytest.raises(ValueError, match="accuracy/top3"):
        check("accuracy/top3", coco, TopKAccuracy())


def test_a_run_stops_before_its_first_step(tmp_path):
    runner = noisy_runner(tmp_path, by_epoch=True)
    hook = next(hook for hook in runner.hooks if type(hook).__name__ == "AtomicCheckpointHook")
    hook.save_best = ["accuracy/top1"]
    runner._val_evaluator = Evaluator([TopKAccuracy(topk=(3,))])
    with pytest.raises(ValueError, match=r"save_best=accuracy/top1: .*Known: accuracy/top3"):
        runner.train()
    assert runner.iter == 0
