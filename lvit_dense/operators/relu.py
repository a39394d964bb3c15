"""ReLU linear attention (the paper's Eq. 2 with phi = relu; Katharopoulos et al., 2020, for the form)."""

import torch.nn.functional as F
from torch import Tensor

from lvit_dense.operators.base import (
    OPERATORS,
    AttentionInputs,
    AttentionOperator,
    Grid,
    at_least_fp32,
    no_autocast,
)


@OPERATORS.register("relu")
class ReLUAttention(AttentionOperator):
    """out_i = phi(q_i) (sum_j phi(k_j)^T v_j) / (phi(q_i) . sum_j phi(k_j) + eps), phi = relu; O(N head_dim^2).

    Args:
        eps: added to the denominator only; a query whose features are all zero then gives a zero output.
    """

    def __init__(self, dim: int, num_heads: int, eps: float = 1e-6) -> None:
        super().__init__(dim, num_heads)
        self.eps = eps

    def forward(self, inputs: AttentionInputs) -> Tensor:
        """See :class:`AttentionOperator`."""
        with no_autocast(inputs.v):
            # float32 throughout: the key sum leaves fp16's range from about 1000 tokens, and bf16 sums lose terms.
            q, k = self._features(inputs)
            (v,) = at_least_fp32(inputs.v)
            key_value = k.transpose(-2, -1) @ v
            normaliser = q @ k.sum(-2).unsqueeze(-1) + self.eps
            return ((q @ key_value) / normaliser).to(inputs.v.dtype)

    def attention_matrix(self, inputs: AttentionInputs) -> Tensor:
        """Non-negative map, (B, heads, N, N); rows sum to 1 up to eps."""
        q, k = self._features(inputs)
        scores = q @ k.transpose(-2, -1)
        return scores / (scores.sum(-1, keepdim=True) + self.eps)

    def macs(self, grid: Grid, prefix: int) -> int:
        """K^T V and Q (K^T V): N C head_dim each; key sum and normaliser: N C each; the division: N C."""
        n = prefix + grid.tokens
        return n * self.dim * (2 * self.head_dim + 3)

    def _features(self, inputs: AttentionInputs) -> tuple[Tensor, Tensor]:
        q, k = at_least_fp32(F.relu(inputs.q), F.relu(inputs.k))
        if inputs.mask is not None:
            k = k * inputs.mask[:, None, :, None]
        return q, k
