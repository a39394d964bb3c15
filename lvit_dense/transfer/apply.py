"""Carry a plan out: resolve completely, refuse with one error, or write everything and report it."""

import inspect
from collections.abc import Mapping
from typing import Any

import torch

from lvit_dense.transfer.canonical import Source
from lvit_dense.transfer.loading import tensors_sha256
from lvit_dense.transfer.plan import PLANS, Resolution, TransferError, TransferPlan
from lvit_dense.transfer.report import TransferReport, make_report
from lvit_dense.vit import ViT


def transfer(plan: str | Mapping[str, Any], source: Source | None, model: ViT) -> TransferReport:
    """Initialise ``model`` by ``plan`` from ``source``.

    Args:
        plan: a name, or ``dict(type="copy", copy_norms=True)``.
        source: see :func:`read_source`; None for plans that need none.
        model: changed in place; parameters that the plan does not name keep their values.

    Raises:
        TransferError: the plan cannot be carried out completely; the model is unchanged.
        KeyError, TypeError: unknown plan or switch.
    """
    name, options, resolution = resolve(plan, source, model)
    if resolution.problems:
        listed = "".join(f"\n  - {problem}" for problem in resolution.problems)
        where = source.spec if source else "no source"
        count = len(resolution.problems)
        raise TransferError(
            f"cannot {name} from {where} ({source.family if source else 'none'}): {count} problem"
            f"{'s' if count > 1 else ''}; nothing was written{listed}"
        )
    state = model.state_dict()
    with torch.no_grad():
        for assignment in resolution.assignments:
            state[assignment.name][assignment.part].copy_(assignment.value)
    checksum = tensors_sha256({a.name: a.value for a in resolution.assignments})
    return make_report(name, options, source, resolution, list(state), checksum)


def resolve(plan: str | Mapping[str, Any], source: Source | None, model: ViT) -> tuple[str, dict[str, Any], Resolution]:
    """Name and switches of a plan, and what it would do, without writing."""
    built: TransferPlan = PLANS.build(plan)
    name = plan if isinstance(plan, str) else plan["type"]
    given = {} if isinstance(plan, str) else {key: value for key, value in plan.items() if key != "type"}
    defaults = {
        key: p.default
        for key, p in inspect.signature(type(built).__init__).parameters.items()
        if p.default is not p.empty
    }
    if source is None and built.needs_source:
        raise TransferError(f"the plan {name!r} needs a source: a checkpoint path or timm:NAME")
    return name, {**defaults, **given}, built.resolve(source, model)
