"""Counted MACs against torch's counter and against hand formulas."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from lvit_dense.operators import Grid
from lvit_dense.vit import ViT
from lvit_dense.vit.macs import vit_macs

ARCH = dict(embed_dim=24, depth=2, num_heads=3)


@pytest.mark.parametrize("operator", ["softmax", "relu", "elu", "inline", "mhla", dict(type="ttt", inner="glu3")])
@pytest.mark.parametrize("windows", [None, [3, None]])
def test_equals_torchs_count(operator, windows):
    vit = ViT(ARCH, operator, img_size=(48, 80), class_token=False, window_sizes=windows)
    with FlopCounterMode(display=False) as counter, torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        vit(torch.randn(1, 3, 48, 80))
    # attn.proj of a windowed block and everything else sees the cropped tokens, so windows only add to attention.
    assert sum(vit_macs(vit, Grid(3, 5)).values()) == counter.get_total_flops() / 2


@pytest.mark.parametrize("grid", [Grid(14, 14), Grid(50, 84), Grid(128, 128)], ids=str)
def test_base_by_hand(grid):
    n, c, d, depth = grid.tokens, 768, 64, 12
    for operator, attention in {
        "softmax": 2 * n * n * c,
        "relu": n * c * (2 * d + 1),
        "inline": 2 * n * c * d,
        "mhla": n * c * (2 * d + 1) + 4 * 4 * c * (d + 1) + 25 * n * c,
        "ttt": 6 * n * c * d + 2 * 9 * n * d,
    }.items():
        with torch.device("meta"):
            vit = ViT("base", operator, class_token=False)
        extra = 3 * d * c + d * c if operator == "ttt" else 0
        expected = n * 768 * c + depth * (n * (4 * c * c + extra) + n * 8 * c * c + attention)
        assert sum(vit_macs(vit, grid).values()) == expected, operator
