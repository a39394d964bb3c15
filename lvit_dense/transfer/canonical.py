"""The one layout that every checkpoint is brought to: timm's ViT names, their groups, and the facts they imply."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch import Tensor

from lvit_dense.operators import Grid

# Group -> the names it holds; `*` stands for a block index. Order is that of the report.
_GROUP_PATTERNS = {
    "patch_embed": r"patch_embed\.proj\.(weight|bias)",
    "class_token": r"cls_token",
    "positions": r"pos_embed",
    "registers": r"reg_token",
    "pre_norm": r"norm_pre\.(weight|bias)",
    "norm1": r"blocks\.\d+\.norm1\.(weight|bias)",
    "qkv": r"blocks\.\d+\.attn\.qkv\.(weight|bias)",
    "operator": r"blocks\.\d+\.attn\.operator\..+",
    "proj": r"blocks\.\d+\.attn\.proj\.(weight|bias)",
    "ls1": r"blocks\.\d+\.ls1\.gamma",
    "norm2": r"blocks\.\d+\.norm2\.(weight|bias)",
    "mlp": r"blocks\.\d+\.mlp\.fc[12]\.(weight|bias)",
    "ls2": r"blocks\.\d+\.ls2\.gamma",
    "final_norm": r"norm\.(weight|bias)",
    "head": r"(head|fc_norm)\.(weight|bias)",
}
GROUPS = tuple(_GROUP_PATTERNS)
_COMPILED = {group: re.compile(pattern) for group, pattern in _GROUP_PATTERNS.items()}
_BLOCK = re.compile(r"blocks\.(\d+)\.")

# Of pixel values in 0..1: what the configs normalise by, and what families were trained with unless their reader says.
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

# Parts that teachers may have and DeiT has not, as ViT arguments with DeiT's values.
NATIVE_DEFAULTS: dict[str, Any] = {
    "registers": 0,
    "pre_norm": False,
    "act_layer": "gelu",
    "norm_eps": 1e-6,
    "patch_bias": True,
    "qkv_bias": True,
    "k_bias": True,
}


class SourceError(ValueError):
    """A file that cannot be read as a pre-trained ViT; the message names it, what was found and the cure."""


def group_of(name: str) -> str | None:
    """Group that a canonical name belongs to; None for a name that the layout does not have."""
    return next((group for group, pattern in _COMPILED.items() if pattern.fullmatch(name)), None)


def block_of(name: str) -> int | None:
    """Index of the block that a canonical name belongs to, None outside the blocks."""
    match = _BLOCK.match(name)
    return int(match[1]) if match else None


def without_index(name: str) -> str:
    """``blocks.3.norm1.weight`` -> ``blocks.*.norm1.weight``, for lists that would repeat 12 times."""
    return _BLOCK.sub("blocks.*.", name)


class SourceFacts(NamedTuple):
    """What a checkpoint says about the model it came from.

    ``grid`` is the token grid of its position rows (with no stored rows: of its training size where known).
    ``heads_assumed`` marks a head count that no key tells and that was taken as embed_dim / 64.
    ``operator`` is ``"softmax"`` for teachers, else the operator specification. ``final_norm`` is False for files
    without ``norm.*``, such as dense backbones. ``pixel_mean`` and ``pixel_std`` (of values in 0..1) are those of the
    family's training, None for our own runs, whose checkpoints do not say.
    """

    embed_dim: int
    depth: int
    num_heads: int
    mlp_ratio: float
    patch_size: int
    in_chans: int
    grid: Grid
    class_token: bool
    registers: int
    layer_scale: bool
    qkv_bias: bool
    pre_norm: bool
    act_layer: str
    norm_eps: float
    patch_bias: bool
    operator: Any = "softmax"
    pos_embed: str = "learned"
    final_norm: bool = True
    k_bias: bool = True
    heads_assumed: bool = False
    pixel_mean: tuple[float, float, float] | None = IMAGENET_MEAN
    pixel_std: tuple[float, float, float] | None = IMAGENET_STD


@dataclass(frozen=True)
class Source:
    """A checkpoint in canonical form.

    Attributes:
        spec: what the user asked for, a path or ``timm:NAME``.
        sha256: of the file's bytes; for ``timm:NAME`` of its tensors.
        state: canonical names, float32.
        dropped: names in the file that the layout has no place for, with the reason.
    """

    spec: str
    family: str
    sha256: str
    state: dict[str, Tensor]
    facts: SourceFacts
    dropped: dict[str, str] = field(default_factory=dict)

    def vit_arguments(self) -> dict[str, Any]:
        """Arguments of ``ViT`` that rebuild the source's native architecture.

        LayerScale comes as ``init_values=1.0`` (a plain start for what is not copied over it).
        """
        f = self.facts
        return dict(
            arch=dict(embed_dim=f.embed_dim, depth=f.depth, num_heads=f.num_heads, mlp_ratio=f.mlp_ratio),
            operator=f.operator,
            img_size=(f.grid.height * f.patch_size, f.grid.width * f.patch_size),
            patch_size=f.patch_size,
            in_chans=f.in_chans,
            class_token=f.class_token,
            pos_embed=f.pos_embed,
            registers=f.registers,
            qkv_bias=f.qkv_bias,
            k_bias=f.k_bias,
            init_values=1.0 if f.layer_scale else None,
            pre_norm=f.pre_norm,
            act_layer=f.act_layer,
            norm_eps=f.norm_eps,
            patch_bias=f.patch_bias,
            final_norm=f.final_norm,
        )

    def student_arguments(self, native_parts: bool = False) -> dict[str, Any]:
        """``ViT`` arguments by which a student of this source differs from DeiT.

        LayerScale is one by default, because without it nothing can be copied from a source that has it.

        Args:
            native_parts: also registers, pre-norm, activation, norm eps, and biases as in the source (arXiv 2605.07191:
                some teachers fail with a plain student). A relative position bias is a switch of the softmax operator
                (``facts.operator``); linear attention has no logits to add it to.
        """
        arguments = self.vit_arguments()
        names = ("init_values", *(NATIVE_DEFAULTS if native_parts else ()))
        defaults = {"init_values": None, **NATIVE_DEFAULTS}
        return {name: arguments[name] for name in names if arguments[name] != defaults[name]}


def infer_facts(where: str, state: Mapping[str, Tensor], grid: Grid | None, known: Mapping[str, Any]) -> SourceFacts:
    """Derive the facts that shapes tell; ``known`` holds those that the family or the file states itself.

    Args:
        where: the file, for error messages.
        grid: token grid of the position rows, needed where it is not square.

    Raises:
        SourceError: no patch embedding, no blocks, or position rows that do not make a grid.
    """
    kernel = state.get("patch_embed.proj.weight")
    blocks = [i for i in map(block_of, state) if i is not None]
    if kernel is None or kernel.ndim != 4 or kernel.shape[2] != kernel.shape[3] or not blocks:
        shape = None if kernel is None else tuple(kernel.shape)
        raise SourceError(
            f"{where}: a ViT needs patch_embed.proj.weight (C, in_chans, P, P) and blocks.*; found shape {shape} and "
            f"{len(blocks)} block tensors"
        )
    width = kernel.shape[0]
    registers = state["reg_token"].shape[1] if "reg_token" in state else 0
    fc1 = next((v for k, v in state.items() if k.endswith(".mlp.fc1.weight")), None)
    positions = state.get("pos_embed")
    facts: dict[str, Any] = dict(
        embed_dim=width,
        depth=max(blocks) + 1,
        num_heads=_assumed_heads(width),
        heads_assumed="num_heads" not in known,
        mlp_ratio=4.0 if fc1 is None else fc1.shape[0] / width,
        patch_size=kernel.shape[2],
        in_chans=kernel.shape[1],
        class_token="cls_token" in state,
        registers=registers,
        layer_scale=any(k.endswith((".ls1.gamma", ".ls2.gamma")) for k in state),
        # A file that lacks the projection altogether is incomplete, not without bias.
        qkv_bias=any(k.endswith(".qkv.bias") for k in state) or not any(k.endswith(".qkv.weight") for k in state),
        pre_norm="norm_pre.weight" in state,
        act_layer="gelu",
        norm_eps=1e-6,
        patch_bias="patch_embed.proj.bias" in state,
        final_norm="norm.weight" in state,
    )
    if positions is not None:
        known = {**known, "grid": position_grid(where, positions, grid or known.get("grid"), facts["class_token"])}
    elif grid is not None:
        known = {**known, "grid": grid}
    facts.update(known)
    if "grid" not in facts:
        raise SourceError(f"{where}: there are no position rows to tell the token grid; pass grid=(height, width)")
    return SourceFacts(**facts)


def position_grid(where: str, positions: Tensor, grid: Grid | None, class_row: bool) -> Grid:
    """Grid of position rows (1, class_row + N, C); without ``grid`` the patch rows must make a square."""
    rows = positions.shape[1]
    patches = rows - int(class_row)
    if grid is not None:
        if grid.tokens != patches:
            raise SourceError(
                f"{where}: pos_embed has {rows} rows, {patches} of them for patches, but grid={tuple(grid)} needs "
                f"{grid.tokens}"
            )
        return grid
    side = square_side(patches)
    if side is None:
        raise SourceError(
            f"{where}: pos_embed has {rows} rows; {rows} less {int(class_row)} class row leaves {patches}, which is no "
            f"square grid. If the model was trained on a non-square grid, pass grid=(height, width)"
        )
    return Grid(side, side)


def square_side(count: int) -> int | None:
    """Side of a square of ``count`` cells, None if there is none."""
    side = math.isqrt(count)
    return side if side * side == count else None


def _assumed_heads(width: int) -> int:
    """Heads of 64 channels, as in every published size; fewer where 64 does not divide the width."""
    return next(heads for heads in range(max(1, width // 64), 0, -1) if width % heads == 0)
