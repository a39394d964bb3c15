"""The check for non-finite inputs, and the errors for tokens that do not make a grid."""

import pytest
import torch

from lvit_dense.operators import Grid
from lvit_dense.operators.finite import check_finite, checked
from lvit_dense.vit import ViT
from tests.operators.operator_cases import build, make_inputs


def tiny(**arguments):
    torch.manual_seed(0)
    return ViT(dict(embed_dim=12, depth=3, num_heads=3), img_size=64, **arguments)


def test_names_the_block_and_the_value():
    model = tiny(operator="relu")
    with torch.no_grad():
        model.blocks[1].attn.qkv.weight[0].fill_(float("inf"))
    images = torch.randn(1, 3, 64, 64)
    model(images)  # nothing is checked, nothing is raised
    with (
        pytest.raises(
            FloatingPointError, match=r"q given to blocks\.1\.attn\.operator \(ReLUAttention\) has 17 of 204"
        ),
        checked(model),
    ):
        model(images)
    assert not any(module._forward_pre_hooks or module._forward_hooks for module in model.modules())


def test_finite_models_pass():
    for operator in ("hsmla", "ttt"):
        model = tiny(operator=operator)
        with checked(model):
            model(torch.randn(1, 3, 64, 64))


def test_message_carries_the_values():
    tensor = torch.tensor([[1.0, -7.0], [float("nan"), float("inf")]])
    with pytest.raises(FloatingPointError, match=r"here has 2 of 4 .* first nan at index \(1, 0\) of \(2, 2\) .* 7$"):
        check_finite("here", tensor)


@pytest.mark.parametrize("case", ["mhla", "ttt", "hsmla"])
def test_grid_operators_refuse_prefix_tokens(case):
    operator = build(case)
    inputs = make_inputs(operator, Grid(3, 5))
    with pytest.raises(ValueError, match=f"'{case}' .* cannot take the 1 prefix token.*class_token=False"):
        operator(inputs._replace(grid=Grid(2, 7), prefix=1))
    with pytest.raises(ValueError, match="cannot take the 1 prefix"):
        tiny(operator=case, class_token=True)(torch.randn(1, 3, 64, 64))


def test_native_ttt_refuses_prefix_tokens():
    with pytest.raises(ValueError, match="cannot take the 2 prefix"):
        tiny(operator=dict(type="ttt", native=True), registers=2)(torch.randn(1, 3, 64, 64))


def test_tokens_must_make_the_grid():
    attention = tiny(operator="relu").blocks[0].attn
    with pytest.raises(ValueError, match="15 tokens do not make 1 prefix tokens and a 3x5 grid"):
        attention(torch.randn(1, 15, 12), Grid(3, 5), 1)
    with pytest.raises(ValueError, match="empty token grid 0x5"):
        attention(torch.randn(1, 1, 12), Grid(0, 5), 1)
    with pytest.raises(ValueError, match="14 tokens do not make 0 prefix tokens and a 3x5 grid"):
        operator = build("mhla")
        operator(make_inputs(operator, Grid(2, 7))._replace(grid=Grid(3, 5)))
