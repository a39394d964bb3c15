"""Softmax attention (Vaswani et al., 2017): the teacher's operator and the tables' Softmax row."""

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor

from lvit_dense.operators.base import OPERATORS, AttentionInputs, AttentionOperator, Grid
from lvit_dense.operators.relative_position import RelativePositionBias


@OPERATORS.register("softmax")
class SoftmaxAttention(AttentionOperator):
    """out = softmax(q k^T / sqrt(head_dim) + bias) v, by torch's fused kernels; O(N^2) time.

    Memory is O(N) where a fused kernel applies, O(N^2) with a bias.

    Args:
        relative_position: (height, width) in tokens of a learned relative position bias, BEiT's native part; None = no
            bias.
    """

    def __init__(self, dim: int, num_heads: int, relative_position: Sequence[int] | None = None) -> None:
        super().__init__(dim, num_heads)
        self.bias = None if relative_position is None else RelativePositionBias(num_heads, Grid(*relative_position))

    def forward(self, inputs: AttentionInputs) -> Tensor:
        """See :class:`AttentionOperator`."""
        mask = None if inputs.mask is None else inputs.mask[:, None, None, :]
        if self.bias is not None:
            bias = self.bias(inputs.grid, inputs.prefix).to(inputs.q.dtype)
            mask = bias[None] if mask is None else bias.masked_fill(~mask, float("-inf"))
        return F.scaled_dot_product_attention(inputs.q, inputs.k, inputs.v, attn_mask=mask)

    def attention_matrix(self, inputs: AttentionInputs) -> Tensor:
        """Row-stochastic map, (B, heads, N, N)."""
        logits = inputs.q @ inputs.k.transpose(-2, -1) * self.head_dim**-0.5
        if self.bias is not None:
            logits = logits + self.bias(inputs.grid, inputs.prefix)
        if inputs.mask is not None:
            logits = logits.masked_fill(~inputs.mask[:, None, None, :], float("-inf"))
        return logits.softmax(-1)

    def macs(self, grid: Grid, prefix: int) -> int:
        """Two N x N x C products."""
        n = prefix + grid.tokens
        return 2 * n * n * self.dim
