"""The strict resolution behind every plan that copies groups of weights."""

from collections.abc import Collection, Mapping

import torch
from torch import Tensor

from lvit_dense.transfer.canonical import GROUPS, Source, group_of
from lvit_dense.transfer.fitting import absent_by_fact, fit
from lvit_dense.transfer.plan import Resolution
from lvit_dense.vit import ViT

_DROPPED = {
    "head": "heads are always fresh",
    "class_token": "the student has no class token",
    "positions": "the student stores no positions (fixed sin-cos, or none)",
    "registers": "the student has no registers",
    "pre_norm": "the student has no pre-norm",
    "final_norm": "the student has no final norm",
    "operator": "the student's operator has no such parameter",
}


def resolve_copy(source: Source, model: ViT, groups: Collection[str], complete: bool = False) -> Resolution:
    """Resolve copying ``groups`` from ``source`` to ``model``; all else stays at its default initialisation.

    Args:
        complete: every tensor of the student must come from the source, operator's own parameters included.
    """
    student: dict[str, Tensor] = model.state_dict()
    result = Resolution(problems=_fact_problems(source, model, groups, complete))
    for group in GROUPS:
        names = [name for name in student if group_of(name) == group]
        if group not in groups:
            result.random.update(dict.fromkeys(names, "not part of this plan"))
            continue
        _resolve_group(group, names, student, source, model, complete, result)
    _drop(source, student, groups, complete, result)
    bad = [a.name for a in result.assignments if not torch.isfinite(a.value).all()]
    if bad:
        result.problems.append(f"NaN or Inf in {len(bad)} of {len(result.assignments)} source tensors, first {bad[0]}")
    return result


def fold_layer_scale(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Multiply ls1 into attn.proj and ls2 into mlp.fc2: the same function, without LayerScale.

    Exact at initialisation only: the folded weights are tiny, and the steps of Adam are not.
    """
    folded = dict(state)
    for name, gamma in state.items():
        for scale, linear in ((".ls1.gamma", ".attn.proj"), (".ls2.gamma", ".mlp.fc2")):
            if name.endswith(scale):
                base = name.removesuffix(scale) + linear
                for part in (".weight", ".bias"):
                    if base + part in folded:
                        value = folded[base + part]
                        folded[base + part] = value * gamma.reshape(-1, *[1] * (value.ndim - 1))
                del folded[name]
    return folded


def _fact_problems(source: Source, model: ViT, groups: Collection[str], complete: bool) -> list[str]:
    """Mismatches of the two architectures as such."""
    f, arch = source.facts, model.arch
    problems = []
    if f.embed_dim != arch.embed_dim:
        problems.append(f"width: embed_dim is {f.embed_dim} in the source, {arch.embed_dim} in the student")
    if f.depth != arch.depth:
        problems.append(f"depth: {f.depth} blocks in the source, {arch.depth} in the student")
    if "qkv" in groups and not f.heads_assumed and f.num_heads != arch.num_heads:
        problems.append(f"heads: num_heads is {f.num_heads} in the source, {arch.num_heads} in the student")
    operator = model.facts["operator"]
    if complete and _plain(f.operator) != _plain(operator):
        problems.append(f"operator: {f.operator!r} in the source, {operator!r} in the student")
    return problems


def _resolve_group(
    group: str,
    names: list[str],
    student: Mapping[str, Tensor],
    source: Source,
    model: ViT,
    complete: bool,
    result: Resolution,
) -> None:
    missing, misfits = [], []
    if group in ("ls1", "ls2") and names and not source.facts.layer_scale:
        _keep_layer_scale(group, names, student, result)
        return
    for name in names:
        if name not in source.state:
            reason = None if complete else absent_by_fact(name, source.facts)
            if group == "operator" and not complete:
                reason = "the operator's own parameter, which the source has not"
            if reason:
                result.random[name] = reason
            else:
                missing.append(name)
            continue
        outcome = fit(name, source.state[name], student[name], source, model)
        if outcome.problem and group == "operator" and not complete:
            result.random[name] = f"the operator's own parameter, of another shape: {outcome.problem}"
        elif outcome.problem or (complete and outcome.random):
            misfits.append(outcome.problem or f"{name}: {outcome.random}")
        elif outcome.assignment:
            result.assignments.append(outcome.assignment)
        if outcome.random and not complete:
            result.random[name] = outcome.random
    if missing:
        result.problems.append(
            f"{group}: {len(missing)} of {len(names)} tensors missing in the source, first {missing[0]}"
        )
    if misfits:
        result.problems.append(f"{group}: {len(misfits)} of {len(names)} tensors do not fit, first {misfits[0]}")


def _keep_layer_scale(group: str, names: list[str], student: Mapping[str, Tensor], result: Resolution) -> None:
    """A student's LayerScale over copied weights that had none must start from one."""
    off = [name for name in names if not (student[name] == 1).all()]
    if off:
        result.problems.append(
            f"{group}: the source has no LayerScale and the student's starts from {student[off[0]].mean():.3g}, which "
            f"would scale {len(off)} copied branches down: give the student init_values=1.0 or none"
        )
    result.random.update(dict.fromkeys(names, "the source has no LayerScale; the student's starts from 1"))


def _drop(
    source: Source, student: Mapping[str, Tensor], groups: Collection[str], complete: bool, result: Resolution
) -> None:
    """Account for source tensors that no student tensor takes."""
    left: dict[str, list[str]] = {}
    for name in source.state:
        group = group_of(name) or "unknown"
        if name not in student and (group in groups or group == "head"):
            left.setdefault(group, []).append(name)
    for group, names in left.items():
        if group in ("ls1", "ls2"):
            result.problems.append(
                f"{group}: the source has LayerScale ({len(names)} tensors) but the student has not: give the student "
                f"init_values (such as init_values=1.0), or the plan fold_layer_scale=True"
            )
        elif complete and group not in ("head", "class_token", "final_norm"):
            result.problems.append(
                f"{group}: {len(names)} source tensors have no place in the student, first {names[0]}"
            )
        else:
            reason = _DROPPED.get(group, "the student has no such parameter")
            result.dropped.update(dict.fromkeys(names, reason))
    facts = source.facts
    takes_positions = any(a.name == "pos_embed" for a in result.assignments)
    if takes_positions and facts.class_token and "cls_token" not in student:
        result.dropped["pos_embed[:, :1]"] = "the class token's position row: the student has no class token"


def _plain(spec: object) -> object:
    """Operator specifications in one form, so that ``"relu"`` equals ``dict(type="relu")`` and JSON's lists tuples."""
    if isinstance(spec, str):
        return {"type": spec}
    if isinstance(spec, Mapping):
        return {key: _listed(value) for key, value in spec.items()}
    assert isinstance(spec, (list, tuple))
    plain = [_plain(entry) for entry in spec]
    return plain[0] if all(entry == plain[0] for entry in plain) else plain


def _listed(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
