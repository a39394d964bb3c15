"""HSMLA-style attention: the convolutions, the gate, the two branches."""

import pytest
import torch
import torch.nn.functional as F

from lvit_dense.operators import OPERATORS, Grid
from lvit_dense.operators.hsmla import MultiScaleConv
from tests.operators.operator_cases import build, make_inputs, trainable

GRID = Grid(4, 5)
CLOSE = dict(rtol=1e-10, atol=1e-12)


def pieces(operator, inputs):
    """Softmax result, linear result and gate, token by token as described."""
    b = inputs.x.shape[0]
    enhanced = {}
    for field, convolution in (("q", operator.q_conv), ("k", operator.k_conv), ("v", operator.v_conv)):
        t = getattr(inputs, field)
        image = t.transpose(1, 2).reshape(b, *GRID, -1).permute(0, 3, 1, 2)
        mean = sum(conv(image) for conv in (convolution.small, convolution.middle, convolution.large)) / 3
        enhanced[field] = t + mean.permute(0, 2, 3, 1).reshape(b, GRID.tokens, *t.shape[1::2]).transpose(1, 2)
    q, k, v = enhanced["q"], enhanced["k"], enhanced["v"]
    soft = (q @ k.transpose(-2, -1) * operator.head_dim**-0.5).softmax(-1) @ v
    scores = F.relu(q) @ F.relu(k).transpose(-2, -1)
    linear = scores / (scores.sum(-1, keepdim=True) + 1e-6) @ v
    image = inputs.x.reshape(b, *GRID, -1).permute(0, 3, 1, 2)
    return soft, linear, operator.gate(image).sigmoid().reshape(b, GRID.tokens)


def test_one_7x7_convolution_is_the_mean_of_three():
    torch.manual_seed(0)
    conv = MultiScaleConv(6).double()
    assert not conv(torch.randn(1, 6, 9, 8).double()).any()  # zero at the start
    for parameter in conv.parameters():
        torch.nn.init.normal_(parameter)
    x = torch.randn(2, 6, 9, 8, dtype=torch.float64)
    torch.testing.assert_close(conv(x), (conv.small(x) + conv.middle(x) + conv.large(x)) / 3, **CLOSE)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("top_k", [None, 3, 100])
def test_softmax_where_the_gate_is_open(training, top_k):
    operator = build(dict(type="hsmla", tau=0.5, top_k=top_k)).train(training)
    inputs = make_inputs(operator, GRID)
    soft, linear, gate = pieces(operator, inputs)
    chosen = gate > 0.5
    assert 3 < chosen.sum(1).min() < GRID.tokens
    if top_k == 3:
        chosen &= gate >= gate.sort(1, descending=True).values[:, 2:3]
        assert chosen.sum(1).tolist() == [3, 3]
    expected = torch.where(chosen[:, None, :, None], soft, linear)
    torch.testing.assert_close(operator(inputs), expected, **CLOSE)


@pytest.mark.parametrize("tau", [0.0, 1.0])
def test_all_or_no_token_selected(tau):
    operator = build(dict(type="hsmla", tau=tau)).eval()
    inputs = make_inputs(operator, GRID)
    soft, linear, _ = pieces(operator, inputs)
    torch.testing.assert_close(operator(inputs), linear if tau else soft, **CLOSE)


def test_gate_gradient_is_passed_straight_through():
    operator = build(dict(type="hsmla", tau=0.5))
    inputs = trainable(make_inputs(operator, GRID))
    soft, linear, gate = pieces(operator, inputs)
    direction = torch.randn_like(soft)
    operator.zero_grad()
    (operator(inputs) * direction).sum().backward()
    gradient = ((soft - linear) * direction).sum((1, 3))  # of a soft mask, at every token
    (expected,) = torch.autograd.grad((gate * gradient.detach()).sum(), operator.gate.weight)
    torch.testing.assert_close(operator.gate.weight.grad, expected, **CLOSE)


def test_evaluation_computes_softmax_for_the_selected_queries_only(monkeypatch):
    operator = build(dict(type="hsmla", top_k=3)).eval()
    lengths = []
    attention = F.scaled_dot_product_attention

    def spy(q, k, v, attn_mask=None):
        lengths.append((q.shape[2], k.shape[2]))
        return attention(q, k, v, attn_mask=attn_mask)

    monkeypatch.setattr(F, "scaled_dot_product_attention", spy)
    operator(make_inputs(operator, GRID))
    assert lengths == [(3, GRID.tokens)]


@pytest.mark.parametrize("switch", [dict(tau=1.5), dict(top_k=0)])
def test_impossible_switches(switch):
    with pytest.raises(ValueError, match=r"got (1\.5|0)"):
        OPERATORS.build(dict(type="hsmla", **switch), dim=8, num_heads=2)
