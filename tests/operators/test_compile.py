"""torch.compile of the ViT gives the numbers and gradients of eager mode, at two picture sizes."""

import pytest
import torch

from lvit_dense.operators import OPERATORS
from lvit_dense.vit import ViT
from tests.operators.operator_cases import case_name

CASES = [*OPERATORS.names(), dict(type="hsmla", top_k=5)]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_compiled_vit_equals_eager(case):
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = ViT(dict(embed_dim=12, depth=1, num_heads=3), case, img_size=64)
    # hsmla with a changing number of selected tokens is more than the compiler's dynamic shapes can do.
    compiled = torch.compile(model, dynamic=False)
    for size in ((80, 64), (48, 96)):
        images = torch.randn(2, 3, *size)
        results = []
        for module in (model, compiled):
            model.zero_grad()
            tokens = module(images).tokens
            (tokens * torch.linspace(-1, 1, tokens.numel()).view_as(tokens)).sum().backward()
            with torch.no_grad():
                evaluated = module.eval()(images).tokens
            module.train()
            results.append([tokens.detach(), evaluated, *(p.grad.clone() for p in model.parameters())])
        for eager, ours in zip(*results):
            torch.testing.assert_close(ours, eager, rtol=1e-3, atol=1e-4)
