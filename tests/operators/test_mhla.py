"""MHLA against the explicit map over ragged blocks, in float64."""

import math

import pytest
import torch
import torch.nn.functional as F

from lvit_dense.operators import OPERATORS, Grid
from lvit_dense.operators.mhla import mixing_weights
from tests.operators.operator_cases import build, make_inputs, trainable

EPS = 1e-6


def convolution(operator, inputs):
    """The 5x5 depth-wise convolution of the v map, channel by channel."""
    b, heads, n, d = inputs.v.shape
    out = torch.empty_like(inputs.v)
    for channel in range(heads * d):
        head, c = divmod(channel, d)
        image = inputs.v[:, head, :, c].reshape(b, 1, *inputs.grid)
        kernel, bias = operator.local.weight[channel : channel + 1], operator.local.bias[channel : channel + 1]
        out[:, head, :, c] = F.conv2d(image, kernel, bias, padding=2).reshape(b, n)
    return out


def by_blocks(inputs, mix, block_of):
    """The explicit map over tokens, each pair weighted by the blocks that block_of(row, column) puts them in."""
    q, k = F.relu(inputs.q) + EPS, F.relu(inputs.k) + EPS
    block = torch.tensor([block_of(*divmod(token, inputs.grid.width)) for token in range(inputs.grid.tokens)])
    scores = q @ k.transpose(-2, -1) * mix[block][:, block]
    return scores / (scores.sum(-1, keepdim=True) + EPS) @ inputs.v


@pytest.mark.parametrize("grid", [Grid(4, 6), Grid(3, 5), Grid(5, 4), Grid(1, 7), Grid(1, 1)], ids=str)
def test_fixed_layout_equals_the_ragged_computation(grid):
    operator = build("mhla")
    torch.nn.init.uniform_(operator.mix)
    inputs = make_inputs(operator, grid)
    height, width = math.ceil(grid.height / 2), math.ceil(grid.width / 2)
    expected = by_blocks(inputs, operator.mix, lambda y, x: 2 * (y // height) + x // width)
    torch.testing.assert_close(operator(inputs), expected + convolution(operator, inputs), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("grid", [Grid(14, 14), Grid(8, 15), Grid(3, 5)], ids=str)
def test_fixed_block_equals_the_ragged_computation(grid):
    operator = build(dict(type="mhla", layout="fixed_block", transform="exp"), dim=4, heads=2)
    inputs = make_inputs(operator, grid, batch=1)
    rows, columns = math.ceil(grid.height / 7), math.ceil(grid.width / 7)
    if (rows, columns) == (2, 2):
        torch.nn.init.uniform_(operator.mix)  # the learned matrix serves the pre-training layout
        mix = operator.mix
    else:
        mix = mixing_weights(Grid(rows, columns), "exp")
    expected = by_blocks(inputs, mix, lambda y, x: columns * (y // 7) + x // 7)
    torch.testing.assert_close(operator(inputs), expected + convolution(operator, inputs), rtol=1e-9, atol=1e-12)


def test_gradients_equal_those_of_the_ragged_computation():
    operator = build("mhla")
    torch.nn.init.uniform_(operator.mix)
    gradients = []
    for slow in (False, True):
        inputs = trainable(make_inputs(operator, Grid(3, 5)))
        operator.zero_grad()
        if slow:
            out = by_blocks(inputs, operator.mix, lambda y, x: 2 * (y // 2) + x // 3) + convolution(operator, inputs)
        else:
            out = operator(inputs)
        out.square().sum().backward()
        gradients.append([inputs.q.grad, inputs.k.grad, inputs.v.grad, operator.mix.grad, operator.local.weight.grad])
    for ours, expected in zip(*gradients):
        torch.testing.assert_close(ours, expected, rtol=1e-9, atol=1e-11)


def test_repo_normalizer_mixes_by_the_place_in_the_block():
    exact = build("mhla")
    repo = build(dict(type="mhla", normalizer="repo"))
    repo.load_state_dict(exact.state_dict())
    grid = Grid(4, 6)
    inputs = make_inputs(exact, grid)
    q, k = F.relu(inputs.q) + EPS, F.relu(inputs.k) + EPS
    blocks = [[grid.width * (y0 + y) + x0 + x for y in range(2) for x in range(3)] for y0 in (0, 2) for x0 in (0, 3)]
    key_sums = [k[:, :, block].sum(2) for block in blocks]
    expected = torch.zeros_like(inputs.v)
    for n, block in enumerate(blocks):
        state = sum(
            repo.mix[n, m] * k[:, :, other].transpose(-2, -1) @ inputs.v[:, :, other] for m, other in enumerate(blocks)
        )
        for place, i in enumerate(block):
            normaliser = EPS + sum(
                repo.mix[n, m] * (q[:, :, other[place]] * key_sums[m]).sum(-1, keepdim=True)
                for m, other in enumerate(blocks)
            )
            expected[:, :, i] = (q[:, :, i, None] @ state)[:, :, 0] / normaliser
    expected = expected + convolution(repo, inputs)
    torch.testing.assert_close(repo(inputs), expected, rtol=1e-10, atol=1e-12)
    assert not torch.allclose(exact(inputs), expected, rtol=1e-2)


def test_repo_normalizer_refuses_padding():
    operator = build(dict(type="mhla", normalizer="repo"))
    with pytest.raises(ValueError, match=r"3x5 grid .* 2x2 blocks of 2x3 tokens"):
        operator(make_inputs(operator, Grid(3, 5)))
    inputs = make_inputs(operator, Grid(4, 4))
    with pytest.raises(ValueError, match="a mask"):
        operator(inputs._replace(mask=torch.ones(2, 16, dtype=torch.bool)))


def test_transforms_by_hand():
    near, far = 1 / math.sqrt(2), 1.0  # distances of 2x2 block centres over the largest, sqrt 2
    for transform, values in {
        "cos": (1.0, math.cos(math.pi / 4 * near), math.cos(math.pi / 4 * far)),
        "linear": (1.0, 1 - near, 0.0),
        "exp": (1.0, math.exp(-1 / 3), math.exp(-math.sqrt(2) / 3)),
        "local": (1.0, 1.0, 1.0),
    }.items():
        same, side, corner = (value / (values[0] + 2 * values[1] + values[2]) for value in values)
        expected = [[same, side, side, corner], [side, same, corner, side], [side, corner, same, side]]
        expected.append([corner, side, side, same])
        torch.testing.assert_close(mixing_weights(Grid(2, 2), transform), torch.tensor(expected).double())
    gaussian = mixing_weights(Grid(2, 2), "gaussian")
    assert gaussian[0, 1].item() == pytest.approx(math.exp(-1 / (2 * (math.sqrt(2) / 3) ** 2)))
    local = mixing_weights(Grid(1, 3), "local")  # distance 2 is outside, columns sum to 1
    torch.testing.assert_close(local[:, 0], torch.tensor([0.5, 0.5, 0.0]).double())
    assert mixing_weights(Grid(1, 1), "linear").item() == 1.0


def test_a_uniform_mix_is_plain_linear_attention():
    operator = build("mhla")
    torch.nn.init.ones_(operator.mix)
    inputs = make_inputs(operator, Grid(3, 5))
    q, k = F.relu(inputs.q) + EPS, F.relu(inputs.k) + EPS
    scores = q @ k.transpose(-2, -1)
    expected = scores / (scores.sum(-1, keepdim=True) + EPS) @ inputs.v + convolution(operator, inputs)
    torch.testing.assert_close(operator(inputs), expected, rtol=1e-10, atol=1e-12)


def test_parameters_per_base_block():
    operator = OPERATORS.build("mhla", dim=768, num_heads=12)
    assert sum(p.numel() for p in operator.parameters()) == 19_984


def test_building_on_the_meta_device_leaves_no_trace():
    mixing_weights.cache_clear()
    with torch.device("meta"):
        assert OPERATORS.build("mhla", dim=8, num_heads=2).mix.is_meta
    assert OPERATORS.build("mhla", dim=8, num_heads=2).mix.any()


def test_blocks_do_not_share_their_matrix():
    first, second = (OPERATORS.build("mhla", dim=8, num_heads=2) for _ in range(2))
    with torch.no_grad():
        first.mix.zero_()
    assert second.mix.any()
    assert mixing_weights(Grid(2, 2), "cos").any()


@pytest.mark.parametrize(
    ("switch", "near"), [(dict(transform="cosine"), "cos"), (dict(layout="fixed_blocks"), "fixed_block")]
)
def test_unknown_switch_values_name_the_nearest(switch, near):
    with pytest.raises(KeyError, match=f"did you mean '{near}'"):
        OPERATORS.build(dict(type="mhla", **switch), dim=8, num_heads=2)
