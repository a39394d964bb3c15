"""Every shipped config builds at its full size, and trains every parameter at a tiny width."""

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope

from lvit_dense.experiment.cell import TASKS
from lvit_dense.experiment.leaves import OPERATORS, SIZES, leaves
from lvit_dense.vit import ARCHS
from tests.dense.conftest import ARCH, CONFIGS, detection_sample, segmentation_sample, tiny_config
from tests.dense.test_tasks import BOXES, losses, without_gradient


def classifier_config(operator, size):
    cfg = Config.fromfile(CONFIGS / f"imagenet_{operator}_{size}.py")
    cfg.model.num_classes = 5
    cfg.model.backbone.update(arch=tuple(ARCH.values()), img_size=48)
    return cfg


def step(model, task):
    """Backward of one training step; a finite loss."""
    if task == "imagenet":
        total, _ = model.parse_losses(model(torch.randn(2, 3, 48, 48), torch.tensor([0, 3]), mode="loss"))
    elif task == "maskrcnn":
        total, _ = losses(model, [detection_sample(61, 64, BOXES), detection_sample(64, 50, BOXES[:1], seed=1)])
    else:
        total, _ = losses(model, [segmentation_sample(64, 64), segmentation_sample(50, 37, seed=1)])
    total.backward()
    return total


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("task", TASKS)
def test_every_config_takes_a_training_step(build, task, operator, size):
    cfg = classifier_config(operator, size) if task == "imagenet" else tiny_config(task, operator, size)
    cfg.model.backbone.drop_path_rate = 0.0
    model = build(cfg).train()
    assert torch.isfinite(step(model, task))
    assert without_gradient(model) == []


@pytest.mark.parametrize("name", sorted(leaves()))
def test_every_config_builds_at_its_full_size(name):
    cfg = Config.fromfile(CONFIGS / name)
    init_default_scope(cfg.default_scope)
    with torch.device("meta"):
        model = MODELS.build(cfg.model)
    vit = model.vit if name.startswith("imagenet") else model.backbone.vit
    assert vit.arch == ARCHS[name.removesuffix(".py").split("_")[2]]
