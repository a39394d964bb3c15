"""Mask R-CNN and UperNet from the shipped configs: losses, gradients, odd batches, prediction."""

import pytest
import torch

from tests.dense.conftest import detection_sample, segmentation_sample, tiny_config

BOXES = [(5.0, 8.0, 40.0, 50.0), (30.0, 10.0, 60.0, 45.0)]


def losses(model, pairs):
    batch = dict(inputs=[image for image, _ in pairs], data_samples=[sample for _, sample in pairs])
    batch = model.data_preprocessor(batch, True)
    total, logged = model.parse_losses(model(**batch, mode="loss"))
    return total, logged


def without_gradient(model):
    return [name for name, p in model.named_parameters() if p.requires_grad and p.grad is None]


@pytest.mark.parametrize("operator", ["relu", "softmax"])
def test_maskrcnn_trains_every_parameter_on_a_batch_of_odd_sizes(build, operator):
    """Portrait and landscape together; the softmax config has its windows."""
    model = build(tiny_config("maskrcnn", operator, drop_path_rate=0.0)).train()
    windows = [block.attn.window_size for block in model.backbone.vit.blocks]
    assert windows == [None] * 4  # of 4 blocks each is an output and so global; 12 blocks are tested below
    total, logged = losses(model, [detection_sample(93, 61, BOXES), detection_sample(64, 130, BOXES[:1], seed=1)])
    assert {"loss_rpn_cls", "loss_rpn_bbox", "loss_cls", "loss_bbox", "loss_mask"} <= set(logged)
    total.backward()
    assert torch.isfinite(total) and without_gradient(model) == []


@pytest.mark.parametrize("empty", [(True, True), (True, False)])
def test_maskrcnn_trains_on_pictures_without_objects(build, empty):
    model = build(tiny_config("maskrcnn", "relu")).train()
    pairs = [detection_sample(64, 64, [] if bare else BOXES, seed=i) for i, bare in enumerate(empty)]
    total, _ = losses(model, pairs)
    total.backward()
    assert torch.isfinite(total)
    # mmdet multiplies what has no positives by zero, so that DDP still sees every parameter.
    assert without_gradient(model) == []


@pytest.mark.parametrize("divisor", [1, 32])
def test_maskrcnn_predicts_on_an_odd_grid(build, divisor):
    """37 columns of tokens: boxes and masks stay inside a 592 x 48 picture."""
    cfg = tiny_config("maskrcnn", "relu")
    cfg.model.data_preprocessor.pad_size_divisor = divisor
    model = build(cfg).eval()
    image, sample = detection_sample(48, 592, BOXES)
    (result,) = model.test_step(dict(inputs=[image], data_samples=[sample]))
    boxes, masks = result.pred_instances.bboxes, result.pred_instances.masks
    assert len(boxes) == 5 and masks.shape == (5, 48, 592)
    assert (boxes >= 0).all() and (boxes[:, 2] <= 592).all() and (boxes[:, 3] <= 48).all()


@pytest.mark.parametrize("operator", ["relu", "softmax"])
def test_upernet_trains_every_parameter(build, operator):
    model = build(tiny_config("upernet", operator, drop_path_rate=0.0)).train()
    pairs = [segmentation_sample(64, 64), segmentation_sample(50, 37, seed=1)]
    total, logged = losses(model, pairs)
    assert {"decode.loss_ce", "aux.loss_ce"} <= set(logged)
    total.backward()
    assert torch.isfinite(total) and without_gradient(model) == []


def test_upernet_predicts_at_the_size_of_the_file(build):
    model = build(tiny_config("upernet", "relu")).eval()
    image, sample = segmentation_sample(75, 101, ori_shape=(150, 203))
    (result,) = model.test_step(dict(inputs=[image], data_samples=[sample]))
    assert result.pred_sem_seg.data.shape == (1, 150, 203)
    assert result.seg_logits.data.shape == (5, 150, 203)


def test_detection_windows_of_the_softmax_row_are_the_reference_baselines(build):
    cfg = tiny_config("maskrcnn", "softmax", arch=dict(embed_dim=32, depth=12, num_heads=2))
    blocks = build(cfg).backbone.vit.blocks
    assert [i for i, block in enumerate(blocks) if block.attn.window_size == 14] == [0, 1, 3, 4, 6, 7, 9, 10]
    segmentation = build(tiny_config("upernet", "softmax", arch=dict(embed_dim=32, depth=12, num_heads=2)))
    assert all(block.attn.window_size is None for block in segmentation.backbone.vit.blocks)


@pytest.mark.parametrize("operator", ["relu", "ttt", "mhla", "softmax"])
@pytest.mark.parametrize("task", ["maskrcnn", "upernet"])
def test_bf16_autocast_trains_every_parameter(build, task, operator):
    """What --amp with bf16 runs inside mmengine's wrapper, which itself exists for GPUs only."""
    model = build(tiny_config(task, operator, drop_path_rate=0.0)).train()
    if task == "maskrcnn":
        pairs = [detection_sample(64, 96, BOXES), detection_sample(90, 64, BOXES[:1], seed=1)]
    else:
        pairs = [segmentation_sample(64, 64), segmentation_sample(64, 64, seed=1)]
    with torch.autocast("cpu", torch.bfloat16):
        total, _ = losses(model, pairs)
    total.backward()
    assert without_gradient(model) == []
    assert torch.isfinite(total) and all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


def test_maskrcnn_trains_on_eight_hundred_boxes_in_one_picture(build):
    model = build(tiny_config("maskrcnn", "relu", drop_path_rate=0.0)).train()
    corners = torch.cartesian_prod(torch.arange(0.0, 80, 4), torch.arange(0.0, 160, 4)).tolist()
    boxes = [(x, y, x + 3, y + 3) for x, y in corners]
    assert len(boxes) == 800
    total, _ = losses(model, [detection_sample(160, 80, boxes), detection_sample(64, 64, BOXES, seed=1)])
    total.backward()
    assert torch.isfinite(total) and without_gradient(model) == []
