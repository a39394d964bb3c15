"""InLine attention (Han et al., 2024): linear attention made injective by subtraction instead of division."""

from torch import Tensor

from lvit_dense.operators.base import (
    OPERATORS,
    AttentionInputs,
    AttentionOperator,
    Grid,
    at_least_fp32,
    no_autocast,
)


@OPERATORS.register("inline")
class InLineAttention(AttentionOperator):
    """A_ij = (s/N) q_i.k_j + (1/N) (1 - s q_i.kbar), s = head_dim^-1/2; rows sum to 1, entries may be negative.

    Computed as out_i = vbar + q_i S with S = (s/N) sum_j (k_j - kbar)^T v_j: the same numbers as
    (s/N) q_i K^T V + (1 - s q_i.kbar) vbar, but without subtracting two products that grow with the mean key.
    """

    def forward(self, inputs: AttentionInputs) -> Tensor:
        """See :class:`AttentionOperator`."""
        with no_autocast(inputs.v):
            q, k, v = at_least_fp32(inputs.q, inputs.k, inputs.v)
            count, k_mean, v_mean = self._means(k, v, inputs.mask)
            centred = k - k_mean
            if inputs.mask is not None:
                centred = centred.masked_fill(~inputs.mask[:, None, :, None], 0.0)
                v = v.masked_fill(~inputs.mask[:, None, :, None], 0.0)
            covariance = centred.transpose(-2, -1) @ v * self.head_dim**-0.5 / count
            return (q @ covariance + v_mean).to(inputs.v.dtype)

    def attention_matrix(self, inputs: AttentionInputs) -> Tensor:
        """The map A, (B, heads, N, N); columns of masked keys are zero."""
        with no_autocast(inputs.v):
            q, k, v = at_least_fp32(inputs.q, inputs.k, inputs.v)
            count, k_mean, _ = self._means(k, v, inputs.mask)
            q = q * self.head_dim**-0.5
            scores = (q @ k.transpose(-2, -1) + 1.0 - q @ k_mean.transpose(-2, -1)) / count
            return scores if inputs.mask is None else scores.masked_fill(~inputs.mask[:, None, None, :], 0.0)

    def macs(self, grid: Grid, prefix: int) -> int:
        """K^T V and Q S: N C head_dim each."""
        return 2 * (prefix + grid.tokens) * self.dim * self.head_dim

    @staticmethod
    def _means(k: Tensor, v: Tensor, mask: Tensor | None) -> tuple[Tensor | int, Tensor, Tensor]:
        """Number of keys and the means of k and v over them, (B, heads, 1, head_dim)."""
        if mask is None:
            return k.shape[-2], k.mean(-2, keepdim=True), v.mean(-2, keepdim=True)
        hidden = ~mask[:, None, :, None]
        count = mask.sum(-1).clamp(min=1)[:, None, None, None]
        sums = (t.masked_fill(hidden, 0.0).sum(-2, keepdim=True) for t in (k, v))
        k_mean, v_mean = (total / count for total in sums)
        return count, k_mean, v_mean
