"""ELU linear attention (Katharopoulos et al., 2020)."""

import torch.nn.functional as F
from torch import Tensor

from lvit_dense.operators.base import OPERATORS
from lvit_dense.operators.linear import LinearAttention


@OPERATORS.register("elu")
class ELUAttention(LinearAttention):
    """Linear attention with phi(x) = elu(x) + 1.

    Args:
        eps: added to the denominator only.
        qk_scale: q is multiplied by it before phi; None = 1. Unlike relu's, this phi does not let it cancel.
    """

    def __init__(self, dim: int, num_heads: int, eps: float = 1e-6, qk_scale: float | None = None) -> None:
        super().__init__(dim, num_heads, eps)
        self.qk_scale = qk_scale

    def query_features(self, q: Tensor) -> Tensor:
        """elu(qk_scale q) + 1."""
        return self.key_features(q if self.qk_scale is None else q * self.qk_scale)

    def key_features(self, k: Tensor) -> Tensor:
        """elu(k) + 1."""
        return F.elu(k) + 1.0
