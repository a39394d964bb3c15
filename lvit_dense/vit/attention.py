"""Multi-head attention around any operator: the projections, and windows for those who want them."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lvit_dense.operators import AttentionInputs, AttentionOperator, Grid
from lvit_dense.operators.base import check_tokens


class Attention(nn.Module):
    """Fused qkv projection in timm's row layout, an operator, the output projection.

    Args:
        operator: owns what differs between attentions; everything else here is the same for all.
        k_bias: False keeps the keys free of a bias (BEiT); the bias keeps its 3 C entries, the middle C are not used.
        window_size: attend inside square windows of this many tokens a side instead of globally. Windows at the
            bottom and right edge are padded and the padding is masked out of the keys. No prefix tokens then.
    """

    operator: AttentionOperator

    def __init__(
        self,
        dim: int,
        operator: AttentionOperator,
        qkv_bias: bool = True,
        window_size: int | None = None,
        k_bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_heads = operator.num_heads
        linear = nn.Linear if k_bias else _LinearWithoutKeyBias
        self.qkv = linear(dim, 3 * dim + operator.extra_inputs, bias=qkv_bias)
        self.operator = operator
        self.proj = nn.Linear(dim + operator.extra_outputs, dim)
        self.window_size = window_size

    def forward(self, x: Tensor, grid: Grid, prefix: int, mask: Tensor | None = None) -> Tensor:
        """Map normalised tokens (B, N, C) to (B, N, C); ``mask`` (B, N) is True where a token is real."""
        check_tokens(x.shape[1], grid, prefix)
        if self.window_size is None:
            return self.proj(self._attend(x, self.qkv(x), grid, prefix, mask))
        if prefix:
            raise ValueError(f"windowed attention takes patch tokens only, got {prefix} prefix tokens")
        window = Grid(self.window_size, self.window_size)
        if mask is None and any(side % self.window_size for side in grid):
            mask = x.new_ones(x.shape[:2], dtype=torch.bool)
        qkv = _to_windows(self.qkv(x), grid, self.window_size)
        windowed_mask = None if mask is None else _to_windows(mask[..., None], grid, self.window_size)[..., 0]
        if windowed_mask is not None:
            # A window of nothing but padding would divide zero by zero: let it attend to itself, it is cropped anyway.
            windowed_mask = windowed_mask | ~windowed_mask.any(-1, keepdim=True)
        out = self._attend(_to_windows(x, grid, self.window_size), qkv, window, 0, windowed_mask)
        return self.proj(_from_windows(out, grid, self.window_size))

    def inputs(self, x: Tensor, grid: Grid, prefix: int, mask: Tensor | None = None) -> AttentionInputs:
        """What the operator receives for global attention over tokens ``x`` (B, N, C)."""
        return self._split(x, self.qkv(x), grid, prefix, mask)

    def _attend(self, x: Tensor, qkv: Tensor, grid: Grid, prefix: int, mask: Tensor | None) -> Tensor:
        inputs = self._split(x, qkv, grid, prefix, mask)
        out = self.operator(inputs).transpose(1, 2).flatten(2)
        extra = self.operator.extra(inputs)
        return out if extra is None else torch.cat([out, extra], -1)

    def _split(self, x: Tensor, qkv: Tensor, grid: Grid, prefix: int, mask: Tensor | None) -> AttentionInputs:
        heads, extra = self.num_heads, self.operator.extra_inputs
        main = qkv[..., : qkv.shape[-1] - extra] if extra else qkv
        q, k, v = main.unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        return AttentionInputs(q, k, v, x, grid, prefix, mask, qkv[..., -extra:] if extra else None)


class _LinearWithoutKeyBias(nn.Linear):
    """A qkv projection that ignores the middle third of its bias."""

    def forward(self, input: Tensor) -> Tensor:
        if self.bias is None:
            return F.linear(input, self.weight)
        dim = self.in_features
        bias = torch.cat([self.bias[:dim], torch.zeros_like(self.bias[:dim]), self.bias[2 * dim :]])
        return F.linear(input, self.weight, bias)


def _to_windows(x: Tensor, grid: Grid, size: int) -> Tensor:
    """(B, H*W, C) -> (B * windows, size*size, C), zero-padded at the bottom and right."""
    rows, columns = -(-grid.height // size), -(-grid.width // size)
    x = x.unflatten(1, tuple(grid))
    x = F.pad(x, (0, 0, 0, columns * size - grid.width, 0, rows * size - grid.height))
    x = x.unflatten(2, (columns, size)).unflatten(1, (rows, size))
    return x.transpose(2, 3).flatten(0, 2).flatten(1, 2)


def _from_windows(x: Tensor, grid: Grid, size: int) -> Tensor:
    """Inverse of :func:`_to_windows`, with the padding cropped."""
    rows, columns = -(-grid.height // size), -(-grid.width // size)
    x = x.unflatten(1, (size, size)).unflatten(0, (-1, rows, columns)).transpose(2, 3).flatten(1, 2).flatten(2, 3)
    return x[:, : grid.height, : grid.width].flatten(1, 2)
