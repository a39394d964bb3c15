"""Mimetic initialisation (Trockman & Kolter, 2023): attention that starts out as trained attention looks."""

import torch

from lvit_dense.transfer.analytic import (
    assign_attention,
    attention_names,
    factor,
    noisy_identity,
    random_start,
    value_and_proj,
)
from lvit_dense.transfer.canonical import Source
from lvit_dense.transfer.plan import PLANS, Resolution, TransferPlan
from lvit_dense.vit import ViT

NOISE = IDENTITY = 0.7


@PLANS.register("mimetic")
class MimeticPlan(TransferPlan):
    """Per head W_Q W_K^T is the best rank-head_dim approximation of .7 Z + .7 I; W_V W_O = .4 Z - .4 I per block.

    Nothing is copied; biases are zero.

    Args:
        as_released: v and proj get their factors in the order of the released code, which makes the module's composite
            the product of the factors the other way round.
    """

    needs_source = False
    groups = ("qkv", "proj")

    def __init__(self, as_released: bool = False) -> None:
        self.as_released = as_released

    def resolve(self, source: Source | None, model: ViT) -> Resolution:
        """See :class:`TransferPlan`."""
        result = random_start(model, attention_names(model), "mimetic")
        if result.problems:
            return result
        dim, heads = model.embed_dim, model.arch.num_heads
        for index in range(model.arch.depth):
            factors = [factor(noisy_identity(dim, NOISE, IDENTITY), dim // heads) for _ in range(heads)]
            q = torch.cat([left.T for left, _ in factors])
            k = torch.cat([right for _, right in factors])
            v, proj = value_and_proj(dim, swapped=self.as_released)
            result.assignments.extend(assign_attention(model, index, q, k, v, proj))
        return result
