"""What is read from a file of a family computes what timm's model of that family computes."""

import os
from functools import partial
from pathlib import Path

import pytest
import timm
import torch
from timm.layers import QuickGELU
from timm.models.beit import Beit
from timm.models.beit import checkpoint_filter_fn as filter_beit
from timm.models.vision_transformer import VisionTransformer, checkpoint_filter_fn
from torch import nn

from lvit_dense.transfer import build_teacher, read_source
from tests.transfer.conftest import ARCH, PATCH, SIDE, native_vit, save

REAL = Path(os.environ.get("LVIT_REAL_DATA", Path(__file__).resolve().parents[3] / "shared" / "real"))
COMMON = {"img_size": SIDE, "patch_size": PATCH, "num_classes": 0, **ARCH}
WITHOUT_CLASS = {"class_token": False, "global_pool": "avg", "fc_norm": False}


def shake(model):
    """Move every parameter, so that none is zero or one."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()


def largest_difference(path, reference, family, size=SIDE, **options):
    source = read_source(path, **options)
    assert source.family == family
    images = torch.randn(2, 3, size, size)
    with torch.no_grad():
        expected = reference.forward_features(images)
        actual = build_teacher(source, img_size=size)(images).tokens
    assert actual.shape == expected.shape
    return (actual - expected).abs().max().item()


@pytest.mark.parametrize(
    ("options", "family"),
    [
        ({}, "timm"),
        (WITHOUT_CLASS, "timm"),
        ({"init_values": 1.0, "no_embed_class": True}, "timm"),  # DeiT III
        ({"init_values": 1.0}, "dinov2"),
        ({"init_values": 1.0, "reg_tokens": 4, "no_embed_class": True}, "dinov2"),
        ({"init_values": 1.0, "reg_tokens": 1, "no_embed_class": True, **WITHOUT_CLASS}, "dinov2"),
        ({"qkv_bias": False, "mlp_ratio": 3.0}, "timm"),
    ],
    ids=["deit", "avg", "deit3", "dinov2", "dinov2-registers", "registers-only", "no-bias"],
)
def test_timm_files(options, family, tmp_path):
    model = shake(VisionTransformer(**COMMON, **options))
    path = save(model.state_dict(), tmp_path / "a.pth")
    assert largest_difference(path, model, family) < 2e-5


def test_dinov2_original_with_registers(write):
    model = VisionTransformer(**COMMON, init_values=1.0, reg_tokens=4, no_embed_class=True).eval()
    path = write("dinov2", native_vit("dinov2"))
    chunked = torch.load(path)["teacher"]
    flat = {name.removeprefix("backbone."): v for name, v in chunked.items() if name.startswith("backbone.")}
    flat = {(f"blocks.{n.split('.', 2)[2]}" if n.startswith("blocks.") else n): v for n, v in flat.items()}
    model.load_state_dict(checkpoint_filter_fn(flat, model))
    assert largest_difference(path, model, "dinov2") < 2e-5


def test_clip(write):
    model = VisionTransformer(**COMMON, pre_norm=True, norm_layer=partial(nn.LayerNorm, eps=1e-5), act_layer=QuickGELU)
    path = write("clip", native_vit("clip"))
    converted = checkpoint_filter_fn(torch.load(path), model)
    del converted["head.weight"], converted["head.bias"]
    model.eval().load_state_dict(converted)
    assert largest_difference(path, model, "clip") < 2e-5


@pytest.mark.parametrize("shared", [False, True], ids=["own tables", "shared table"])
def test_beit(shared, tmp_path):
    options = {"use_shared_rel_pos_bias": True} if shared else {"use_rel_pos_bias": True}
    model = shake(Beit(**COMMON, init_values=1.0, use_abs_pos_emb=False, global_pool="token", **options))
    path = save({"model": model.state_dict()}, tmp_path / "a.pth")
    assert largest_difference(path, model, "beit") < 2e-5
    assert filter_beit(torch.load(path), model).keys() == model.state_dict().keys()


def test_augreg(write):
    path = write("augreg", native_vit("augreg"))
    model = VisionTransformer(**COMMON)
    model.eval().load_pretrained(path)
    assert largest_difference(path, model, "augreg") < 2e-5


def test_mocov3_heads_are_those_of_the_family(write):
    model = VisionTransformer(**{**COMMON, "num_heads": 12}).eval()
    vit = native_vit("mocov3")
    model.load_state_dict(vit.state_dict())
    assert largest_difference(write("mocov3", vit), model, "mocov3") < 2e-5


def test_at_another_size(tmp_path):
    """timm resamples the same position rows when it is built for another size."""
    model = shake(VisionTransformer(**COMMON))
    path = save(model.state_dict(), tmp_path / "a.pth")
    larger = VisionTransformer(**{**COMMON, "img_size": 56}).eval()
    larger.load_state_dict(checkpoint_filter_fn(model.state_dict(), larger))
    assert largest_difference(path, larger, "timm", size=56) < 2e-5


@pytest.mark.real
@pytest.mark.parametrize("size", [224, pytest.param(518, marks=pytest.mark.slow)])
def test_real_weights_on_a_photograph(size, record_property):
    weights = REAL / "vit_small_patch14_518.safetensors"
    if not weights.exists():
        pytest.skip(f"no real weights at {weights}; set LVIT_REAL_DATA")
    from PIL import Image
    from timm.data import create_transform

    photograph = sorted((REAL / "photos20").iterdir())[0]
    images = create_transform((3, size, size), is_training=False)(Image.open(photograph).convert("RGB"))[None]
    source = read_source(str(weights))
    assert source.family == "dinov2" and source.facts.grid == (37, 37) and source.facts.num_heads == 6
    model = timm.create_model("vit_small_patch14_dinov2", img_size=size).eval()
    model.load_state_dict(checkpoint_filter_fn(dict(source.state), model))
    with torch.no_grad():
        expected = model.forward_features(images)
        actual = build_teacher(source, img_size=size)(images).tokens
    difference = (actual - expected).abs().max().item()
    record_property("largest difference", difference)
    assert difference <= 1e-4 * expected.abs().max().item()
