"""Multiply-accumulates of a ViT, counted from its layers; attention products come from ``operator.macs``."""

from lvit_dense.operators import Grid
from lvit_dense.vit.block import Block
from lvit_dense.vit.trunk import ViT


def vit_macs(vit: ViT, grid: Grid) -> dict[str, int]:
    """MACs of one image whose patches make ``grid``, by part: embedding, projections, attention, mlp.

    Matrix products and convolutions only, as ``torch.utils.flop_counter`` counts (it gives twice these numbers).
    Resizing the position rows is left out: two small products that depend on neither operator nor picture.
    """
    parts = {
        "embedding": grid.tokens * vit.patch_embed.proj.weight.numel(),
        "projections": 0,
        "attention": 0,
        "mlp": 0,
    }
    for block in vit.blocks:
        assert isinstance(block, Block)
        for name, macs in block_macs(block, grid, vit.prefix).items():
            parts[name] += macs
    return parts


def block_macs(block: Block, grid: Grid, prefix: int) -> dict[str, int]:
    """MACs of one block on one image: projections, attention, mlp."""
    n, attention, size = prefix + grid.tokens, block.attn.operator.macs, block.attn.window_size
    windows = 1 if size is None else -(-grid.height // size) * -(-grid.width // size)
    return {
        "projections": n * (block.attn.qkv.weight.numel() + block.attn.proj.weight.numel()),
        # Windows at the edge are computed with their padding.
        "attention": windows * (attention(grid, prefix) if size is None else attention(Grid(size, size), 0)),
        "mlp": n * (block.mlp.fc1.weight.numel() + block.mlp.fc2.weight.numel()),
    }
