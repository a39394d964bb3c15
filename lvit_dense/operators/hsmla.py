"""HSMLA-style attention: linear everywhere, softmax for the tokens that a learned gate selects (arXiv 2608.07616)."""

import torch
import torch.nn.functional as F
from timm.layers import trunc_normal_
from torch import Tensor, nn

from lvit_dense.operators.base import (
    OPERATORS,
    AttentionInputs,
    AttentionOperator,
    Grid,
    TokenLayout,
)
from lvit_dense.operators.maps import convolve_heads, depthwise, mask_tokens, require_grid, tokens_to_map
from lvit_dense.operators.relu import ReLUAttention


@OPERATORS.register("hsmla")
class HSMLAAttention(AttentionOperator):
    """softmax attention for queries with gate M > tau, relu linear attention for the others.

    q, k and v first get the mean of 3x3, 5x5 and 7x7 depth-wise convolutions of themselves added (zero at the start);
    M = sigmoid(conv3x3(x)) is one number per token. Training computes both attentions and mixes them by the hard mask,
    with the gradient of M passed straight through; evaluation computes softmax for the selected queries only.
    "HSMLA-style": made from the paper's figures. O(N C head_dim + S N C) for S selected queries, so it is linear in N
    only with ``top_k``.

    Args:
        tau: a token is selected if its gate exceeds this.
        top_k: at most this many tokens of an image are selected, those with the highest gates; None = no limit. Without
            it the number selected has to be read back from the device in evaluation.
        eps: of the linear attention's denominator.
    """

    tokens = TokenLayout(class_token=False, pos_embed="learned")

    def __init__(
        self, dim: int, num_heads: int, tau: float = 0.15, top_k: int | None = None, eps: float = 1e-6
    ) -> None:
        super().__init__(dim, num_heads)
        if not 0.0 <= tau <= 1.0:
            raise ValueError(f"operator 'hsmla' compares tau with a sigmoid: expected 0 to 1, got {tau}")
        if top_k is not None and top_k < 1:
            raise ValueError(f"operator 'hsmla' needs top_k of at least 1 or None, got {top_k}")
        self.tau, self.top_k = tau, top_k
        self.linear = ReLUAttention(dim, num_heads, eps)
        self.q_conv, self.k_conv, self.v_conv = (MultiScaleConv(dim) for _ in range(3))
        self.gate = nn.Conv2d(dim, 1, 3, padding=1)
        trunc_normal_(self.gate.weight, std=0.02)
        nn.init.zeros_(self.gate.bias)  # type: ignore[arg-type]

    def forward(self, inputs: AttentionInputs) -> Tensor:
        """See :class:`AttentionOperator`."""
        require_grid("hsmla", inputs)
        inputs = inputs._replace(
            q=self._enhance(self.q_conv, inputs.q, inputs),
            k=self._enhance(self.k_conv, inputs.k, inputs),
            v=self._enhance(self.v_conv, inputs.v, inputs),
        )
        linear, gate = self.linear(inputs), self._gate(inputs)
        return self._mix(inputs, linear, gate) if self.training else self._select(inputs, linear, gate)

    def macs(self, grid: Grid, prefix: int) -> int:
        """Convolutions, gate, linear attention, and softmax attention for the selected queries (all, without top_k)."""
        n = grid.tokens
        selected = n if self.top_k is None else min(self.top_k, n)
        convolutions = 3 * 49 * n * self.dim + 9 * n * self.dim
        return convolutions + self.linear.macs(grid, 0) + 2 * selected * n * self.dim

    def _enhance(self, convolution: "MultiScaleConv", t: Tensor, inputs: AttentionInputs) -> Tensor:
        return t + convolve_heads(convolution, mask_tokens(t, inputs.mask), inputs.grid)

    def _gate(self, inputs: AttentionInputs) -> Tensor:
        """M, (B, N); zero for padded tokens, which are never selected."""
        x = inputs.x if inputs.mask is None else inputs.x.masked_fill(~inputs.mask[..., None], 0.0)
        gate = self.gate(tokens_to_map(x, inputs.grid)).flatten(1).sigmoid()
        return gate if inputs.mask is None else gate.masked_fill(~inputs.mask, 0.0)

    def _mix(self, inputs: AttentionInputs, linear: Tensor, gate: Tensor) -> Tensor:
        """Both attentions for all tokens, mixed by the hard mask; d out / d gate is that of a soft mask."""
        hard = gate > self.tau
        if self.top_k is not None and self.top_k < gate.shape[1]:
            kept = torch.zeros_like(hard).scatter_(1, gate.topk(self.top_k, dim=1).indices, True)
            hard = hard & kept
        weight = (hard.to(gate.dtype) + gate - gate.detach())[:, None, :, None]
        soft = _softmax_attention(inputs.q, inputs.k, inputs.v, inputs.mask)
        return linear + weight * (soft - linear)

    def _select(self, inputs: AttentionInputs, linear: Tensor, gate: Tensor) -> Tensor:
        """Softmax attention for the selected queries only, written over the linear result."""
        count = int((gate > self.tau).sum(1).max()) if self.top_k is None else min(self.top_k, gate.shape[1])
        if not count:
            return linear
        score, index = gate.topk(count, dim=1)
        index = index[:, None, :, None].expand(-1, self.num_heads, -1, self.head_dim)
        soft = _softmax_attention(inputs.q.gather(2, index), inputs.k, inputs.v, inputs.mask)
        # Images that select fewer keep the linear result in the places that are left over.
        chosen = torch.where((score > self.tau)[:, None, :, None], soft, linear.gather(2, index))
        return linear.scatter(2, index, chosen)


class MultiScaleConv(nn.Module):
    """Mean of 3x3, 5x5 and 7x7 depth-wise convolutions, zero at the start."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.small, self.middle, self.large = (depthwise(dim, size) for size in (3, 5, 7))
        for parameter in self.parameters():
            nn.init.zeros_(parameter)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, C, H, W) to the same shape, as one 7x7 convolution with the kernels' mean."""
        small, middle, large = self.small, self.middle, self.large
        weight = (F.pad(small.weight, (2, 2, 2, 2)) + F.pad(middle.weight, (1, 1, 1, 1)) + large.weight) / 3
        bias = (small.bias + middle.bias + large.bias) / 3  # type: ignore[operator]
        return F.conv2d(x, weight, bias, padding=3, groups=x.shape[1])


def _softmax_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=None if mask is None else mask[:, None, None, :])
