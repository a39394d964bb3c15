"""Impulse initialisation (Zheng et al., NeurIPS 2025): heads that start out as 3x3 convolution taps."""

import torch
import torch.nn.functional as F
from timm.layers import trunc_normal_
from torch import Tensor

from lvit_dense.operators import Grid
from lvit_dense.transfer.analytic import assign_attention, attention_names, random_start, value_and_proj
from lvit_dense.transfer.canonical import Source
from lvit_dense.transfer.plan import PLANS, Assignment, Resolution, TransferPlan
from lvit_dense.vit import ViT

TAPS = (4, 1, 5, 3, 7, 0, 2, 6, 8)  # of the 3x3 window in raster order, for heads 0, 1, ...
PEAK, FLOOR, FLOOR_STD = 1000.0, 3.0, 0.6
POSITION_SCALE = 18.0  # learned positions must stand out against the patch content
NORM = 7.0  # Frobenius norm of each head's q and k weight


@PLANS.register("impulse")
class ImpulsePlan(TransferPlan):
    """Head i attends from each patch to the neighbour at tap i of a 3x3 window, by position alone.

    Learned positions are multiplied by 18 (class row included), a sin-cos table stays; W_V W_O = .4 Z - .4 I per block.
    Nothing is copied; biases are zero.
    """

    needs_source = False
    groups = ("qkv", "proj", "positions")

    def resolve(self, source: Source | None, model: ViT) -> Resolution:
        """See :class:`TransferPlan`."""
        computed = attention_names(model) | ({"pos_embed"} if model.learned_positions else set())
        result = random_start(model, computed, "impulse")
        if model.pos_embed is None:
            result.problems.append("the plan 'impulse' needs positions, and the student has pos_embed='none'")
        if result.problems:
            return result
        positions = model.pos_embed.detach()
        if model.learned_positions:
            positions = positions * POSITION_SCALE
            result.assignments.append(Assignment("pos_embed", positions, computed=True))
        dim, heads = model.embed_dim, model.arch.num_heads
        basis, scale = _position_basis(positions[0, -model.grid.tokens :].double().cpu(), dim // heads)
        for index in range(model.arch.depth):
            pairs = [_head(impulse_target(model.grid, TAPS[h % len(TAPS)]), basis, scale) for h in range(heads)]
            q, k = (torch.cat(weights) for weights in zip(*pairs))
            v, proj = value_and_proj(dim)
            result.assignments.extend(assign_attention(model, index, q, k, v, proj))
        return result


def impulse_target(grid: Grid, tap: int) -> Tensor:
    """Logits T (N, N) in float64: high from each patch to its neighbour at ``tap``, low noise elsewhere."""
    down, right = tap // 3 - 1, tap % 3 - 1
    rows, columns = torch.meshgrid(torch.arange(grid.height), torch.arange(grid.width), indexing="ij")
    target_rows, target_columns = rows + down, columns + right
    inside = (target_rows >= 0) & (target_rows < grid.height) & (target_columns >= 0) & (target_columns < grid.width)
    logits = FLOOR * trunc_normal_(torch.empty(grid.tokens, grid.tokens, dtype=torch.float64), std=FLOOR_STD)
    neighbour = (target_rows * grid.width + target_columns)[inside]
    logits[(rows * grid.width + columns)[inside], neighbour] = PEAK
    return logits


def _position_basis(positions: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """The normalised positions PE (N, C) cut to ``rank``: right basis (C, rank), and PE^+ = basis @ scale, (rank, N).

    Directions that PE does not have (fewer tokens than ``rank``, or a sin-cos table) are zero.
    """
    normalised = F.layer_norm(positions, positions.shape[-1:])
    u, s, v = torch.linalg.svd(normalised, full_matrices=False)
    # The table is float32: what its rounding adds to the spectrum must not be inverted.
    real = int((s > s[0] * max(normalised.shape) * torch.finfo(torch.float32).eps).sum())
    kept = min(rank, real)
    missing = rank - kept
    return F.pad(v[:kept].T, (0, missing)), F.pad(u[:, :kept].T / s[:kept, None], (0, 0, 0, missing))


def _head(target: Tensor, basis: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """q and k weights (head_dim, C) of one head: the factors of A = PE^+ T PE^+T, each of Frobenius norm 7."""
    u, s, v = torch.linalg.svd(scale @ target @ scale.T)  # A has this rank at most, so the small core has its factors
    root = s.sqrt()
    q, k = (basis @ u * root).T, (basis @ v.T * root).T
    return NORM * q / q.norm(), NORM * k / k.norm()
