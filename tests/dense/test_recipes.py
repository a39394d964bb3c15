"""The shipped configs say what the paper's and ViT-Adapter's recipes say."""

import pytest
from mmengine.config import Config

from tests.dense.conftest import CONFIGS

SIZES = dict(tiny=192, small=384, base=768)


@pytest.mark.parametrize("size", SIZES)
def test_maskrcnn(size):
    cfg = Config.fromfile(CONFIGS / "_base_" / f"maskrcnn_{size}.py")
    assert cfg.model.backbone.arch == size and cfg.model.neck.in_channels == [SIZES[size]] * 4
    assert cfg.optim_wrapper.optimizer == dict(type="AdamW", lr=1e-4, betas=(0.9, 0.999), weight_decay=0.05)
    assert "paramwise_cfg" not in cfg.optim_wrapper and "clip_grad" not in cfg.optim_wrapper
    assert cfg.train_cfg.max_epochs == 12 and cfg.param_scheduler[1].milestones == [8, 11]
    assert (cfg.param_scheduler[0].start_factor, cfg.param_scheduler[0].end) == (0.001, 500)
    assert cfg.train_pipeline[2] == dict(type="Resize", scale=(1333, 800), keep_ratio=True)
    assert cfg.auto_scale_lr.base_batch_size == 8 * cfg.train_dataloader.batch_size == 16
    assert cfg.model.backbone.drop_path_rate == 0.1


@pytest.mark.parametrize("size", SIZES)
def test_upernet(size):
    cfg = Config.fromfile(CONFIGS / "_base_" / f"upernet_{size}.py")
    head, aux = cfg.model.decode_head, cfg.model.auxiliary_head
    assert cfg.model.backbone.arch == size
    assert head.in_channels == [SIZES[size]] * 4 and aux.in_channels == SIZES[size]
    assert (head.channels, head.pool_scales, head.dropout_ratio, head.norm_cfg.type) == (
        512,
        (1, 2, 3, 6),
        0.1,
        "SyncBN",
    )
    assert (aux.in_index, aux.channels, aux.loss_decode.loss_weight) == (2, 256, 0.4)
    assert cfg.optim_wrapper.optimizer == dict(type="AdamW", lr=6e-5, betas=(0.9, 0.999), weight_decay=0.01)
    assert cfg.optim_wrapper.paramwise_cfg.layer_decay_rate == 0.95
    warm_up, poly = cfg.param_scheduler
    assert (warm_up.start_factor, warm_up.end, poly.begin, poly.end, poly.power) == (1e-6, 1500, 1500, 160000, 1.0)
    assert cfg.model.test_cfg == dict(mode="slide", crop_size=(512, 512), stride=(341, 341))
    assert cfg.auto_scale_lr.base_batch_size == 8 * cfg.train_dataloader.batch_size == 16


def test_upernet_views_are_the_papers_six_ratios_and_flip():
    cfg = Config.fromfile(CONFIGS / "_base_" / "upernet_base.py")
    scales, flips = cfg.tta_pipeline[1].transforms[:2]
    assert [s.scale for s in scales] == [(2048 * r, 512 * r) for r in (0.5, 0.75, 1.0, 1.25, 1.5, 1.75)]
    assert [f.prob for f in flips] == [0.0, 1.0]


@pytest.mark.parametrize("name", ["maskrcnn_base", "upernet_base", "imagenet_base"])
def test_every_hook_and_constructor_named_in_a_config_is_registered(name):
    from mmengine.registry import HOOKS, OPTIM_WRAPPER_CONSTRUCTORS

    import lvit_dense.datasets
    import lvit_dense.engine.register
    import lvit_dense.models  # noqa: F401

    cfg = Config.fromfile(CONFIGS / "_base_" / f"{name}.py")
    hooks = [*cfg.custom_hooks, *(h for n, h in cfg.default_hooks.items() if n != "visualization")]
    assert all(HOOKS.get(hook.type) is not None for hook in hooks)
    assert OPTIM_WRAPPER_CONSTRUCTORS.get(cfg.optim_wrapper.constructor) is not None
