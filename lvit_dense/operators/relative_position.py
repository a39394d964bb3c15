"""BEiT's relative position bias (Bao et al., 2022): a learned number per head and per offset between two tokens."""

import functools

import torch
import torch.nn.functional as F
from timm.layers import trunc_normal_
from torch import Tensor, nn

from lvit_dense.operators.base import Grid


class RelativePositionBias(nn.Module):
    """Adds to the logits of softmax attention; the table has BEiT's layout.

    Rows: (2H-1)(2W-1) offsets query minus key in raster order, then prefix to patch, patch to prefix, prefix to prefix.

    Args:
        grid: the token grid that the table belongs to; at another grid its offsets are resized bicubically.
    """

    def __init__(self, num_heads: int, grid: Grid) -> None:
        super().__init__()
        self.grid = grid
        self.table = nn.Parameter(torch.empty((2 * grid.height - 1) * (2 * grid.width - 1) + 3, num_heads))
        trunc_normal_(self.table, std=0.02)

    def forward(self, grid: Grid, prefix: int) -> Tensor:
        """Bias (heads, N, N), N = prefix + grid.tokens; first index the query, second the key."""
        old, new = self.grid, grid
        offsets = self.table[:-3].T.reshape(1, -1, 2 * old.height - 1, 2 * old.width - 1)
        if old != new:
            size = (2 * new.height - 1, 2 * new.width - 1)
            offsets = F.interpolate(offsets.float(), size=size, mode="bicubic", align_corners=False).to(offsets.dtype)
        patches = offsets[0].flatten(1)[:, _offset_index(grid, offsets.device)]
        if not prefix:
            return patches
        to_patch, to_prefix, between = self.table[-3:, :, None, None]
        n, heads = grid.tokens, self.table.shape[1]
        above = torch.cat([between.expand(heads, prefix, prefix), to_patch.expand(heads, prefix, n)], 2)
        below = torch.cat([to_prefix.expand(heads, n, prefix), patches], 2)
        return torch.cat([above, below], 1)


@functools.lru_cache(maxsize=16)
def _offset_index(grid: Grid, device: torch.device) -> Tensor:
    """(N, N) row of the table for each pair of patches."""
    y, x = torch.meshgrid(torch.arange(grid.height), torch.arange(grid.width), indexing="ij")
    y, x = y.flatten(), x.flatten()
    rows = y[:, None] - y[None, :] + grid.height - 1
    columns = x[:, None] - x[None, :] + grid.width - 1
    return (rows * (2 * grid.width - 1) + columns).to(device)
