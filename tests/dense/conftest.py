"""The real task configs at a tiny width; one process and one registry scope per test, as imports cost ten seconds."""

from pathlib import Path

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.registry import DefaultScope, init_default_scope
from mmengine.structures import InstanceData, PixelData

CONFIGS = Path(__file__).parents[2] / "configs"
ARCH = dict(embed_dim=32, depth=4, num_heads=2)


def tiny_config(task: str, operator: str, size: str = "base", **backbone) -> Config:
    """``configs/<task>_<operator>_<size>.py``, 32 channels wide, few classes, few boxes; the recipe untouched."""
    cfg = Config.fromfile(CONFIGS / f"{task}_{operator}_{size}.py")
    cfg.model.backbone.pop("transfer", None)
    cfg.model.backbone.update({"arch": ARCH, **backbone})
    if task == "maskrcnn":
        tiny = {
            "model.neck": dict(in_channels=[32] * 4, out_channels=16),
            "model.rpn_head": dict(in_channels=16, feat_channels=16),
            "model.roi_head.bbox_head": dict(in_channels=16, fc_out_channels=16, num_classes=3),
            "model.roi_head.mask_head": dict(in_channels=16, conv_out_channels=16, num_classes=3, num_convs=1),
            "model.roi_head.bbox_roi_extractor.out_channels": 16,
            "model.roi_head.mask_roi_extractor.out_channels": 16,
            "model.train_cfg.rpn_proposal": dict(nms_pre=60, max_per_img=30),
            "model.train_cfg.rcnn.sampler.num": 16,
            "model.test_cfg.rpn": dict(nms_pre=60, max_per_img=30),
            "model.test_cfg.rcnn": dict(score_thr=0.0, max_per_img=5),
        }
    else:
        tiny = {
            "model.decode_head": dict(in_channels=[32] * 4, channels=16, num_classes=5),
            "model.auxiliary_head": dict(in_channels=32, channels=16, num_classes=5),
            "model.test_cfg": dict(crop_size=(64, 64), stride=(43, 43)),
            "model.data_preprocessor.size": (64, 64),
        }
    cfg.merge_from_dict(tiny)
    return cfg


@pytest.fixture
def build():
    """Build the model of a config in its own scope, initialised and without SyncBN."""
    from mmengine.model import revert_sync_batchnorm
    from mmengine.registry import MODELS

    made = DefaultScope._instance_dict.copy()

    def make(cfg):
        init_default_scope(cfg.default_scope)
        torch.manual_seed(0)
        model = MODELS.build(cfg.model)
        model.init_weights()
        return revert_sync_batchnorm(model)

    yield make
    DefaultScope._instance_dict.clear()
    DefaultScope._instance_dict.update(made)


def detection_sample(height, width, boxes, seed=0, flip=False):
    """An input and a data sample with masks that fill their boxes (x1, y1, x2, y2)."""
    from mmdet.structures import DetDataSample
    from mmdet.structures.mask import BitmapMasks

    image = torch.from_numpy(np.random.default_rng(seed).integers(0, 256, (3, height, width), dtype=np.uint8))
    masks = np.zeros((len(boxes), height, width), dtype=np.uint8)
    for mask, (x1, y1, x2, y2) in zip(masks, boxes):
        mask[int(y1) : int(y2), int(x1) : int(x2)] = 1
    sample = DetDataSample(
        metainfo=dict(
            img_id=seed,
            img_path=f"{seed}.jpg",
            img_shape=(height, width),
            ori_shape=(height, width),
            scale_factor=(1.0, 1.0),
            flip=flip,
            flip_direction="horizontal" if flip else None,
        )
    )
    sample.gt_instances = InstanceData(
        bboxes=torch.tensor(boxes, dtype=torch.float32).reshape(-1, 4),
        labels=torch.arange(len(boxes)) % 3,
        masks=BitmapMasks(masks, height, width),
    )
    sample.ignored_instances = InstanceData(
        bboxes=torch.zeros(0, 4), labels=torch.zeros(0, dtype=torch.long), masks=BitmapMasks(masks[:0], height, width)
    )
    return image, sample


def segmentation_sample(height, width, ori_shape=None, seed=0, flip=False):
    """An input and a data sample with random labels 0..4 and some 255."""
    from mmseg.structures import SegDataSample

    random = np.random.default_rng(seed)
    image = torch.from_numpy(random.integers(0, 256, (3, height, width), dtype=np.uint8))
    sample = SegDataSample(
        metainfo=dict(
            img_path=f"{seed}.jpg",
            img_shape=(height, width),
            ori_shape=ori_shape or (height, width),
            flip=flip,
            flip_direction="horizontal" if flip else None,
        )
    )
    labels = random.integers(0, 6, (1, height, width))
    sample.gt_sem_seg = PixelData(data=torch.from_numpy(np.where(labels == 5, 255, labels)))
    return image, sample
