"""For operators that look at the token grid: tokens as feature maps and back."""

import torch.nn.functional as F
from torch import Tensor, nn

from lvit_dense.operators.base import AttentionInputs, Grid, check_tokens


def require_grid(name: str, inputs: AttentionInputs) -> None:
    """Raise ValueError unless the tokens are exactly the patch tokens of a grid."""
    check_tokens(inputs.q.shape[-2], inputs.grid, inputs.prefix)
    require_no_prefix(name, inputs.prefix)


def require_no_prefix(name: str, prefix: int) -> None:
    """Raise ValueError if there are prefix tokens, which have no place on a grid."""
    if prefix:
        raise ValueError(
            f"operator {name!r} works on the token grid and cannot take the {prefix} prefix token(s) it was given: "
            "build the model with class_token=False and registers=0"
        )


def heads_to_map(t: Tensor, grid: Grid) -> Tensor:
    """(B, heads, N, head_dim) -> (B, C, H, W); a view where the heads of a token lie side by side, as in qkv."""
    return tokens_to_map(t.transpose(1, 2).flatten(2), grid)


def map_to_heads(t: Tensor, num_heads: int) -> Tensor:
    """(B, C, H, W) -> (B, heads, N, head_dim)."""
    return t.flatten(2).unflatten(1, (num_heads, -1)).transpose(-2, -1)


def tokens_to_map(t: Tensor, grid: Grid) -> Tensor:
    """(B, N, C) -> (B, C, H, W), a view in channels-last order."""
    return t.transpose(1, 2).unflatten(2, tuple(grid))


def depthwise(dim: int, kernel_size: int) -> nn.Conv2d:
    """Depth-wise convolution with bias that keeps the size of the map."""
    return nn.Conv2d(dim, dim, kernel_size, padding=kernel_size // 2, groups=dim)


def mask_tokens(t: Tensor, mask: Tensor | None) -> Tensor:
    """Zero the padded tokens of (B, heads, N, head_dim), as if the map ended before them."""
    return t if mask is None else t.masked_fill(~mask[:, None, :, None], 0.0)


def token_count(inputs: AttentionInputs) -> int | Tensor:
    """Number of real tokens: N, or with a mask one number per image, (B, 1, 1, 1)."""
    if inputs.mask is None:
        return inputs.q.shape[-2]
    return inputs.mask.sum(-1).clamp(min=1)[:, None, None, None]


def convolve_heads(convolution: nn.Module, t: Tensor, grid: Grid) -> Tensor:
    """Apply a convolution over the map of (B, heads, N, head_dim) and return that layout."""
    return map_to_heads(convolution(heads_to_map(t, grid)), t.shape[1])


def pad_map(t: Tensor, grid: Grid, size: tuple[int, int]) -> Tensor:
    """(B, heads, N, head_dim) -> (B, heads, height, width, head_dim), zero-padded at the bottom and right."""
    t = t.unflatten(2, tuple(grid))
    if size == tuple(grid):
        return t
    return F.pad(t, (0, 0, 0, size[1] - grid.width, 0, size[0] - grid.height))
