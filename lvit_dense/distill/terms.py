"""How one block's student attention is compared with the teacher's.

``output_*`` terms take attention-module outputs (B, N, C) after the output projection, before LayerScale, drop path
and residual; ``map_*`` terms take attention maps (B, heads, N, N). All are computed in float32 and return a scalar.
The paper's loss is ``output_mse`` (Section 5.1); map terms are its Figure 5's comparison.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor

from lvit_dense.catalog import Catalog

Compare = Callable[[Tensor, Tensor], Tensor]
SMALLEST = 1e-8  # keeps the logarithm of a student's zero (or, for InLine, negative) map entry finite


class Term(NamedTuple):
    """A comparison (student, teacher) -> scalar and whether it looks at attention maps or at outputs."""

    compare: Compare
    on_maps: bool


TERMS: Catalog[Term] = Catalog("distillation term", "lvit_dense.distill")


def _register(name: str, on_maps: bool) -> Callable[[Compare], Compare]:
    def add(compare: Compare) -> Compare:
        TERMS.register(name)(Term(compare, on_maps))
        return compare

    return add


@_register("output_mse", on_maps=False)
def output_mse(student: Tensor, teacher: Tensor) -> Tensor:
    """Mean squared error over images, tokens and channels (the paper's L_distill)."""
    return F.mse_loss(student, teacher)


@_register("output_nmse", on_maps=False)
def output_nmse(student: Tensor, teacher: Tensor) -> Tensor:
    """Squared error of each token divided by the teacher token's squared norm, averaged over tokens."""
    error = (student - teacher).square().sum(-1)
    return (error / teacher.square().sum(-1).clamp_min(SMALLEST)).mean()


@_register("output_cosine", on_maps=False)
def output_cosine(student: Tensor, teacher: Tensor) -> Tensor:
    """One minus the cosine similarity of each token, averaged over tokens."""
    return (1 - F.cosine_similarity(student, teacher, dim=-1)).mean()


@_register("output_smooth_l1", on_maps=False)
def output_smooth_l1(student: Tensor, teacher: Tensor) -> Tensor:
    """Huber loss with threshold 1, averaged over images, tokens and channels."""
    return F.smooth_l1_loss(student, teacher)


@_register("map_mse", on_maps=True)
def map_mse(student: Tensor, teacher: Tensor) -> Tensor:
    """Mean squared error over all map entries; of the order 1/N^2, hence lambda 3e3..3e5."""
    return F.mse_loss(student, teacher)


@_register("map_kl", on_maps=True)
def map_kl(student: Tensor, teacher: Tensor) -> Tensor:
    """KL(teacher row || student row), averaged over images, heads and queries."""
    logarithms = teacher.clamp_min(SMALLEST).log() - student.clamp_min(SMALLEST).log()
    return (teacher * logarithms).sum(-1).mean()


@_register("map_ce", on_maps=True)
def map_ce(student: Tensor, teacher: Tensor) -> Tensor:
    """Cross-entropy of rows (Li et al., 2024), averaged over images, heads and queries.

    Their setting is ``block_reduction='sum'``, ``weight=3.0`` and all blocks but the last three.
    """
    return -(teacher * student.clamp_min(SMALLEST).log()).sum(-1).mean()
