"""The operators and switches that the contract tests run over, and inputs for them."""

from typing import Any

import torch
from torch import Tensor

from lvit_dense.operators import OPERATORS, AttentionInputs, AttentionOperator, Grid

DIM, HEADS = 12, 3
SWITCHES: list[dict[str, Any]] = [
    dict(type="elu", qk_scale=0.5),
    dict(type="mhla", layout="fixed_block"),
    dict(type="ttt", key_norm=True, locality=True),
    dict(type="ttt", inner="glu3"),
    dict(type="ttt", inner="glu3", key_norm=True, locality=True, native=True),
    dict(type="hsmla", top_k=5),
]
CASES: list[str | dict[str, Any]] = [*OPERATORS.names(), *SWITCHES]


def case_name(case: str | dict[str, Any]) -> str:
    """Readable test id."""
    if isinstance(case, str):
        return case
    return "-".join([case["type"], *(f"{k}={v}" for k, v in case.items() if k != "type")])


def build(case: str | dict[str, Any], dim: int = DIM, heads: int = HEADS) -> AttentionOperator:
    """Operator in float64 whose zero-initialised parts are filled, so that tests can see them."""
    torch.manual_seed(0)
    operator = OPERATORS.build(case, dim=dim, num_heads=heads).double()
    for name, parameter in operator.named_parameters():
        if not parameter.any():
            torch.nn.init.normal_(parameter, std=0.3)
        elif name in ("w1", "w2", "w3"):
            torch.nn.init.normal_(parameter, std=0.5)
    return operator


def make_inputs(
    operator: AttentionOperator, grid: Grid, batch: int = 2, seed: int = 1, dtype: torch.dtype = torch.float64
) -> AttentionInputs:
    """Random inputs laid out as in ``Attention``, views of one qkv tensor, with the operator's class token."""
    generator = torch.Generator().manual_seed(seed)
    prefix = int(operator.tokens.class_token)
    n, c = prefix + grid.tokens, operator.dim
    qkv = torch.randn(batch, n, 3 * c, generator=generator, dtype=torch.float64).to(dtype)
    q, k, v = qkv.unflatten(-1, (3, operator.num_heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
    x = torch.randn(batch, n, c, generator=generator, dtype=torch.float64).to(dtype)
    extra = None
    if operator.extra_inputs:
        extra = torch.randn(batch, n, operator.extra_inputs, generator=generator, dtype=torch.float64).to(dtype)
    return AttentionInputs(q, k, v, x, grid, prefix, None, extra)


def call(operator: AttentionOperator, inputs: AttentionInputs) -> Tensor:
    """Everything the operator gives to the output projection, (B, N, C + extra_outputs)."""
    out = operator(inputs).transpose(1, 2).flatten(2)
    extra = operator.extra(inputs)
    return out if extra is None else torch.cat([out, extra], -1)


def trainable(inputs: AttentionInputs) -> AttentionInputs:
    """The same inputs as leaves that collect gradients."""
    return inputs._replace(
        **{
            field: value.detach().clone().requires_grad_()
            for field in ("q", "k", "v", "x", "extra")
            if (value := getattr(inputs, field)) is not None
        }
    )


def part(inputs: AttentionInputs, images: slice) -> AttentionInputs:
    """Inputs of some images of the batch."""
    return inputs._replace(
        **{
            field: value[images]
            for field in ("q", "k", "v", "x", "extra", "mask")
            if (value := getattr(inputs, field)) is not None
        }
    )
