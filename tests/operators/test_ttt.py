"""TTT: the inner step against autograd of the inner loss, everything in float64."""

import pytest
import torch
import torch.nn.functional as F

from lvit_dense.operators import OPERATORS, Grid
from lvit_dense.vit import ViT
from tests.operators.operator_cases import build, make_inputs, trainable

GRID = Grid(3, 5)
CLOSE = dict(rtol=1e-10, atol=1e-12)


def inner_gradients(loss, weights):
    """Gradients of the inner loss, with a graph for the outer gradients."""
    return torch.autograd.grad(loss, weights, create_graph=True)


def per_image(weight, batch):
    return weight.expand(batch, *weight.shape).contiguous().requires_grad_()


def reference(operator, inputs):
    """Both branches of the default operator, its update by autograd of L = -(s/N) sum f(k).v."""
    b, n, d, s = inputs.q.shape[0], inputs.grid.tokens, operator.head_dim, 1 / 3
    w1, w2 = operator.w1.expand(b, -1, -1, -1), operator.w2.expand(b, -1, -1, -1)
    with torch.enable_grad():
        f = (inputs.k @ w1) * F.silu(inputs.k @ w2)
        g1, g2 = inner_gradients(-(s / n) * (f * inputs.v).sum(), (w1, w2))
    w1, w2 = (w - g / (g.norm(dim=2, keepdim=True) + 1) for w, g in ((w1, g1), (w2, g2)))
    branch1 = ((inputs.q @ w1) * F.silu(inputs.q @ w2)).transpose(1, 2).flatten(2)

    q2, k2, v2 = (t.transpose(1, 2).reshape(b, d, *inputs.grid) for t in inputs.extra.split(d, -1))
    images = []
    for i in range(b):
        kernel = operator.w3 * 1.0
        f = F.conv2d(k2[i : i + 1], kernel, padding=1, groups=d)
        (g,) = inner_gradients(-(s / n) * (f * v2[i : i + 1]).sum(), (kernel,))
        g = g / (g.flatten(1).norm(dim=1)[:, None, None, None] + 1)
        images.append(F.conv2d(q2[i : i + 1], kernel - g, padding=1, groups=d))
    return branch1, torch.cat(images).flatten(2).transpose(1, 2)


def test_both_branches_equal_a_step_of_autograd():
    operator = build("ttt")
    inputs = make_inputs(operator, GRID)
    branch1, branch2 = reference(operator, trainable(inputs))
    torch.testing.assert_close(operator(inputs).transpose(1, 2).flatten(2), branch1, **CLOSE)
    torch.testing.assert_close(operator.extra(inputs), branch2, **CLOSE)


def test_outer_gradients_flow_through_the_update():
    operator = build("ttt")
    gradients = []
    for slow in (False, True):
        inputs = trainable(make_inputs(operator, GRID))
        operator.zero_grad()
        if slow:
            branches = reference(operator, inputs)
        else:
            branches = operator(inputs).transpose(1, 2).flatten(2), operator.extra(inputs)
        sum(branch.square().sum() for branch in branches).backward()
        leaves = (inputs.q, inputs.k, inputs.v, inputs.extra, *operator.parameters())
        gradients.append([leaf.grad for leaf in leaves])
    for ours, expected in zip(*gradients):
        torch.testing.assert_close(ours, expected, rtol=1e-8, atol=1e-10)


def test_glu3_equals_a_step_of_autograd():
    operator = build(dict(type="ttt", inner="glu3"))
    inputs = make_inputs(operator, GRID)
    weights = [w.expand(2, -1, -1, -1) for w in (operator.w1, operator.w2, operator.w3)]

    def f(x, w1, w2, w3):
        return (F.silu(x @ w1) * (x @ w2)) @ w3

    s = operator.head_dim**-0.5
    gradients = inner_gradients(-(s / GRID.tokens) * (f(inputs.k, *weights) * inputs.v).sum(), weights)
    expected = f(inputs.q, *(w - g for w, g in zip(weights, gradients)))
    torch.testing.assert_close(operator(inputs), expected, **CLOSE)
    assert operator.extra(inputs) is None
    assert (operator.extra_inputs, operator.extra_outputs) == (0, 0)


def test_key_norm_and_locality_come_in_this_order():
    plain, switched = build("ttt"), build(dict(type="ttt", key_norm=True, locality=True))
    switched.load_state_dict(plain.state_dict(), strict=False)
    inputs = make_inputs(plain, GRID)
    mean, variance = inputs.k.mean(2, keepdim=True), inputs.k.var(2, keepdim=True, unbiased=False)
    keys = (inputs.k - mean) / (variance + 1).sqrt()

    def add_convolution(convolution, t):
        image = t.transpose(1, 2).reshape(2, *GRID, -1).permute(0, 3, 1, 2)
        return t + convolution(image).permute(0, 2, 3, 1).reshape(2, GRID.tokens, *t.shape[1::2]).transpose(1, 2)

    expected = plain(
        inputs._replace(q=add_convolution(switched.q_conv, inputs.q), k=add_convolution(switched.k_conv, keys))
    )
    torch.testing.assert_close(switched(inputs), expected, **CLOSE)


def test_row_and_column_layout_of_the_second_branch():
    # q2, k2, v2 are the further rows of qkv in this order; the first 3C rows keep timm's layout.
    vit = ViT(dict(embed_dim=12, depth=1, num_heads=3), "ttt", img_size=64).double()
    attention = vit.blocks[0].attn
    assert attention.qkv.weight.shape == (3 * 12 + 3 * 4, 12)
    assert attention.proj.weight.shape == (12, 12 + 4)
    x = torch.randn(2, 15, 12, dtype=torch.float64)
    inputs = attention.inputs(x, GRID, 0)
    rows = F.linear(x, attention.qkv.weight, attention.qkv.bias)
    assert torch.equal(inputs.q.transpose(1, 2).flatten(2), rows[..., :12])
    assert torch.equal(inputs.v.transpose(1, 2).flatten(2), rows[..., 24:36])
    assert torch.equal(inputs.extra, rows[..., 36:])
    branches = [inputs.q.new_empty(0), attention.operator.extra(inputs)]
    branches[0] = attention.operator(inputs).transpose(1, 2).flatten(2)
    torch.testing.assert_close(attention(x, GRID, 0), attention.proj(torch.cat(branches, -1)), **CLOSE)


def test_native_adds_its_convolution_before_norm1_and_has_no_positions():
    vit = ViT(dict(embed_dim=12, depth=1, num_heads=3), dict(type="ttt", native=True), img_size=64).double()
    assert vit.pos_embed is None
    assert vit.facts["pos_embed"] == "none"
    assert not any(name.startswith("pos_embed") for name in vit.state_dict())
    assert ViT(**vit.facts).state_dict().keys() == vit.state_dict().keys()
    block = vit.blocks[0]
    x = torch.randn(2, 15, 12, dtype=torch.float64)
    image = x.transpose(1, 2).reshape(2, 12, *GRID)
    entered = x + block.attn.operator.cpe(image).flatten(2).transpose(1, 2)
    middle = entered + block.attn(block.norm1(entered), GRID, 0)
    torch.testing.assert_close(block(x, GRID, 0), middle + block.mlp(block.norm2(middle)), **CLOSE)


def test_base_has_90_million_parameters():
    with torch.device("meta"):
        vit = ViT("base", "ttt")
    head = 768 * 1000 + 1000
    assert round((sum(p.numel() for p in vit.parameters()) + head) / 1e6, 1) == 90.0


def test_scale_does_not_change_between_calls():
    operator = build("ttt").eval()
    inputs = make_inputs(operator, GRID)
    before = operator.scale
    operator(inputs), operator.extra(inputs)
    assert operator.scale == before == 1 / 3


def test_missing_second_branch_and_unknown_inner_are_named():
    operator = build("ttt")
    with pytest.raises(ValueError, match="12 further rows of qkv"):
        operator.extra(make_inputs(operator, GRID)._replace(extra=None))
    with pytest.raises(KeyError, match="did you mean 'glu3'"):
        OPERATORS.build(dict(type="ttt", inner="glu33"), dim=8, num_heads=2)
