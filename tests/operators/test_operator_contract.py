"""What every operator must do, whatever its equation."""

import copy
from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from lvit_dense.operators import OPERATORS, Grid
from tests.operators.operator_cases import CASES, build, call, case_name, make_inputs, part, trainable

GRIDS = [Grid(1, 7), Grid(3, 5), Grid(14, 14), Grid(50, 84), Grid(64, 64)]
every_case = pytest.mark.parametrize("case", CASES, ids=case_name)


def test_catalog_is_complete():
    assert OPERATORS.names() == ["elu", "hsmla", "inline", "mhla", "relu", "softmax", "ttt"]


@every_case
@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_any_grid(case, grid):
    operator = build(case).float().eval()
    inputs = make_inputs(operator, grid, batch=1, dtype=torch.float32)
    with torch.no_grad():
        out = call(operator, inputs)
    assert out.shape == (1, inputs.prefix + grid.tokens, operator.dim + operator.extra_outputs)
    assert out.dtype == torch.float32
    assert out.isfinite().all()


@every_case
def test_gradients_reach_inputs_and_parameters(case):
    operator = build(case)
    inputs = trainable(make_inputs(operator, Grid(9, 10)))
    torch.manual_seed(3)
    out = call(operator, inputs)
    (out * torch.randn_like(out)).sum().backward()
    for field in ("q", "k", "v", "extra"):
        if (tensor := getattr(inputs, field)) is not None:
            gradient = tensor.grad.abs().flatten(0, -3)
            assert gradient.sum((0, 2)).min() > 0, f"a token of {field} without gradient"
            assert gradient.sum((0, 1)).min() > 0, f"a channel of {field} without gradient"
    own = {name: p for name, p in operator.named_parameters() if not name.startswith("cpe")}
    assert all(p.grad is not None and p.grad.any() for p in own.values()), own.keys()


@every_case
def test_equals_its_explicit_map(case):
    operator = build(case)
    inputs = make_inputs(operator, Grid(3, 5))
    matrix = operator.attention_matrix(inputs)
    if matrix is None:
        assert operator.tokens.class_token is False  # only operators that look at the grid may have no map
        return
    torch.testing.assert_close(operator(inputs), matrix @ inputs.v, rtol=1e-10, atol=1e-12)
    rows = matrix.sum(-1)
    rows = rows[rows != 0]  # relu: a query without any positive feature attends to nothing
    assert rows.numel() > 0.9 * matrix[..., 0].numel()
    torch.testing.assert_close(rows, torch.ones_like(rows), rtol=0, atol=1e-4)


@every_case
@pytest.mark.parametrize("training", [True, False])
def test_images_do_not_mix(case, training):
    operator = build(case).train(training)
    inputs = make_inputs(operator, Grid(3, 5), batch=3)
    together = call(operator, inputs)
    alone = torch.cat([call(operator, part(inputs, slice(i, i + 1))) for i in range(3)])
    torch.testing.assert_close(together, alone, rtol=1e-10, atol=1e-12)


@every_case
def test_repeated_calls_are_bitwise_equal(case):
    operator = build(case).float().eval()
    inputs = make_inputs(operator, Grid(3, 5), dtype=torch.float32)
    first, second = call(operator, inputs), call(operator, inputs)
    assert torch.equal(first, second)


@every_case
def test_training_and_evaluation_agree(case):
    operator = build(case)
    inputs = make_inputs(operator, Grid(4, 5))
    torch.testing.assert_close(call(operator.train(), inputs), call(operator.eval(), inputs), rtol=1e-10, atol=1e-12)


@every_case
def test_state_dict_round_trip(case):
    operator = build(case)
    other = OPERATORS.build(case, dim=operator.dim, num_heads=operator.num_heads).double()
    other.load_state_dict(copy.deepcopy(operator.state_dict()), strict=True)
    inputs = make_inputs(operator, Grid(3, 5))
    assert torch.equal(call(operator, inputs), call(other, inputs))
    assert not list(operator.buffers())


@every_case
def test_checkpointed_gradients_are_equal(case):
    operator = build(case)
    results = []
    for recompute in (False, True):
        inputs = trainable(make_inputs(operator, Grid(3, 5)))
        operator.zero_grad()
        run = (
            (lambda i: checkpoint(call, operator, i, use_reentrant=False))
            if recompute
            else (lambda i: call(operator, i))
        )
        run(inputs).square().sum().backward()
        results.append([t.grad for t in (inputs.q, inputs.k, inputs.v, *operator.parameters()) if t.grad is not None])
    assert len(results[0]) >= 3
    assert all(torch.equal(a, b) for a, b in zip(*results))


@every_case
@pytest.mark.parametrize("training", [True, False])
def test_masked_tokens_change_nothing(case, training):
    operator = build(case).train(training)
    grid = Grid(4, 5)
    inputs = make_inputs(operator, grid)
    mask = torch.ones(2, inputs.prefix + grid.tokens, dtype=torch.bool)
    mask[0, -7:] = False
    mask[1, inputs.prefix :: 3] = False
    other = make_inputs(operator, grid, seed=2)
    changed = inputs._replace(mask=mask)
    for field in ("q", "k", "v", "x", "extra"):
        if (value := getattr(inputs, field)) is not None:
            real = mask[..., None] if value.ndim == 3 else mask[:, None, :, None]
            changed = changed._replace(**{field: torch.where(real, value, 100 * getattr(other, field))})
    out, expected = call(operator, changed), call(operator, inputs._replace(mask=mask))
    torch.testing.assert_close(out[mask], expected[mask], rtol=1e-10, atol=1e-12)
    assert not torch.allclose(expected[mask], call(operator, inputs)[mask])  # the mask does something


# mhla's default layout is left out: it cuts its blocks from the padded grid.
@pytest.mark.parametrize("case", [case for case in CASES if case != "mhla"], ids=case_name)
def test_padding_equals_the_smaller_picture(case):
    operator = build(case)
    inputs = make_inputs(operator, Grid(3, 5))
    alone = call(operator, inputs)
    padded, mask = _pad(inputs, Grid(5, 6))
    torch.testing.assert_close(call(operator, padded)[mask], alone.flatten(0, 1), rtol=1e-10, atol=1e-12)


def _pad(inputs: Any, grid: Grid) -> tuple[Any, torch.Tensor]:
    """Put the picture into the top left of a larger one full of other numbers."""
    prefix, old = inputs.prefix, inputs.grid

    def grow(t: torch.Tensor) -> torch.Tensor:
        new = torch.randn(*t.shape[:-2], prefix + grid.tokens, t.shape[-1], dtype=t.dtype)
        new[..., :prefix, :] = t[..., :prefix, :]
        patches = new[..., prefix:, :].unflatten(-2, tuple(grid))
        patches[..., : old.height, : old.width, :] = t[..., prefix:, :].unflatten(-2, tuple(old))
        return new

    mask = torch.zeros(inputs.x.shape[0], prefix + grid.tokens, dtype=torch.bool)
    mask[:, :prefix] = True
    mask[:, prefix:].unflatten(1, tuple(grid))[:, : old.height, : old.width] = True
    fields = {f: grow(v) for f in ("q", "k", "v", "x", "extra") if (v := getattr(inputs, f)) is not None}
    return inputs._replace(grid=grid, mask=mask, **fields), mask


@every_case
@pytest.mark.parametrize("grid", [Grid(3, 5), Grid(16, 9)], ids=str)
def test_macs_are_those_that_torch_counts(case, grid):
    operator = build(case).float().eval()
    inputs = make_inputs(operator, grid, batch=1, dtype=torch.float32)
    # torch counts the explicit form of softmax attention, not the CPU's fused kernel.
    with FlopCounterMode(display=False) as counter, torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        call(operator, inputs)
        operator.position(inputs.x, grid, inputs.prefix)
    expected = operator.macs(grid, inputs.prefix)
    if operator.extra_outputs:
        # The second branch of ttt is two 3x3 convolutions written as shifted products, which torch does not count.
        expected -= 2 * 9 * grid.tokens * operator.head_dim
    if case == "hsmla":
        gate = operator._gate(inputs)
        selected = int((gate > operator.tau).sum(1).max())
        expected -= 2 * (grid.tokens - selected) * grid.tokens * operator.dim
    assert expected == counter.get_total_flops() / 2


class _Largest(TorchDispatchMode):
    """Remembers the largest number of elements that any operation returned."""

    elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, (tuple, list)) else (out,):
            if isinstance(tensor, torch.Tensor):
                self.elements = max(self.elements, tensor.numel())
        return out


@every_case
def test_no_tensor_grows_with_the_square_of_the_tokens(case):
    operator = build(case).float()
    grid = Grid(30, 40)
    inputs = trainable(make_inputs(operator, grid, batch=1, dtype=torch.float32))
    with _Largest() as largest:
        call(operator, inputs).sum().backward()
    assert largest.elements <= 4 * grid.tokens * operator.dim < grid.tokens**2
