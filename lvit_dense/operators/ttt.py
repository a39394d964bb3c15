"""Test-time-training attention (ViT^3, Han et al., 2025; T5's variants, arXiv 2605.02772)."""

import torch
import torch.nn.functional as F
from timm.layers import trunc_normal_
from torch import Tensor, nn

from lvit_dense.catalog import suggest
from lvit_dense.operators.base import (
    OPERATORS,
    AttentionInputs,
    AttentionOperator,
    Grid,
    TokenLayout,
    at_least_fp32,
    no_autocast,
    recomputed,
)
from lvit_dense.operators.maps import (
    convolve_heads,
    depthwise,
    mask_tokens,
    require_grid,
    require_no_prefix,
    token_count,
    tokens_to_map,
)

INNER = ("glu", "glu3")


@OPERATORS.register("ttt")
class TTTAttention(AttentionOperator):
    """One gradient step of an inner model on the image's own keys and values, then the inner model on the queries.

    The inner loss is L = -(s/N) sum_i f(k_i).v_i, so dL/df(k_i) = -(s/N) v_i, and the learning rate is 1. Outer
    gradients flow through the update. O(N C head_dim).

    Args:
        inner: ``"glu"``: f(x) = (x W1) * silu(x W2), s = 1/3, each gradient divided by (its norm over the input
            dimension + 1); a second branch, with its own q2, k2, v2 of head_dim channels from 3 head_dim further rows
            of qkv, learns a 3x3 depth-wise kernel the same way and gives proj head_dim further columns.
            ``"glu3"`` (T5): f(x) = (silu(x W1) * (x W2)) W3, s = head_dim^-1/2, plain gradients, no second branch. Its
            result grows with the cube of q and its update with k and v: in fp16 use ``key_norm``, as T5 does.
        key_norm: normalise each key channel over the tokens, (k - mean) / sqrt(var + 1), without parameters (T5).
        locality: add a 3x3 depth-wise convolution to q and to k, after ``key_norm`` (T5).
        native: the released ViT^3: a residual 3x3 depth-wise convolution before norm1 instead of position embedding.
    """

    tokens = TokenLayout(class_token=False, pos_embed="sincos")
    similarity = False

    def __init__(
        self,
        dim: int,
        num_heads: int,
        inner: str = "glu",
        key_norm: bool = False,
        locality: bool = False,
        native: bool = False,
    ) -> None:
        super().__init__(dim, num_heads)
        if inner not in INNER:
            raise KeyError(f"operator 'ttt' has no inner {inner!r}: {suggest(inner, INNER)}")
        d = self.head_dim
        self.inner, self.key_norm = inner, key_norm
        self.scale = 1 / 3 if inner == "glu" else d**-0.5
        self.w1 = nn.Parameter(torch.empty(num_heads, d, d))
        self.w2 = nn.Parameter(torch.empty(num_heads, d, d))
        self.w3 = nn.Parameter(torch.empty(d, 1, 3, 3) if inner == "glu" else torch.empty(num_heads, d, d))
        for weight in (self.w1, self.w2, self.w3):
            trunc_normal_(weight, std=0.02)
        if inner == "glu":
            self.extra_inputs, self.extra_outputs = 3 * d, d
        self.q_conv = depthwise(dim, 3) if locality else None
        self.k_conv = depthwise(dim, 3) if locality else None
        self.cpe = depthwise(dim, 3) if native else None
        if native:
            self.tokens = TokenLayout(class_token=False, pos_embed="none")  # type: ignore[misc]  # this instance's

    def position(self, x: Tensor, grid: Grid, prefix: int, mask: Tensor | None = None) -> Tensor | None:
        """The convolution of ``native``; padded tokens count as zero."""
        if self.cpe is None:
            return None
        require_no_prefix("ttt", prefix)
        x = x if mask is None else x.masked_fill(~mask[..., None], 0.0)
        return self.cpe(tokens_to_map(x, grid)).flatten(2).transpose(1, 2)

    def forward(self, inputs: AttentionInputs) -> Tensor:
        """See :class:`AttentionOperator`."""
        require_grid("ttt", inputs)
        q, k = self._queries_and_keys(inputs)
        return recomputed(self._learn_and_apply, inputs._replace(q=q, k=k))

    def _learn_and_apply(self, inputs: AttentionInputs) -> Tensor:
        """First branch: the update of W1, W2 (and W3 of glu3) and the inner model on the queries."""
        with no_autocast(inputs.v):
            q, k, v, w1, w2, w3 = at_least_fp32(inputs.q, inputs.k, inputs.v, self.w1, self.w2, self.w3)
            k, v = mask_tokens(k, inputs.mask), mask_tokens(v, inputs.mask)
            error = v * -self.scale / token_count(inputs)
            if self.inner == "glu":
                w1, w2 = _step_glu(k, error, w1, w2)
                out = (q @ w1) * F.silu(q @ w2)
            else:
                w1, w2, w3 = _step_glu3(k, error, w1, w2, w3)
                out = (F.silu(q @ w1) * (q @ w2)) @ w3
            if inputs.v.dtype == torch.float16:
                # The other operators average v; this result is a polynomial of q and can leave fp16's range.
                limit = torch.finfo(torch.float16).max
                out = out.clamp(-limit, limit)
            return out.to(inputs.v.dtype)

    def extra(self, inputs: AttentionInputs) -> Tensor | None:
        """Second branch of ``inner="glu"``, (B, N, head_dim)."""
        if self.inner != "glu":
            return None
        if inputs.extra is None:
            raise ValueError(f"operator 'ttt' needs {self.extra_inputs} further rows of qkv in inputs.extra, got None")
        return recomputed(self._learn_and_convolve, inputs.extra, inputs)

    def _learn_and_convolve(self, extra: Tensor, inputs: AttentionInputs) -> Tensor:
        """Second branch: the update of the 3x3 kernel and its convolution of q2."""
        dtype = extra.dtype
        with no_autocast(extra):
            extra, kernel = at_least_fp32(extra, self.w3)
            if inputs.mask is not None:
                extra = extra.masked_fill(~inputs.mask[..., None], 0.0)
            # One copy to channels-first maps lets the nine shifted products run along rows of memory.
            q, k, v = tokens_to_map(extra, inputs.grid).contiguous().chunk(3, 1)
            error = v * -self.scale / token_count(inputs)
            gradient = torch.stack([(window * error).sum((-2, -1)) for window in _shifts(k)], -1)
            gradient = gradient / (gradient.norm(dim=-1, keepdim=True) + 1)
            taps = (kernel.flatten(1) - gradient)[..., None, None].unbind(2)  # per image, nine of (B, head_dim, 1, 1)
            out = torch.zeros_like(q)
            for window, tap in zip(_shifts(q), taps):
                out = torch.addcmul(out, window, tap)
            return out.flatten(2).transpose(1, 2).to(dtype)

    def macs(self, grid: Grid, prefix: int) -> int:
        """Inner forward, inner gradient and outer forward of each matrix; convolutions of 9 taps."""
        n, c, d = grid.tokens, self.dim, self.head_dim
        total = 6 * n * c * d if self.inner == "glu" else 9 * n * c * d
        if self.inner == "glu":
            total += 2 * 9 * n * d
        return total + 9 * n * c * (2 * (self.q_conv is not None) + (self.cpe is not None))

    def _queries_and_keys(self, inputs: AttentionInputs) -> tuple[Tensor, Tensor]:
        """q and k after T5's key norm and convolutions, where they are switched on."""
        q, k, mask = inputs.q, inputs.k, inputs.mask
        if self.key_norm:
            with no_autocast(k):
                (keys,) = at_least_fp32(k)
                count = token_count(inputs)
                mean = mask_tokens(keys, mask).sum(-2, keepdim=True) / count
                variance = mask_tokens((keys - mean).square(), mask).sum(-2, keepdim=True) / count
                k = ((keys - mean) * (variance + 1).rsqrt()).to(k.dtype)
        if self.q_conv is not None and self.k_conv is not None:
            q = q + convolve_heads(self.q_conv, mask_tokens(q, mask), inputs.grid)
            k = k + convolve_heads(self.k_conv, mask_tokens(k, mask), inputs.grid)
        return q, k


def _step_glu(k: Tensor, error: Tensor, w1: Tensor, w2: Tensor) -> tuple[Tensor, Tensor]:
    """Weights (B, heads, d, d) after one step on f(k) = (k W1) * silu(k W2), ``error`` = dL/df(k)."""
    z1, z2 = k @ w1, k @ w2
    gate = torch.sigmoid(z2)
    value = z2 * gate
    slope = torch.addcmul(value, gate, 1 - value)  # of silu at z2
    keys = k.transpose(-2, -1)
    gradients = keys @ (error * value), keys @ (error * z1 * slope)
    g1, g2 = (g / (g.norm(dim=-2, keepdim=True) + 1) for g in gradients)
    return w1 - g1, w2 - g2


def _step_glu3(k: Tensor, error: Tensor, w1: Tensor, w2: Tensor, w3: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Weights (B, heads, d, d) after one step on f(k) = (silu(k W1) * (k W2)) W3, ``error`` = dL/df(k)."""
    z1, z2 = k @ w1, k @ w2
    gate = torch.sigmoid(z1)
    value = z1 * gate
    slope = torch.addcmul(value, gate, 1 - value)
    keys = k.transpose(-2, -1)
    hidden = error @ w3.transpose(-2, -1)
    w3 = w3 - (value * z2).transpose(-2, -1) @ error
    return w1 - keys @ (hidden * z2 * slope), w2 - keys @ (hidden * value), w3


def _shifts(t: Tensor) -> list[Tensor]:
    """The nine 3x3 neighbours of every place of (B, channels, H, W), zero outside, in the order of a flat kernel."""
    height, width = t.shape[-2:]
    t = F.pad(t, (1, 1, 1, 1))
    return [t[..., y : y + height, x : x + width] for y in range(3) for x in range(3)]
