"""Positions on a token grid: the sin-cos table, and bicubic resizing that is the same on every run and device."""

import functools

import torch
import torch.nn.functional as F
from torch import Tensor

from lvit_dense.operators import Grid


def sincos_positions(grid: Grid, dim: int) -> Tensor:
    """Fixed 2-D sin-cos table, (1, grid.tokens, dim), rows in raster order (MoCo-v3 / MAE form).

    omega_k = 10000^(-k / (dim/4)); the first dim/2 channels are [sin, cos] of the column index, the last dim/2 of the
    row index.
    """
    if dim % 4:
        raise ValueError(f"sin-cos positions need a width that is a multiple of 4, got {dim}")
    omega = 10000.0 ** (-torch.arange(dim // 4, dtype=torch.float64) / (dim // 4))
    rows = torch.arange(grid.height, dtype=torch.float64)[:, None] * omega
    columns = torch.arange(grid.width, dtype=torch.float64)[:, None] * omega
    table = torch.empty(grid.height, grid.width, dim, dtype=torch.float64)
    table[..., : dim // 2] = torch.cat([columns.sin(), columns.cos()], -1)[None, :, :]
    table[..., dim // 2 :] = torch.cat([rows.sin(), rows.cos()], -1)[:, None, :]
    return table.reshape(1, grid.tokens, dim).float()


def resize_positions(positions: Tensor, old: Grid, new: Grid) -> Tensor:
    """Resize (1, old.tokens, C) to (1, new.tokens, C), bicubic with align_corners=False.

    Equal to ``F.interpolate``, written as two small matrix products because CUDA's bicubic backward adds with
    atomics, which makes two runs with one seed differ.
    """
    if old == new:
        return positions
    rows = _bicubic_matrix(old.height, new.height, positions.device)
    columns = _bicubic_matrix(old.width, new.width, positions.device)
    table = positions.float().reshape(old.height, old.width, -1)
    table = torch.einsum("Hh,Ww,hwc->HWc", rows, columns, table)
    return table.reshape(1, new.tokens, -1).to(positions.dtype)


@torch.compiler.disable  # tracing bicubic interpolation through the cache would take the compiler minutes
@functools.lru_cache(maxsize=256)
def _bicubic_matrix(old: int, new: int, device: torch.device) -> Tensor:
    """(new, old) matrix that maps samples on an axis of length ``old`` to one of length ``new``."""
    unit = torch.eye(old, device="cpu").reshape(1, old, old, 1)
    return F.interpolate(unit, size=(new, 1), mode="bicubic", align_corners=False)[0, :, :, 0].T.contiguous().to(device)
