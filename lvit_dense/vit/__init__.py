"""The Vision Transformer: sizes, embedding, attention, block, trunk."""

from lvit_dense.vit.arch import ARCHS, Arch, resolve_arch
from lvit_dense.vit.trunk import Features, ViT

__all__ = ["ARCHS", "Arch", "Features", "ViT", "resolve_arch"]
