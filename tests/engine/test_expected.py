"""What a run says about expected numbers."""

import logging

import pytest
from mmengine.config import Config

from lvit_dense.engine.expected import ExpectedMetricHook
from lvit_dense.experiment import configure
from lvit_dense.experiment.cell import Cell
from tests.engine.test_hooks import run


@pytest.fixture
def messages(tmp_path):
    """(runner after a short training, its log messages from here on)."""
    runner = run(tmp_path)
    found = []
    handler = logging.Handler()
    handler.emit = lambda record: found.append((record.levelname, record.getMessage()))
    runner.logger.addHandler(handler)
    runner.logger.setLevel("INFO")
    return runner, found


def test_a_test_is_compared(messages):
    runner, found = messages
    hook = ExpectedMetricHook({"coco/bbox_mAP": (0.422, 0.005), "absent": (1.0, 1.0)}, "Table D")
    hook.after_test_epoch(runner, {"coco/bbox_mAP": 0.4199})
    hook.after_test_epoch(runner, {"coco/bbox_mAP": 0.4})
    assert found == [
        ("INFO", "as expected: coco/bbox_mAP 0.4199, expected 0.422 ± 0.005 (Table D)"),
        ("WARNING", "not as expected, -0.022: coco/bbox_mAP 0.4, expected 0.422 ± 0.005 (Table D)"),
    ]


def test_training_compares_its_last_validation_only(messages):
    runner, found = messages
    hook = ExpectedMetricHook({"mIoU": (45.2, 0.7)}, "Table D")
    hook.after_val_epoch(runner, {"mIoU": 20.0})
    hook.after_val_epoch(runner, {"mIoU": 45.0})
    assert found == []
    hook.after_train(runner)
    assert [level for level, _ in found] == ["INFO"]


def test_the_numbers_are_the_papers():
    cfg = Config({})
    configure.expect_paper(cfg, Cell.parse("maskrcnn_relu_base@mlpcopy+distill"))
    (hook,) = cfg.custom_hooks
    assert hook.expected["coco/bbox_mAP"] == pytest.approx((0.422, 0.005))
    assert len(hook.expected) == 6
    cfg = Config({})
    configure.expect_paper(cfg, Cell.parse("imagenet_elu_base@copy~dino@seed2"))
    assert cfg.custom_hooks == [
        {"type": "ExpectedMetricHook", "expected": {"accuracy/top1": (80.2, 0.4)}, "source": "Qin et al. 2026, Table 1"}
    ]
    for name in ("maskrcnn_relu_small@mlpcopy+distill", "imagenet_inline_base@copy", "upernet_elu_base@copy"):
        cfg = Config({})
        configure.expect_paper(cfg, Cell.parse(name))
        assert "custom_hooks" not in cfg
