"""Windowed attention against a loop over windows; positions against torch's interpolation and the sin-cos formula."""

import math

import pytest
import torch
import torch.nn.functional as F

from lvit_dense.operators import OPERATORS, Grid
from lvit_dense.vit.attention import Attention
from lvit_dense.vit.embed import resize_positions, sincos_positions

SIZE = 3


def windowed(operator):
    torch.manual_seed(0)
    return Attention(12, OPERATORS.build(operator, dim=12, num_heads=3), window_size=SIZE).double()


@pytest.mark.parametrize("operator", ["softmax", "elu", "relu", "inline", "ttt"])
@pytest.mark.parametrize("grid", [Grid(6, 9), Grid(5, 7), Grid(1, 2)], ids=str)
def test_windows_equal_a_loop(operator, grid):
    attention = windowed(operator)
    whole = Attention(12, attention.operator).double()
    whole.load_state_dict(attention.state_dict())
    x = torch.randn(2, grid.tokens, 12, dtype=torch.float64)
    out = attention(x, grid, 0).reshape(2, *grid, 12)
    image = x.reshape(2, *grid, 12)
    for top in range(0, grid.height, SIZE):
        for left in range(0, grid.width, SIZE):
            # A window at the edge is smaller: its padding is masked out.
            window = image[:, top : top + SIZE, left : left + SIZE]
            small = Grid(*window.shape[1:3])
            expected = whole(window.flatten(1, 2), small, 0).reshape(window.shape)
            found = out[:, top : top + SIZE, left : left + SIZE]
            torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


def test_windows_keep_the_callers_mask():
    attention = windowed("relu")
    grid = Grid(3, 6)
    x = torch.randn(1, 18, 12, dtype=torch.float64)
    mask = torch.ones(1, 18, dtype=torch.bool)
    mask[0, [0, 5, 17]] = False
    changed = torch.where(mask[..., None], x, 7.0)
    torch.testing.assert_close(attention(x, grid, 0, mask)[mask], attention(changed, grid, 0, mask)[mask])
    assert not torch.allclose(attention(x, grid, 0)[mask], attention(x, grid, 0, mask)[mask])


def test_window_of_padding_only_stays_finite():
    attention = windowed("softmax")
    mask = torch.zeros(1, 18, dtype=torch.bool)
    mask.unflatten(1, (3, 6))[:, :, :3] = True
    assert attention(torch.randn(1, 18, 12, dtype=torch.float64), Grid(3, 6), 0, mask).isfinite().all()


def test_windows_refuse_prefix_tokens():
    with pytest.raises(ValueError, match="got 1 prefix"):
        windowed("relu")(torch.randn(1, 10, 12, dtype=torch.float64), Grid(3, 3), 1)


@pytest.mark.parametrize(("old", "new"), [((14, 14), (50, 84)), ((5, 7), (3, 11)), ((4, 4), (2, 8)), ((3, 5), (1, 1))])
def test_resized_positions_equal_interpolate(old, new):
    table = torch.randn(1, old[0] * old[1], 6)
    image = table.reshape(1, *old, 6).permute(0, 3, 1, 2)
    expected = F.interpolate(image, size=new, mode="bicubic", align_corners=False).flatten(2).transpose(1, 2)
    torch.testing.assert_close(resize_positions(table, Grid(*old), Grid(*new)), expected, rtol=1e-4, atol=1e-5)


def test_same_grid_keeps_the_bits():
    table = torch.randn(1, 35, 6)
    assert resize_positions(table, Grid(5, 7), Grid(5, 7)) is table


def test_gradient_of_resized_positions():
    table = torch.randn(1, 6, 2, requires_grad=True)
    weights = torch.randn(1, 20, 2)
    (resize_positions(table, Grid(2, 3), Grid(4, 5)) * weights).sum().backward()
    image = table.detach().reshape(1, 2, 3, 2).permute(0, 3, 1, 2).requires_grad_()
    resized = F.interpolate(image, size=(4, 5), mode="bicubic", align_corners=False).flatten(2).transpose(1, 2)
    (resized * weights).sum().backward()
    torch.testing.assert_close(table.grad, image.grad.flatten(2).transpose(1, 2), rtol=1e-4, atol=1e-5)


def test_sincos_by_hand():
    table = sincos_positions(Grid(2, 3), 8)[0]
    row, column = 1, 2
    slow = 10000 ** (-1 / 2)  # omega_1 of dim/4 = 2 frequencies, omega_0 is 1
    expected = [
        *(f(column * omega) for f in (math.sin, math.cos) for omega in (1, slow)),
        *(f(row * omega) for f in (math.sin, math.cos) for omega in (1, slow)),
    ]
    torch.testing.assert_close(table[row * 3 + column], torch.tensor(expected))
    with pytest.raises(ValueError, match="multiple of 4, got 6"):
        sincos_positions(Grid(2, 3), 6)
