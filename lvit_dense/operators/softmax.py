"""Softmax attention (Vaswani et al., 2017): the teacher's operator and the tables' Softmax row."""

import torch.nn.functional as F
from torch import Tensor

from lvit_dense.operators.base import OPERATORS, AttentionInputs, AttentionOperator, Grid


@OPERATORS.register("softmax")
class SoftmaxAttention(AttentionOperator):
    """out = softmax(q k^T / sqrt(head_dim)) v, by torch's fused kernels; O(N^2) time, O(N) memory where they apply."""

    def forward(self, inputs: AttentionInputs) -> Tensor:
        """See :class:`AttentionOperator`."""
        mask = None if inputs.mask is None else inputs.mask[:, None, None, :]
        return F.scaled_dot_product_attention(inputs.q, inputs.k, inputs.v, attn_mask=mask)

    def attention_matrix(self, inputs: AttentionInputs) -> Tensor:
        """Row-stochastic map, (B, heads, N, N)."""
        logits = inputs.q @ inputs.k.transpose(-2, -1) * self.head_dim**-0.5
        if inputs.mask is not None:
            logits = logits.masked_fill(~inputs.mask[:, None, None, :], float("-inf"))
        return logits.softmax(-1)

    def macs(self, grid: Grid, prefix: int) -> int:
        """Two N x N x C products."""
        n = prefix + grid.tokens
        return 2 * n * n * self.dim
