"""Multi-head linear attention with token-block mixing (MHLA; released at DAGroup-PKU/MHLA)."""

import functools
import math

import torch
import torch.nn.functional as F
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
from lvit_dense.operators.maps import convolve_heads, depthwise, mask_tokens, pad_map, require_grid

LAYOUTS = ("fixed_layout", "fixed_block")
NORMALIZERS = ("exact", "repo")
TRANSFORMS = ("cos", "linear", "exp", "gaussian", "local")
BLOCKS = Grid(2, 2)  # blocks of the learned mixing matrix
BLOCK_SIZE = 7  # tokens a side of a block at pre-training: 2 x 2 of them make the 14 x 14 grid


@OPERATORS.register("mhla")
class MHLAAttention(AttentionOperator):
    """Linear attention whose key-value states are kept per block of the grid and mixed by a learned matrix.

    With phi = relu + eps and, per block m, kv_m = sum phi(k)^T v and z_m = sum phi(k):
    out_i = phi(q_i) KV'_n / (phi(q_i).z'_n + eps) for i in block n, KV'_n = sum_m mix[n, m] kv_m, z'_n likewise; plus a
    5x5 depth-wise convolution of the v map. O(N C head_dim).

    Args:
        layout: ``"fixed_layout"`` cuts every grid into 2x2 blocks and uses ``mix`` as it is; blocks have
            ceil(H/2) x ceil(W/2) tokens and the grid is padded at the bottom and right by keys that count nothing.
            ``"fixed_block"`` cuts blocks of 7x7 tokens; ``mix`` then serves grids of 2x2 blocks, any other grid gets
            the distance transform for its own blocks, which is not learned and costs O((N/49)^2) small products.
        transform: initial mixing weight as a function of the distance between block centres: ``"cos"``, ``"linear"``,
            ``"exp"``, ``"local"`` (columns sum to 1) or ``"gaussian"`` (not normalised).
        normalizer: ``"exact"`` as above; ``"repo"`` as in the released code, where the normaliser of token l of block n
            is sum_m mix[n, m] phi(q of token l of block m).z_m, so it takes other tokens' queries. Needed for released
            weights; only for grids that fill their blocks, without mask.
        eps: added to the features and to the denominator.
    """

    tokens = TokenLayout(class_token=False, pos_embed="sincos")

    def __init__(
        self,
        dim: int,
        num_heads: int,
        layout: str = "fixed_layout",
        transform: str = "cos",
        normalizer: str = "exact",
        eps: float = 1e-6,
    ) -> None:
        super().__init__(dim, num_heads)
        for name, value, known in (
            ("layout", layout, LAYOUTS),
            ("transform", transform, TRANSFORMS),
            ("normalizer", normalizer, NORMALIZERS),
        ):
            if value not in known:
                raise KeyError(f"operator 'mhla' has no {name} {value!r}: {suggest(value, known)}")
        self.layout, self.transform, self.normalizer, self.eps = layout, transform, normalizer, eps
        self.mix = nn.Parameter(mixing_weights(BLOCKS, transform).float().to(torch.get_default_device()))
        self.local = depthwise(dim, 5)

    def forward(self, inputs: AttentionInputs) -> Tensor:
        """See :class:`AttentionOperator`."""
        require_grid("mhla", inputs)
        blocks, block = self._partition(inputs.grid)
        if self.normalizer == "repo":
            self._require_full_blocks(inputs, blocks, block)
        out = recomputed(self._attend, inputs, blocks, block)
        return out + convolve_heads(self.local, mask_tokens(inputs.v, inputs.mask), inputs.grid)

    def macs(self, grid: Grid, prefix: int) -> int:
        """Per padded token K^T V, Q KV' and the normaliser; the mixing of (head_dim + 1) C numbers; the convolution."""
        blocks, block = self._partition(grid)
        padded = blocks.tokens * block.tokens
        products = padded * self.dim * (2 * self.head_dim + 1)
        mixing = blocks.tokens**2 * self.dim * (self.head_dim + 1)
        if self.normalizer == "repo":
            mixing += blocks.tokens**2 * self.num_heads * (block.tokens - self.head_dim)
        return products + mixing + 25 * grid.tokens * self.dim

    def _partition(self, grid: Grid) -> tuple[Grid, Grid]:
        """Number of blocks and tokens per block, each (rows, columns)."""
        if self.layout == "fixed_layout":
            return BLOCKS, Grid(-(-grid.height // BLOCKS.height), -(-grid.width // BLOCKS.width))
        return Grid(-(-grid.height // BLOCK_SIZE), -(-grid.width // BLOCK_SIZE)), Grid(BLOCK_SIZE, BLOCK_SIZE)

    def _attend(self, inputs: AttentionInputs, blocks: Grid, block: Grid) -> Tensor:
        with no_autocast(inputs.v):
            q, k, v, mix = at_least_fp32(inputs.q, inputs.k, inputs.v, self._mix(blocks))
            # Padding comes after the features: a padded key must count nothing, and phi(0) is eps.
            k = _to_blocks(mask_tokens(F.relu(k) + self.eps, inputs.mask), inputs.grid, blocks, block)
            q = _to_blocks(F.relu(q) + self.eps, inputs.grid, blocks, block)
            v = _to_blocks(v, inputs.grid, blocks, block)
            key_value, key_sum = k.transpose(-2, -1) @ v, k.sum(-2)
            mixed = (mix @ key_value.flatten(3)).unflatten(3, key_value.shape[3:])
            if self.normalizer == "exact":
                normaliser = q @ (mix @ key_sum).unsqueeze(-1)
            else:
                normaliser = (mix @ (q @ key_sum.unsqueeze(-1)).squeeze(-1)).unsqueeze(-1)
            out = (q @ mixed) / (normaliser + self.eps)
            return _from_blocks(out, inputs.grid, blocks, block).to(inputs.v.dtype)

    def _mix(self, blocks: Grid) -> Tensor:
        """Mixing matrix for this many blocks."""
        if blocks == BLOCKS:
            return self.mix
        return mixing_weights(blocks, self.transform).to(self.mix)

    def _require_full_blocks(self, inputs: AttentionInputs, blocks: Grid, block: Grid) -> None:
        padded = Grid(blocks.height * block.height, blocks.width * block.width)
        if padded != inputs.grid or inputs.mask is not None:
            what = "a mask" if padded == inputs.grid else f"a {inputs.grid.height}x{inputs.grid.width} grid"
            raise ValueError(
                f"normalizer='repo' of operator 'mhla' takes other tokens' queries by their place in the block, so it "
                f"has no meaning for {what} that does not fill its {blocks.height}x{blocks.width} blocks of "
                f"{block.height}x{block.width} tokens: use normalizer='exact'"
            )


@functools.lru_cache(maxsize=64)
def mixing_weights(blocks: Grid, transform: str) -> Tensor:
    """Mixing matrix (M, M) in float64 for M blocks in raster order.

    A function of the distances between block centres, measured in blocks. Always on the CPU: what is cached must not
    depend on the default device of the first caller.
    """
    sides = (torch.arange(side, device="cpu") for side in blocks)
    rows, columns = torch.meshgrid(*sides, indexing="ij")
    centres = torch.stack([rows.flatten(), columns.flatten()], -1).double()
    distance = (centres[:, None] - centres[None]).norm(dim=-1)
    farthest = distance.max().clamp(min=1.0)  # a single block has no distance to divide by
    if transform == "gaussian":
        return torch.exp(-(distance**2) / (2 * (farthest / 3) ** 2))
    weight = {
        "cos": torch.cos(math.pi / 4 * distance / farthest),
        "linear": 1 - distance / farthest,
        "exp": torch.exp(-distance / 3),
        "local": (distance <= 1.5).double(),
    }[transform]
    return weight / weight.sum(0, keepdim=True)


def _to_blocks(t: Tensor, grid: Grid, blocks: Grid, block: Grid) -> Tensor:
    """(B, heads, N, head_dim) -> (B, heads, M, tokens of a block, head_dim)."""
    t = pad_map(t, grid, (blocks.height * block.height, blocks.width * block.width))
    t = t.unflatten(3, (blocks.width, block.width)).unflatten(2, (blocks.height, block.height))
    return t.transpose(3, 4).flatten(4, 5).flatten(2, 3)


def _from_blocks(t: Tensor, grid: Grid, blocks: Grid, block: Grid) -> Tensor:
    """Inverse of :func:`_to_blocks`, with the padding cropped."""
    t = t.unflatten(3, tuple(block)).unflatten(2, tuple(blocks)).transpose(3, 4).flatten(4, 5).flatten(2, 3)
    return t[:, :, : grid.height, : grid.width].flatten(2, 3)
