import math

import pytest
import torch
from torch import nn

from lvit_dense.models.backbone import LinearViT, real_tokens
from lvit_dense.models.pyramid import Pyramid
from lvit_dense.operators import Grid

ARCH = dict(embed_dim=32, depth=4, num_heads=2)


def make(**kwargs):
    torch.manual_seed(0)
    return LinearViT(**{"arch": ARCH, "operator": "relu", "img_size": 64, **kwargs})


@pytest.mark.parametrize("size", [(64, 64), (333, 500), (37, 53), (16, 16), (1, 40), (48, 592)])
@pytest.mark.parametrize("operator", ["relu", "softmax"])
def test_maps_follow_the_padded_size_and_are_contiguous(size, operator):
    model = make(operator=operator, window_size=3 if operator == "softmax" else None).eval()
    rows, columns = (math.ceil(side / 16) for side in size)
    with torch.no_grad():
        maps = model(torch.randn(1, 3, *size))
    expected = [(4 * rows, 4 * columns), (2 * rows, 2 * columns), (rows, columns), (-(-rows // 2), -(-columns // 2))]
    assert [tuple(m.shape) for m in maps] == [(1, 32, *e) for e in expected]
    assert all(m.is_contiguous() and not math.isnan(m.sum()) for m in maps)


def test_levels_come_from_the_named_blocks():
    """Stride 16 is the third index: its map is the LayerNorm of that block's output and nothing else."""
    model = make(out_indices=(0, 1, 2, 3)).eval()
    images = torch.randn(2, 3, 48, 80)
    with torch.no_grad():
        tokens, grid = model.vit.embed(images)
        for block in model.vit.blocks[:3]:
            tokens = block(tokens, grid, 0)
        expected = nn.functional.layer_norm(tokens, (32,), eps=1e-6).transpose(1, 2).reshape(2, 32, 3, 5)
        torch.testing.assert_close(model(images)[2], expected)


def test_pyramid_up4_places_tokens():
    """A token in row 1, column 2 becomes the 4 x 4 pixels at (4..7, 8..11): no shift, no transposition."""
    pyramid = Pyramid(32).double()
    grid = Grid(2, 3)
    tokens = torch.zeros(1, 6, 32, dtype=torch.float64)
    pyramid.norms[0] = nn.Identity()
    pyramid.norms[1] = nn.Identity()
    pyramid.up4[1] = nn.Identity()
    changed = tokens.clone()
    changed[0, 1 * 3 + 2] = 1
    for level, factor in ((0, 4), (1, 2)):
        before = pyramid([tokens] * 4, grid)[level]
        after = pyramid([changed] * 4, grid)[level]
        touched = (before != after).any(1)[0].nonzero()
        assert touched.min(0).values.tolist() == [factor, 2 * factor]
        assert touched.max(0).values.tolist() == [2 * factor - 1, 3 * factor - 1]


def test_pyramid_init_is_normal_by_fan_out():
    torch.manual_seed(0)
    weight = Pyramid(256).up2.weight
    assert weight.std().item() == pytest.approx((2 / (256 * 4)) ** 0.5, rel=0.02)


def test_every_parameter_gets_a_gradient():
    for operator in ("relu", "softmax"):
        model = make(operator=operator).train()
        sum(m.square().mean() for m in model(torch.randn(2, 3, 48, 40))).backward()
        assert [n for n, p in model.named_parameters() if p.grad is None] == []


def test_with_cp_gives_the_same_gradients_also_when_frozen():
    for frozen in (-1, 2):
        grads = []
        for with_cp in (False, True):
            model = make(with_cp=with_cp, frozen_stages=frozen).train()
            torch.manual_seed(1)
            sum(m.square().mean() for m in model(torch.randn(2, 3, 40, 40))).backward()
            grads.append({n: p.grad for n, p in model.named_parameters() if p.grad is not None})
        assert grads[0].keys() == grads[1].keys()
        for name, grad in grads[0].items():
            torch.testing.assert_close(grad, grads[1][name])


def test_frozen_stages_are_fixed_at_construction_and_survive_train():
    model = make(frozen_stages=2, drop_path_rate=0.5)
    frozen = {n for n, p in model.named_parameters() if not p.requires_grad}
    assert "vit.pos_embed" in frozen and "vit.patch_embed.proj.weight" in frozen
    assert {n.split(".")[2] for n in frozen if n.startswith("vit.blocks.")} == {"0", "1"}
    assert not any(n.startswith("pyramid") for n in frozen)
    model.train()
    assert not model.vit.blocks[1].training and model.vit.blocks[2].training and model.pyramid.training
    model.eval().train()
    assert not model.vit.blocks[0].mlp.training
    with pytest.raises(ValueError, match=r"between -1 \(none\) and 4, got 5"):
        make(frozen_stages=5)


def test_layer_depth_places_every_parameter():
    model = make(operator="softmax", pre_norm=True, registers=2)
    depth = {n: model.get_layer_depth(f"backbone.{n}")[0] for n, _ in model.named_parameters()}
    assert {depth[n] for n in ("vit.pos_embed", "vit.patch_embed.proj.bias", "vit.reg_token", "vit.norm_pre.bias")} == {
        0
    }
    assert depth["vit.blocks.0.attn.qkv.weight"] == 1 and depth["vit.blocks.3.ls2.gamma"] == 4
    assert depth["pyramid.norms.0.weight"] == depth["pyramid.up4.0.weight"] == 5
    assert model.get_layer_depth("decode_head.conv_seg.weight") == (5, 6)
    with pytest.raises(KeyError, match="has no place"):
        model.get_layer_depth("backbone.vit.adapter.weight")


def test_windows():
    model = make(operator="softmax", out_indices=(0, 1, 2, 3), window_size=14, global_indices=(1, 3))
    assert [block.attn.window_size for block in model.vit.blocks] == [14, None, 14, None]
    twelve = LinearViT(arch=dict(embed_dim=32, depth=12, num_heads=2), operator="softmax", window_size=14)
    assert [i for i, block in enumerate(twelve.vit.blocks) if block.attn.window_size is None] == [2, 5, 8, 11]
    assert twelve.out_indices == (2, 5, 8, 11)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (dict(out_indices=(0, 1, 2)), "four ascending block numbers that end with the last block, 3"),
        (dict(out_indices=(0, 1, 2, 2)), "four ascending"),
        (dict(arch=dict(embed_dim=32, depth=5, num_heads=2)), "5 blocks have no quarters"),
        (dict(arch=dict(embed_dim=36, depth=4, num_heads=2)), "got 36"),
        (dict(window_size=7, global_indices=(9,)), r"\[9\] are not among the 4 blocks"),
        (dict(global_indices=(1,)), "give window_size too"),
    ],
)
def test_bad_values(wrong, message):
    with pytest.raises(ValueError, match=message):
        make(**wrong)


def test_misspelt_keys_name_the_nearest():
    with pytest.raises(TypeError, match="no argument 'drop_path': did you mean 'drop_path_rate'"):
        make(drop_path=0.1)
    with pytest.raises(KeyError, match="did you mean 'source'"):
        make(transfer=dict(plan="copy", sources="x.pth"))


def test_real_tokens_are_those_with_a_real_pixel():
    images = torch.zeros(3, 3, 40, 48)
    images[0, :, :17, :33] = 1.5
    images[1, 0, 20, 20] = 1.0  # zeros inside the extent are picture, not padding
    mask = real_tokens(images, 16, prefix=1)
    assert mask[:, 0].all()
    assert mask[0, 1:].reshape(3, 3).tolist() == [[True, True, True], [True, True, True], [False] * 3]
    assert mask[1, 1:].reshape(3, 3).tolist() == [[True, True, False], [True, True, False], [False] * 3]
    assert mask[2].all()


@pytest.mark.parametrize("operator", ["relu", "softmax"])
def test_mask_padding_keeps_padding_out_of_the_real_tokens(operator):
    """With padding of whole patches and positions held, the coarse maps of the real part do not depend on it."""
    model = make(operator=operator, mask_padding=True, pos_embed="learned").eval()
    model.vit.pos_embed.data.zero_()  # positions are resized to the padded grid, which padding always changes
    picture = torch.randn(1, 3, 32, 48)
    padded = nn.functional.pad(picture, (0, 32, 0, 48))
    with torch.no_grad():
        alone, batched = model(picture), model(padded)
        torch.testing.assert_close(batched[2][..., :2, :3], alone[2])
        torch.testing.assert_close(batched[1][..., :4, :6], alone[1])
        model.mask_padding = False
        assert (model(padded)[2][..., :2, :3] - alone[2]).abs().max() > 1e-3


def test_found_from_mmengine_registry():
    from mmengine.registry import MODELS

    assert isinstance(MODELS.build(dict(type="LinearViT", arch=ARCH)), LinearViT)
