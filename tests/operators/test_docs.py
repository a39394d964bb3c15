"""The example operator of docs/operators.md is what it says: complete and correct."""

import importlib.util
import re
from pathlib import Path

import pytest
import torch

from lvit_dense.operators import OPERATORS, Grid
from lvit_dense.vit import ViT
from tests.operators.operator_cases import build, make_inputs

DOCUMENT = Path(__file__).parents[2] / "docs/operators.md"


@pytest.fixture
def example(tmp_path):
    (code,) = (
        block for block in re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.S) if "register(" in block
    )
    path = tmp_path / "example_operator.py"
    path.write_text(code)
    spec = importlib.util.spec_from_file_location("example_operator", path)
    OPERATORS.names()  # the built-in ones first
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield "efficient"
    del OPERATORS._entries["efficient"]


def test_example_keeps_the_contract(example):
    operator = build(example)
    inputs = make_inputs(operator, Grid(3, 5))
    torch.testing.assert_close(operator(inputs), operator.attention_matrix(inputs) @ inputs.v)
    torch.testing.assert_close(operator.attention_matrix(inputs).sum(-1), torch.ones(2, 3, 16).double())
    mask = torch.rand(2, 16) > 0.4
    changed = inputs._replace(mask=mask, k=torch.where(mask[:, None, :, None], inputs.k, 9.0))
    torch.testing.assert_close(operator(changed), operator(inputs._replace(mask=mask)))


def test_example_trains_in_a_vit(example):
    vit = ViT(dict(embed_dim=12, depth=2, num_heads=3), example, img_size=64)
    vit(torch.randn(1, 3, 50, 70)).tokens.sum().backward()
    assert all(p.grad is not None for p in vit.parameters())


def test_the_table_lists_every_operator_with_its_macs():
    text = DOCUMENT.read_text()
    grid = Grid(50, 84)
    for name in OPERATORS.names():
        (row,) = re.findall(rf"^\| `{name}` \|(.*)\|$", text, re.M)
        *_, parameters, macs = (cell.strip() for cell in row.split("|"))
        with torch.device("meta"):
            operator = OPERATORS.build(name, dim=768, num_heads=12)
        stated = int(re.match(r"[\d,]+", parameters).group().replace(",", ""))
        assert stated == sum(p.numel() for p in operator.parameters()), name
        if name != "hsmla":  # its count depends on the gate
            assert float(macs.removesuffix(" G")) == pytest.approx(operator.macs(grid, 0) / 1e9, abs=0.006), name
