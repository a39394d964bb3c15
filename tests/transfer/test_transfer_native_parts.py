"""Parts that only some teachers have: relative position bias, keys without bias; and who tells a student of them."""

import pytest
import torch

from lvit_dense.operators import OPERATORS, AttentionInputs, Grid
from lvit_dense.transfer import READERS, read_source
from lvit_dense.vit import ViT
from tests.transfer.conftest import native_vit, tiny_vit


@pytest.mark.parametrize("prefix", [0, 1, 3])
@pytest.mark.parametrize("grid", [Grid(3, 4), Grid(5, 2)])
def test_relative_position_bias_by_its_definition(prefix, grid):
    operator = OPERATORS.build({"type": "softmax", "relative_position": [3, 4]}, dim=12, num_heads=2).double()
    n = prefix + grid.tokens
    q, k, v = torch.randn(3, 2, 2, n, 6, dtype=torch.float64)
    inputs = AttentionInputs(q, k, v, torch.randn(2, n, 12), grid, prefix)
    out = operator(inputs)
    torch.testing.assert_close(out, operator.attention_matrix(inputs) @ v)
    bias = operator.bias(grid, prefix)
    table = operator.bias.table
    if grid == (3, 4):  # rows of the table: (2 * 3 - 1) x (2 * 4 - 1) offsets
        for query in range(12):
            for key in range(12):
                dy, dx = query // 4 - key // 4, query % 4 - key % 4
                torch.testing.assert_close(bias[:, prefix + query, prefix + key], table[(dy + 2) * 7 + dx + 3])
    if prefix:
        torch.testing.assert_close(bias[:, 0, -1], table[-3])
        torch.testing.assert_close(bias[:, -1, 0], table[-2])
        torch.testing.assert_close(bias[:, 0, 0], table[-1])
    mask = torch.ones(2, n, dtype=torch.bool)
    mask[0, -1] = False
    masked = operator(inputs._replace(mask=mask))
    torch.testing.assert_close(masked, operator.attention_matrix(inputs._replace(mask=mask)) @ v)
    assert not torch.allclose(masked[0], out[0])


def test_relative_position_bias_at_another_grid_keeps_a_linear_slope():
    operator = OPERATORS.build({"type": "softmax", "relative_position": [4, 4]}, dim=4, num_heads=1)
    with torch.no_grad():
        slope = torch.arange(-3.0, 4.0)[:, None].expand(7, 7).reshape(-1, 1)
        operator.bias.table.copy_(torch.cat([slope, torch.zeros(3, 1)]))
        bias = operator.bias(Grid(8, 8), 0)[0].reshape(8, 8, 8, 8)
    down = bias[6, 4, :, 4]  # query in row 6, keys in rows 0..7
    assert (down[:-1] > down[1:]).all() and down[6].abs() < 1e-4


def test_keys_without_bias():
    vit = ViT({"embed_dim": 24, "depth": 1, "num_heads": 2}, "softmax", img_size=32, patch_size=16, k_bias=False)
    qkv = vit.blocks[0].attn.qkv
    x = torch.randn(2, 3, 24)
    before = qkv(x).detach()
    with torch.no_grad():
        qkv.bias.chunk(3)[1].fill_(5.0)
    assert torch.equal(qkv(x), before)
    qkv(x).square().sum().backward()
    q, k, v = qkv.bias.grad.chunk(3)
    assert q.any() and v.any() and not k.any()
    assert ViT(**vit.facts).facts == vit.facts


@pytest.mark.parametrize("family", READERS.names())
def test_a_student_with_all_native_parts_takes_everything(family, write):
    vit = native_vit(family)
    source = read_source(write(family, vit))
    default = source.student_arguments()
    assert default == ({"init_values": 1.0} if vit.facts["init_values"] else {})
    parts = source.student_arguments(native_parts=True)
    stated = {k: v for k, v in READERS.get(family).native.items() if k in parts}
    assert stated == parts
    student = tiny_vit(operator="relu", num_heads=vit.arch.num_heads, **parts)
    missing = set(source.state) - set(student.state_dict())
    assert all(".operator." in n or n.startswith("head.") for n in missing)
