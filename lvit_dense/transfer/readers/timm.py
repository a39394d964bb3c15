"""timm's own layout: timm files, DeiT (also distilled), and the backbone files of DINO, iBOT and MAE, equal in keys."""

from typing import Any

from torch import Tensor, cat, randn

from lvit_dense.operators import Grid
from lvit_dense.transfer.canonical import square_side
from lvit_dense.transfer.reader import (
    READERS,
    CheckpointReader,
    Converted,
    View,
    not_canonical,
    take,
    translate,
    with_class_row,
)
from lvit_dense.vit import ViT

_LAYER_SCALE = {"blocks.*.gamma_1": "blocks.*.ls1.gamma", "blocks.*.gamma_2": "blocks.*.ls2.gamma"}
_DISTILLED = r"dist_token|head_dist\.(weight|bias)"


@READERS.register("timm")
class TimmReader(CheckpointReader):
    """Every key is canonical but DeiT-distilled's token and head, and LayerScale in DeiT III's own repository."""

    title = "timm / DeiT"

    def why_not(self, view: View) -> str | None:
        """See :class:`CheckpointReader`."""
        if view.inside("teacher", "student", "base_encoder", "momentum_encoder"):
            return f"prefix {view.prefix!r} belongs to a self-supervised training file"
        if view.prefix == "model." and "fc_norm.weight" in view.state:
            return "'model' with fc_norm is MAE's fine-tuned layout"
        state, _ = _renamed(view.state)
        dino = "reg_token" in state or not has_patch_rows_only(state, view.grid)
        if dino and any(name.endswith(".ls1.gamma") for name in state):
            return "LayerScale with registers or a class position row is DINOv2's layout"
        return not_canonical(state)

    def convert(self, view: View) -> Converted:
        """See :class:`CheckpointReader`."""
        state, dropped = _renamed(view.state)
        if "cls_token" in state and has_patch_rows_only(state, view.grid):
            state["pos_embed"] = with_class_row(state["pos_embed"])
        return Converted(state, dropped=dropped)

    def lay_out(self, vit: ViT) -> dict[str, Any]:
        """DeiT-distilled, the form with most to drop."""
        state = vit.state_dict()
        width, rows = vit.embed_dim, state["pos_embed"]
        heads = {f"{head}.weight": randn(10, width) for head in ("head", "head_dist")}
        heads |= {f"{head}.bias": randn(10) for head in ("head", "head_dist")}
        state |= {"dist_token": randn(1, 1, width), "pos_embed": cat([rows[:, :1], randn(1, 1, width), rows[:, 1:]], 1)}
        return {"model": {**state, **heads}}


def without_distillation(state: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Drop DeiT's distillation token, its head and its position row (the second of 198)."""
    kept, dropped = dict(state), dict[str, str]()
    if "dist_token" in kept and "pos_embed" in kept:
        rows = kept["pos_embed"]
        kept["pos_embed"] = cat([rows[:, :1], rows[:, 2:]], 1)
    take(kept, dropped, _DISTILLED, "DeiT's distillation token, with its position row and head")
    return kept, dropped


def _renamed(original: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """DeiT III's gamma_1 and gamma_2 are LayerScale; so are those of BEiT and of rotary models, which are not ours."""
    others = "pos_embed" not in original or any(name.endswith(".attn.q_bias") for name in original)
    return without_distillation(original if others else translate(original, _LAYER_SCALE))


def has_patch_rows_only(state: dict[str, Tensor], grid: Grid | None) -> bool:
    """Whether ``pos_embed`` has no class row, as in timm's DeiT III and register models.

    Without a stated grid the row count must be a square (n and n - 1 never both are), and the file one of those models:
    a plain 3x8 grid with a class row has 25 rows too.
    """
    if "pos_embed" not in state:
        return False
    rows = state["pos_embed"].shape[1]
    if grid is not None:
        return rows == grid.tokens
    marked = "reg_token" in state or any(name.endswith(".ls1.gamma") for name in state)
    return marked and square_side(rows) is not None
