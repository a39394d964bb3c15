"""Mimetic and impulse initialisation by their defining properties."""

import pytest
import torch
import torch.nn.functional as F

from lvit_dense.transfer import TransferError, transfer
from lvit_dense.transfer.analytic import factor, noisy_identity
from lvit_dense.transfer.plans.impulse import TAPS
from lvit_dense.vit import ViT

GRID = 14


def vit(operator="softmax", embed_dim=192, num_heads=3, depth=1, **changes):
    arch = {"embed_dim": embed_dim, "depth": depth, "num_heads": num_heads}
    return ViT(**{"arch": arch, "operator": operator, "img_size": 16 * GRID, **changes})


def composite(model):
    """(proj v)^T, (heads q^T k) in float64 of block 0."""
    q, k, v = model.blocks[0].attn.qkv.weight.detach().double().chunk(3)
    heads = [(a.T @ b) for a, b in zip(q.chunk(model.arch.num_heads), k.chunk(model.arch.num_heads))]
    return (model.blocks[0].attn.proj.weight.detach().double() @ v).T, heads


def test_factor_is_the_best_approximation():
    matrix = noisy_identity(21, 0.7, 0.7)
    left, right = factor(matrix, 8)
    tail = torch.linalg.svdvals(matrix)[8:]
    assert left.shape == (21, 8) and right.shape == (8, 21)
    torch.testing.assert_close((matrix - left @ right).norm(), tail.norm())


def test_mimetic_composites_with_one_full_rank_head():
    torch.manual_seed(0)
    model = vit(num_heads=1)
    report = transfer("mimetic", None, model)
    value, (query_key,) = composite(model)
    for matrix, diagonal, noise in ((query_key, 0.7, 0.7), (value, -0.4, 0.4)):
        off = matrix[~torch.eye(192, dtype=torch.bool)]
        assert matrix.diagonal().mean().item() == pytest.approx(diagonal, abs=0.02)
        assert off.std().item() == pytest.approx(noise / 192**0.5, rel=0.03)
        assert abs(off.mean()) < 0.002
    assert not model.blocks[0].attn.qkv.bias.any() and not model.blocks[0].attn.proj.bias.any()
    assert report.group("qkv").computed == report.group("proj").computed == 2
    assert report.group("mlp").computed == report.group("mlp").copied == 0


def test_mimetic_heads_have_rank_head_dim_and_lean_to_the_identity():
    torch.manual_seed(0)
    model = vit()
    transfer("mimetic", None, model)
    value, heads = composite(model)
    assert value.diagonal().mean().item() == pytest.approx(-0.4, abs=0.02)
    for matrix in heads:
        assert torch.linalg.matrix_rank(matrix, tol=1e-3) == 64
        ratio = matrix.diagonal().mean() / matrix[~torch.eye(192, dtype=torch.bool)].abs().mean()
        assert ratio > 5
    assert not torch.allclose(heads[0], heads[1], atol=1e-2)
    transfer({"type": "mimetic", "as_released": True}, None, model)
    swapped, _ = composite(model)
    assert swapped.diagonal().mean() < -0.2


@pytest.mark.parametrize("changes", [{}, {"class_token": False, "pos_embed": "sincos"}], ids=["learned", "sincos"])
def test_impulse_heads_look_at_their_neighbour(changes):
    torch.manual_seed(0)
    model = vit(embed_dim=576, num_heads=9, **changes)
    before = model.pos_embed.clone()
    transfer("impulse", None, model)
    scale = 18 if model.learned_positions else 1
    torch.testing.assert_close(model.pos_embed, before * scale)
    positions = F.layer_norm(model.pos_embed[0, -GRID * GRID :].detach().double(), (576,))
    q, k, _ = model.blocks[0].attn.qkv.weight.detach().double().chunk(3)
    for head, (a, b) in enumerate(zip(q.chunk(9), k.chunk(9))):
        assert a.norm().item() == pytest.approx(7, rel=1e-4) and b.norm().item() == pytest.approx(7, rel=1e-4)
        attention = ((positions @ a.T) @ (positions @ b.T).T / 8).softmax(-1)
        maps = attention.reshape(GRID, GRID, GRID, GRID)
        tap = TAPS[head]
        dy, dx = tap // 3 - 1, tap % 3 - 1
        by_offset = {(y, x): mean_at(maps, y, x) for y in range(-3, 4) for x in range(-3, 4)}
        assert max(by_offset, key=by_offset.get) == (dy, dx), (head, by_offset)


def mean_at(maps, dy, dx):
    """Mean attention from patches at least 3 from the edge to the patch (dy, dx) away."""
    inside = range(3, GRID - 3)
    return sum(maps[y, x, y + dy, x + dx].item() for y in inside for x in inside) / len(inside) ** 2


def test_undefined_where_no_products_of_q_and_k_weigh_the_values():
    for plan in ("mimetic", "impulse"):
        with pytest.raises(TransferError, match=rf"'{plan}' is undefined for the operator of 2 of 2 blocks.*'ttt'"):
            transfer(plan, None, vit("ttt", depth=2))
    with pytest.raises(TransferError, match="needs positions"):
        transfer("impulse", None, vit(pos_embed="none"))
