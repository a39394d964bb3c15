"""relu, elu and inline against their equations, outputs and gradients, in float64."""

import math

import pytest
import torch

from lvit_dense.operators import OPERATORS, Grid
from tests.operators.operator_cases import build, make_inputs, trainable

GRADIENT_TOLERANCE = dict(rtol=1e-9, atol=1e-11)


def phi(name, x):
    return max(x, 0.0) if name == "relu" else (x + 1.0 if x > 0 else math.exp(x))


@pytest.mark.parametrize(("case", "scale"), [("relu", 1.0), ("elu", 1.0), (dict(type="elu", qk_scale=0.3), 0.3)])
def test_output_follows_equation_2(case, scale):
    operator = build(case)
    name = case if isinstance(case, str) else case["type"]
    inputs = make_inputs(operator, Grid(2, 3), batch=1)
    out = operator(inputs)
    for head in range(operator.num_heads):
        q, k, v = (t[0, head].tolist() for t in (inputs.q, inputs.k, inputs.v))
        for i, query in enumerate(q):
            weights = [sum(phi(name, scale * a) * phi(name, b) for a, b in zip(query, key)) for key in k]
            for c in range(operator.head_dim):
                expected = sum(w * value[c] for w, value in zip(weights, v)) / (sum(weights) + 1e-6)
                assert out[0, head, i, c].item() == pytest.approx(expected, rel=1e-10, abs=1e-12)


def test_inline_follows_its_equation():
    operator = build("inline")
    inputs = make_inputs(operator, Grid(2, 3), batch=1)
    q, k, v = inputs.q, inputs.k, inputs.v
    n, s = 7, operator.head_dim**-0.5
    mean_k, mean_v = k.mean(-2, keepdim=True), v.mean(-2, keepdim=True)
    # The linear-cost form: (s/N) q (K^T V) + (1 - s q.kbar) vbar.
    expected = s / n * q @ (k.transpose(-2, -1) @ v) + (1 - s * (q * mean_k).sum(-1, keepdim=True)) * mean_v
    torch.testing.assert_close(operator(inputs), expected, rtol=1e-12, atol=1e-13)
    for i in range(n):
        for j in range(n):
            entry = s / n * (q[0, 1, i] @ k[0, 1, j]) + (1 - s * q[0, 1, i] @ mean_k[0, 1, 0]) / n
            assert operator.attention_matrix(inputs)[0, 1, i, j].item() == pytest.approx(entry.item(), rel=1e-12)


def test_inline_rows_sum_to_one_and_may_be_negative():
    operator = build("inline")
    matrix = operator.attention_matrix(make_inputs(operator, Grid(5, 7)))
    torch.testing.assert_close(matrix.sum(-1), torch.ones_like(matrix[..., 0]), rtol=0, atol=1e-13)
    assert matrix.min() < 0


@pytest.mark.parametrize("name", ["relu", "elu", "inline", "softmax"])
@pytest.mark.parametrize("masked", [False, True])
def test_outputs_and_gradients_equal_the_naive_form(name, masked):
    operator = build(name)
    grid = Grid(5, 7)
    mask = torch.rand(2, 36, generator=torch.Generator().manual_seed(4)) > 0.3 if masked else None
    results = []
    for naive in (False, True):
        inputs = trainable(make_inputs(operator, grid))._replace(mask=mask)
        out = operator.attention_matrix(inputs) @ inputs.v if naive else operator(inputs)
        weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(5), dtype=out.dtype)
        (out * weights).sum().backward()
        results.append((out.detach(), inputs.q.grad, inputs.k.grad, inputs.v.grad))
    for ours, naive_result in zip(*results):
        torch.testing.assert_close(ours, naive_result, **GRADIENT_TOLERANCE)


def test_scale_of_queries_cancels_for_relu_only():
    for name, cancels in (("relu", True), ("elu", False)):
        operator = build(name)
        inputs = make_inputs(operator, Grid(3, 4))
        scaled = operator(inputs._replace(q=0.5 * inputs.q))
        assert torch.allclose(scaled, operator(inputs), atol=1e-4) is cancels


def test_query_without_positive_features_gives_zero():
    operator = build("relu")
    inputs = make_inputs(operator, Grid(3, 4))
    out = operator(inputs._replace(q=-inputs.q.abs()))
    assert not out.any()


def test_width_must_be_a_multiple_of_the_heads():
    with pytest.raises(ValueError, match=r"got 100 and 12"):
        OPERATORS.build("relu", dim=100, num_heads=12)


def test_unknown_names_are_answered_with_the_nearest():
    with pytest.raises(KeyError, match="did you mean 'mhla'"):
        OPERATORS.build("mlha", dim=8, num_heads=2)
    with pytest.raises(TypeError, match=r"'elu' has no argument 'qk_scal': did you mean 'qk_scale'"):
        OPERATORS.build(dict(type="elu", qk_scal=1.0), dim=8, num_heads=2)
