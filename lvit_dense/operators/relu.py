"""ReLU linear attention, the paper's main operator."""

import torch.nn.functional as F
from torch import Tensor

from lvit_dense.operators.base import OPERATORS
from lvit_dense.operators.linear import LinearAttention


@OPERATORS.register("relu")
class ReLUAttention(LinearAttention):
    """Linear attention with phi(x) = relu(x). A scale on q cancels, so there is no switch for one."""

    def query_features(self, q: Tensor) -> Tensor:
        """relu(q)."""
        return F.relu(q)
