"""The classifier's batch and its teacher: odd batches under mixup, and options that do not exist."""

import pytest
import torch

from lvit_dense.distill import Distiller, DistillError
from lvit_dense.models.classifier import ImageBatch, LinearViTClassifier
from lvit_dense.vit import ViT

ARCH = (32, 2, 2)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_last_picture_of_an_odd_batch_is_not_mixed(count):
    torch.manual_seed(0)
    batch = ImageBatch({"mixup_alpha": 0.8, "cutmix_alpha": 1.0, "num_classes": 4, "label_smoothing": 0.1})
    images, targets = torch.rand(count, 3, 8, 8), torch.arange(count) % 4
    data = batch({"inputs": images.clone(), "targets": targets}, training=True)
    assert data["inputs"].shape == images.shape and data["targets"].shape == (count, 4)
    torch.testing.assert_close(data["targets"].sum(1), torch.ones(count))
    if count % 2:
        smoothed = torch.full((4,), 0.1 / 4)
        smoothed[targets[-1]] += 0.9
        torch.testing.assert_close(data["targets"][-1], smoothed)
        assert torch.equal(data["inputs"][-1], images[-1])
    assert count == 1 or not torch.equal(data["inputs"][0], images[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"facts": {"num_head": 2}}, "num_heads"),
        ({"facts": {"num_heads": 5}}, "distillation from .*teacher.pth"),
        ({"weight": "x"}, "weight='x': expected a number"),
    ],
)
def test_wrong_facts_and_options_are_one_error(options, message, tmp_path):
    path = tmp_path / "teacher.pth"
    torch.save(ViT(ARCH, "softmax", img_size=32).state_dict(), path)
    given = {"facts": {"num_heads": 2}, **options}
    model = LinearViTClassifier({"arch": ARCH, "img_size": 32}, 3, distill={"teacher": str(path), **given})
    with pytest.raises(DistillError, match=message):
        model.distiller()


@pytest.mark.parametrize("options", [{"weight": -1.0}, {"weight": float("nan")}, {"blocks": [0.5]}])
def test_weights_below_zero_and_parts_of_blocks_are_refused(options):
    with pytest.raises(DistillError, match="expected"):
        Distiller(ViT(ARCH, "softmax", img_size=32), **options)


def test_a_teacher_without_softmax_is_refused():
    with pytest.raises(DistillError, match=r"attends by ReLUAttention.*needs one with softmax"):
        Distiller(ViT(ARCH, "relu", img_size=32))
