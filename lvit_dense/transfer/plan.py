"""What a plan is: which tensors of a student get which values, decided completely before one is written."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from torch import Tensor

from lvit_dense.catalog import Catalog
from lvit_dense.transfer.canonical import Source
from lvit_dense.vit import ViT

PLANS: Catalog[type["TransferPlan"]] = Catalog("transfer plan", "lvit_dense.transfer.plans")


class TransferError(ValueError):
    """A plan that cannot be carried out; the message lists every problem with counts. Nothing was written."""


class Assignment(NamedTuple):
    """One tensor of the student, or the part of it that ``part`` selects, and the value it will get."""

    name: str
    value: Tensor
    part: slice | tuple[slice, ...] = slice(None)
    resized: str | None = None  # such as "37x37->14x14"
    computed: bool = False  # by an analytic initialisation, not copied


@dataclass
class Resolution:
    """A plan applied to one source and one student, still on paper.

    Attributes:
        random: student names (or parts of them) that keep their default initialisation, with the reason.
        dropped: source names that are left out, with the reason.
        problems: why the plan cannot be carried out; empty if it can.
    """

    assignments: list[Assignment] = field(default_factory=list)
    random: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


class TransferPlan:
    """Base of the plans. Subclasses take their switches as keyword arguments and register under a name.

    Attributes:
        needs_source: whether ``source=None`` is an error.
        groups: the groups of weights that the plan writes, where source and student have them.
    """

    needs_source: bool = True
    groups: Collection[str] = ()

    def resolve(self, source: Source | None, model: ViT) -> Resolution:
        """Decide every assignment without writing anything.

        Args:
            source: never None where ``needs_source``.
            model: the student, with its default initialisation.
        """
        raise NotImplementedError
