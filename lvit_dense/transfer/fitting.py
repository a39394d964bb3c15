"""Bring single source tensors to the shape of the student's, or say why that cannot or should not be done."""

from typing import NamedTuple

from timm.layers import resample_patch_embed
from torch import Tensor

from lvit_dense.operators import AttentionOperator
from lvit_dense.transfer.canonical import Source, SourceFacts, block_of, group_of
from lvit_dense.transfer.plan import Assignment
from lvit_dense.transfer.source import resize_rows
from lvit_dense.vit import ViT


class Fit(NamedTuple):
    """Outcome for one student tensor: an assignment, a reason to leave (the rest of) it random, or a problem."""

    assignment: Assignment | None = None
    random: str | None = None
    problem: str | None = None


def fit(name: str, value: Tensor, target: Tensor, source: Source, model: ViT) -> Fit:
    """Fit the source tensor called ``name`` to the student's ``target`` of the same name."""
    group = group_of(name)
    if group == "positions":
        return _positions(value, target, source.facts, model)
    if name == "patch_embed.proj.weight" and value.shape[:2] == target.shape[:2] and value.shape != target.shape:
        old, new = value.shape[-1], target.shape[-1]
        resampled = resample_patch_embed(value, list(target.shape[-2:]))
        return Fit(Assignment(name, resampled, resized=f"{old}x{old}->{new}x{new} kernel"))
    if group in ("qkv", "proj"):
        operator = operator_of(name, model)
        if group == "qkv" and operator.extra_inputs and value.shape[0] == target.shape[0] - operator.extra_inputs:
            rows = value.shape[0]
            if value.shape[1:] == target.shape[1:]:
                extra = f"the operator's {operator.extra_inputs} further rows; the first {rows} are copied"
                return Fit(Assignment(name, value, slice(0, rows)), random=extra)
        if group == "proj" and operator.extra_outputs and _narrow_proj(name, source, operator):
            return Fit(random=f"the operator's projection is {operator.extra_outputs} columns wider than the source's")
    if value.shape != target.shape:
        return Fit(problem=f"{name} is {tuple(value.shape)} in the source, {tuple(target.shape)} in the student")
    return Fit(Assignment(name, value))


def operator_of(name: str, model: ViT) -> AttentionOperator:
    """The student's operator in the block that ``name`` belongs to."""
    return model.blocks[block_of(name)].attn.operator  # type: ignore[index, union-attr, return-value]


def absent_by_fact(name: str, facts: SourceFacts) -> str | None:
    """Why a source of these facts rightly lacks ``name``; None if it ought to have it."""
    group = group_of(name)
    lacks = {
        "class_token": (not facts.class_token, "class token"),
        "positions": (facts.pos_embed != "learned", "stored positions"),
        "registers": (not facts.registers, "registers"),
        "pre_norm": (not facts.pre_norm, "pre-norm"),
        "ls1": (not facts.layer_scale, "LayerScale"),
        "ls2": (not facts.layer_scale, "LayerScale"),
        "final_norm": (not facts.final_norm, "final norm"),
    }
    if name.endswith("attn.qkv.bias"):
        lacks["qkv"] = (not facts.qkv_bias, "qkv bias")
    if name == "patch_embed.proj.bias":
        lacks["patch_embed"] = (not facts.patch_bias, "patch bias")
    missing, what = lacks.get(group or "", (False, ""))
    return f"the source has no {what}" if missing else None


def _positions(value: Tensor, target: Tensor, facts: SourceFacts, model: ViT) -> Fit:
    """Position rows: resampled from the source's grid to the student's; class rows only where both have one."""
    if value.shape[-1] != target.shape[-1]:
        return Fit(problem=f"pos_embed is {value.shape[-1]} wide in the source, {target.shape[-1]} in the student")
    old, new = facts.grid, model.grid
    class_row = model.cls_token is not None
    resized = None if old == new else f"{old.height}x{old.width}->{new.height}x{new.width}"
    rows = resize_rows(value, old, new, facts.class_token)
    if facts.class_token and not class_row:
        rows = rows[:, 1:]
    if class_row and not facts.class_token:
        part = (slice(None), slice(1, None))
        return Fit(Assignment("pos_embed", rows, part, resized), random="the class row: the source has no class token")
    return Fit(Assignment("pos_embed", rows, resized=resized))


def _narrow_proj(name: str, source: Source, operator: AttentionOperator) -> bool:
    """Whether the source's projection of that block lacks exactly the operator's further columns (TTT)."""
    weight = source.state.get(name.rsplit(".", 1)[0] + ".weight")
    return weight is not None and tuple(weight.shape) == (operator.dim, operator.dim)
