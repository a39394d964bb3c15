"""Linear attention with a feature map: what the relu and elu operators share."""

from torch import Tensor

from lvit_dense.operators.base import (
    AttentionInputs,
    AttentionOperator,
    Grid,
    at_least_fp32,
    no_autocast,
)


class LinearAttention(AttentionOperator):
    """out_i = phi(q_i) (sum_j phi(k_j)^T v_j) / (phi(q_i) . sum_j phi(k_j) + eps); O(N C head_dim).

    The paper's Eq. 2; the form is Katharopoulos et al., 2020. Subclasses give the feature map.

    Args:
        eps: added to the denominator only; a query whose features are all zero then gives a zero output.
    """

    def __init__(self, dim: int, num_heads: int, eps: float = 1e-6) -> None:
        super().__init__(dim, num_heads)
        self.eps = eps

    def query_features(self, q: Tensor) -> Tensor:
        """phi(q), non-negative."""
        raise NotImplementedError

    def key_features(self, k: Tensor) -> Tensor:
        """phi(k), non-negative."""
        return self.query_features(k)

    def forward(self, inputs: AttentionInputs) -> Tensor:
        """See :class:`AttentionOperator`."""
        with no_autocast(inputs.v):
            q, k = self._features(inputs)
            (v,) = at_least_fp32(inputs.v)
            key_value = k.transpose(-2, -1) @ v
            normaliser = q @ k.sum(-2).unsqueeze(-1) + self.eps
            return ((q @ key_value) / normaliser).to(inputs.v.dtype)

    def attention_matrix(self, inputs: AttentionInputs) -> Tensor:
        """Non-negative map, (B, heads, N, N); rows sum to 1 up to eps."""
        with no_autocast(inputs.v):
            q, k = self._features(inputs)
            scores = q @ k.transpose(-2, -1)
            return scores / (scores.sum(-1, keepdim=True) + self.eps)

    def macs(self, grid: Grid, prefix: int) -> int:
        """K^T V and Q (K^T V): N C head_dim each; the normaliser: N C."""
        return (prefix + grid.tokens) * self.dim * (2 * self.head_dim + 1)

    def _features(self, inputs: AttentionInputs) -> tuple[Tensor, Tensor]:
        q, k = at_least_fp32(inputs.q, inputs.k)
        q, k = self.query_features(q), self.key_features(k)
        if inputs.mask is not None:
            k = k.masked_fill(~inputs.mask[:, None, :, None], 0.0)
        return q, k
