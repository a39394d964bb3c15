"""The sizes of DeiT, the only place where 768/12/12 stands."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lvit_dense.catalog import suggest


class Arch(NamedTuple):
    """Width, depth and heads of a ViT."""

    embed_dim: int
    depth: int
    num_heads: int
    mlp_ratio: float = 4.0


ARCHS = {
    "tiny": Arch(192, 12, 3),
    "small": Arch(384, 12, 6),
    "base": Arch(768, 12, 12),
    "large": Arch(1024, 24, 16),
}


def resolve_arch(arch: str | Mapping[str, Any] | Sequence[float]) -> Arch:
    """Turn ``"base"``, ``dict(embed_dim=64, depth=4, num_heads=2)`` or ``(64, 4, 2)`` into an :class:`Arch`."""
    if isinstance(arch, str):
        if arch not in ARCHS:
            raise KeyError(f"unknown size {arch!r}: {suggest(arch, ARCHS)}")
        return ARCHS[arch]
    try:
        return Arch(**arch) if isinstance(arch, Mapping) else Arch(*arch)  # type: ignore[arg-type]
    except TypeError:
        raise KeyError(f"arch needs embed_dim, depth and num_heads (optional: mlp_ratio), got {arch}") from None
