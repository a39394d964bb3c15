"""The ViT against timm's, on any picture size, and what its options promise."""

import pytest
import timm
import torch

from lvit_dense.operators import Grid
from lvit_dense.vit import ViT

ARCH = dict(embed_dim=12, depth=3, num_heads=3)
CLOSE = dict(rtol=1e-10, atol=1e-12)


def tiny(operator="relu", **arguments):
    torch.manual_seed(0)
    model = ViT(ARCH, operator, **{"img_size": 64, **arguments}).double()
    for parameter in model.parameters():
        if not parameter.any():
            torch.nn.init.normal_(parameter, std=0.1)
    return model


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({}, {}),
        (dict(registers=2, init_values=0.5), dict(reg_tokens=2, init_values=0.5, no_embed_class=False)),
        (dict(pre_norm=True, patch_bias=False, qkv_bias=False), dict(pre_norm=True, qkv_bias=False)),
    ],
    ids=["deit", "registers-layerscale", "pre-norm"],
)
def test_equals_timm(ours, theirs):
    model = tiny("softmax", img_size=(48, 80), **ours)
    reference = timm.models.VisionTransformer(
        img_size=(48, 80), num_classes=0, global_pool="", **ARCH, **theirs
    ).double()
    state = model.state_dict()
    if "reg_token" in state:
        # timm gives registers position rows, ours have none: put zeros there.
        rows = state["pos_embed"]
        state["pos_embed"] = torch.cat([rows[:, :1], torch.zeros(1, 2, 12), rows[:, 1:]], 1)
    reference.load_state_dict(state, strict=True)
    images = torch.randn(2, 3, 48, 80, dtype=torch.float64)
    torch.testing.assert_close(model(images).tokens, reference(images), **CLOSE)


def test_intermediates_are_the_block_outputs_without_prefix():
    model = tiny()
    images = torch.randn(2, 3, 50, 70, dtype=torch.float64)
    tokens, grid = model.embed(images)
    outputs = []
    for block in model.blocks:
        tokens = block(tokens, grid, 1)
        outputs.append(tokens[:, 1:])
    taken, taken_grid = model.intermediates(images, [0, 2])
    assert taken_grid == grid == Grid(4, 5)
    assert torch.equal(taken[0], outputs[0])
    assert torch.equal(taken[1], outputs[2])


@pytest.mark.parametrize("size", [(1, 1), (16, 16), (37, 53), (64, 256), (333, 500)], ids=str)
@pytest.mark.parametrize("operator", ["relu", "mhla", "ttt"])
def test_any_picture_size(size, operator):
    model = tiny(operator)
    features = model(torch.randn(1, 3, *size, dtype=torch.float64))
    assert features.grid == Grid(-(-size[0] // 16), -(-size[1] // 16))
    assert features.patches.shape == (1, features.grid.tokens, 12)
    assert features.tokens.isfinite().all()


def test_same_count_of_another_shape_has_other_positions():
    model = tiny("relu", img_size=128)
    tall = model.embed(torch.zeros(1, 3, 64, 256, dtype=torch.float64))[0]
    square = model.embed(torch.zeros(1, 3, 128, 128, dtype=torch.float64))[0]
    assert tall.shape == square.shape
    assert not torch.allclose(tall, square)


def test_sides_are_padded_with_zeros_to_whole_patches():
    model = tiny()
    images = torch.randn(1, 3, 40, 50, dtype=torch.float64)
    padded = torch.nn.functional.pad(images, (0, 14, 0, 8))
    assert torch.equal(model(images).tokens, model(padded).tokens)


@pytest.mark.parametrize("operator", ["relu", "inline", "mhla", "ttt", "hsmla", "softmax"])
def test_checkpointed_gradients_are_equal(operator):
    plain, recomputing = tiny(operator), tiny(operator, with_cp=True)
    recomputing.load_state_dict(plain.state_dict())
    images = torch.randn(2, 3, 48, 80, dtype=torch.float64)
    for model in (plain, recomputing):
        model(images).tokens.square().sum().backward()
    pairs = list(zip(plain.parameters(), recomputing.parameters()))
    assert all(p.grad is not None for p, _ in pairs)
    assert all(torch.equal(p.grad, r.grad) for p, r in pairs)


def test_one_operator_per_block():
    model = tiny(["softmax", "relu", dict(type="elu", qk_scale=0.5)])
    assert [type(b.attn.operator).__name__ for b in model.blocks] == [
        "SoftmaxAttention",
        "ReLUAttention",
        "ELUAttention",
    ]
    with pytest.raises(ValueError, match="operator lists 2 entries for 3 blocks"):
        tiny(["relu", "relu"])


@pytest.mark.parametrize("operator", ["relu", "mhla", dict(type="ttt", native=True), dict(type="hsmla", tau=0.3)])
def test_facts_rebuild_the_model(operator):
    model = tiny(operator, img_size=(48, 80), init_values=0.1, act_layer="quick_gelu")
    again = ViT(**model.facts).double()
    again.load_state_dict(model.state_dict(), strict=True)
    images = torch.randn(1, 3, 48, 80, dtype=torch.float64)
    assert torch.equal(model(images).tokens, again(images).tokens)


def test_token_layout_is_the_operators_choice():
    for operator, class_token, positions in (
        ("softmax", True, "learned"),
        ("elu", True, "learned"),
        ("relu", True, "learned"),
        ("inline", True, "learned"),
        ("mhla", False, "sincos"),
        ("ttt", False, "sincos"),
        ("hsmla", False, "learned"),
        (dict(type="ttt", native=True), False, "none"),
    ):
        facts = tiny(operator).facts
        assert (facts["class_token"], facts["pos_embed"]) == (class_token, positions), operator


def test_mistakes_are_named():
    with pytest.raises(KeyError, match="unknown position embedding 'sincoss': did you mean 'sincos'"):
        tiny(pos_embed="sincoss")
    with pytest.raises(KeyError, match="unknown size 'bas': did you mean 'base'"):
        ViT("bas")
    with pytest.raises(ValueError, match="empty picture"):
        tiny()(torch.zeros(1, 3, 0, 16, dtype=torch.float64))
