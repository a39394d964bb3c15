"""What a checkpoint family is: how its keys are recognised, and how they are renamed to the canonical layout."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from lvit_dense.catalog import Catalog
from lvit_dense.operators import Grid
from lvit_dense.transfer.canonical import SourceError, group_of
from lvit_dense.transfer.loading import RawCheckpoint
from lvit_dense.vit import ViT

READERS: Catalog[type["CheckpointReader"]] = Catalog("checkpoint family", "lvit_dense.transfer.readers")

# Containers and wrappers that a weight's name may carry, and how little each is wanted when a file has several:
# DINO, iBOT and DINOv2 evaluate the teacher; MoCo-v3 releases the base encoder; DeiT evaluates the plain weights.
PREFIXES = {
    "model": 0,
    "module": 0,
    "state_dict": 0,
    "backbone": 0,
    "encoder": 0,
    "visual": 0,
    "image_encoder": 0,
    "_orig_mod": 0,
    "teacher": 0,
    "base_encoder": 0,
    "student": 1,
    "momentum_encoder": 1,
    "model_ema": 1,
}


class View(NamedTuple):
    """The tensors of one ViT inside a file, with the prefix cut off; ``others`` are the names outside of it."""

    spec: str
    prefix: str
    state: dict[str, Tensor]
    others: list[str]
    meta: Mapping[str, Any]
    grid: Grid | None = None  # as stated by the user

    def inside(self, *segments: str) -> bool:
        """Whether the prefix holds one of these segments, such as ``teacher``."""
        return bool(set(segments) & set(self.prefix.split(".")))

    def has(self, pattern: str) -> bool:
        """Whether some name matches the regular expression from its start."""
        return any(re.match(pattern, name) for name in self.state)


@dataclass
class Converted:
    """Canonical tensors, the facts that the family knows without looking at shapes, and what has no place."""

    state: dict[str, Tensor]
    known: dict[str, Any] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)


class CheckpointReader:
    """Base of the families. A family is told by its keys, never by a file name.

    Attributes:
        title: models whose files these are.
        native: ViT arguments in which the family's models differ from DeiT.
        suffix: kind of file that :meth:`lay_out` is for.
        anchor: the name, in the family's own layout, whose prefix tells where the ViT sits in the file.
        segments: prefix segments that only this family uses.
    """

    title: ClassVar[str]
    native: ClassVar[Mapping[str, Any]] = {}
    suffix: ClassVar[str] = ".pth"
    anchor: ClassVar[str] = "patch_embed.proj.weight"
    segments: ClassVar[tuple[str, ...]] = ()

    def why_not(self, view: View) -> str | None:
        """None if the file is of this family, else what speaks against it."""
        raise NotImplementedError

    def convert(self, view: View) -> Converted:
        """Rename to the canonical layout. Called only where :meth:`why_not` returned None."""
        raise NotImplementedError

    def lay_out(self, vit: ViT) -> dict[str, Any]:
        """The reverse: ``vit``'s weights as a file of this family holds them, with what else such files hold."""
        raise NotImplementedError


def open_view(reader: type[CheckpointReader], raw: RawCheckpoint, grid: Grid | None = None) -> View | str:
    """Find the ViT in a file by the family's anchor; a string says why there is none.

    Raises:
        SourceError: the file holds several equally good ones.
    """
    ends = [n for n in raw.tensors if n == reader.anchor or n.endswith("." + reader.anchor)]
    if not ends:
        return f"no key ends in {reader.anchor!r}"
    known = {**PREFIXES, **dict.fromkeys(reader.segments, 0)}
    prefixes = [name[: len(name) - len(reader.anchor)] for name in ends]
    ranked = sorted((sum(known[s] for s in p.split(".")[:-1]), p) for p in prefixes if _made_of(p, known))
    if not ranked:
        return f"unknown prefix {prefixes[0]!r} (known: {', '.join(s + '.' for s in known)})"
    if len(ranked) > 1 and ranked[0][0] == ranked[1][0]:
        raise SourceError(
            f"{raw.spec}: holds several ViTs, under {', '.join(repr(p) for _, p in ranked)}; save the wanted one alone"
        )
    prefix = ranked[0][1]
    state = {n[len(prefix) :]: t for n, t in raw.tensors.items() if n.startswith(prefix)}
    others = [n for n in raw.tensors if not n.startswith(prefix)]
    return View(raw.spec, prefix, state, others, raw.meta, grid)


def strays(state: Mapping[str, Any]) -> list[str]:
    """Names that the canonical layout does not have."""
    return [name for name in state if group_of(name) is None]


def not_canonical(state: Mapping[str, Any]) -> str | None:
    """None, or a sentence with the first names that the canonical layout does not have."""
    found = strays(state)
    return f"{len(found)} unexpected keys, first {found[:3]}" if found else None


def translate(state: Mapping[str, Tensor], keys: Mapping[str, str]) -> dict[str, Tensor]:
    """Rename by a map of names without their last part, ``*`` for a block index; other names stay.

    ``{"layers.*.ln1": "blocks.*.norm1"}`` takes ``layers.3.ln1.bias`` to ``blocks.3.norm1.bias``.
    """
    rules = [(re.compile(re.escape(old).replace(r"\*", r"(\d+)") + r"(\.[a-z]+)?"), new) for old, new in keys.items()]
    renamed = {}
    for name, value in state.items():
        for pattern, new in rules:
            match = pattern.fullmatch(name)
            if match:
                *index, tail = match.groups()
                name = new.replace("*", "".join(index)) + (tail or "")
                break
        renamed[name] = value
    return renamed


def reverse(keys: Mapping[str, str]) -> dict[str, str]:
    """The map for the other direction."""
    return {new: old for old, new in keys.items()}


def take(state: dict[str, Tensor], dropped: dict[str, str], pattern: str, reason: str) -> None:
    """Move the names that fully match ``pattern`` from ``state`` to ``dropped``."""
    for name in [n for n in state if re.fullmatch(pattern, n)]:
        del state[name]
        dropped[name] = reason


def with_class_row(positions: Tensor) -> Tensor:
    """Prepend a zero position row for a class token that has none, which leaves the model's function unchanged."""
    return torch.cat([positions.new_zeros(1, 1, positions.shape[-1]), positions], 1)


def _made_of(prefix: str, known: Mapping[str, int]) -> bool:
    return all(segment in known for segment in prefix.split(".")[:-1])
