"""What initialisations of attention from formulas share: composites, their factors, the assignments."""

from collections.abc import Iterator

import torch
from torch import Tensor

from lvit_dense.transfer.plan import Assignment, Resolution
from lvit_dense.vit import ViT


def noisy_identity(dim: int, noise: float, identity: float) -> Tensor:
    """noise Z + identity I, (dim, dim), Z normal of variance 1/dim."""
    return noise * torch.randn(dim, dim) / dim**0.5 + identity * torch.eye(dim)


def factor(composite: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """(C, rank) and (rank, C) whose product is the best rank-``rank`` approximation of ``composite`` (C, C)."""
    u, s, v = torch.linalg.svd(composite)
    root = s[:rank].sqrt()
    return u[:, :rank] * root, root[:, None] * v[:rank]


def value_and_proj(
    dim: int, noise: float = 0.4, identity: float = -0.4, swapped: bool = False
) -> tuple[Tensor, Tensor]:
    """Weights (C, C) of v and proj with W_V W_O = noise Z + identity I, W = weight^T (x W is the linear layer).

    Args:
        swapped: put the two factors in the other order, so that the composite is only about the same.
    """
    left, right = factor(noisy_identity(dim, noise, identity), dim)
    return (left, right) if swapped else (left.T, right.T)


def random_start(model: ViT, computed: set[str], plan: str) -> Resolution:
    """A resolution in which nothing but ``computed`` names changes; with the operators that the plan cannot start."""
    problems = []
    unfit = [i for i, block in enumerate(model.blocks) if not block.attn.operator.similarity]  # type: ignore[union-attr]
    if unfit:
        problems.append(
            f"the plan {plan!r} is undefined for the operator of {len(unfit)} of {len(model.blocks)} blocks, first "
            f"block {unfit[0]} ({model.facts['operator']!r}): it does not weigh values by q.k products"
        )
    rest = [name for name in model.state_dict() if name not in computed]
    return Resolution(random=dict.fromkeys(rest, "not part of this plan"), problems=problems)


def attention_names(model: ViT) -> set[str]:
    """Names of all attention projections of the student."""
    return {name for name in model.state_dict() if ".attn.qkv." in name or ".attn.proj." in name}


def assign_attention(model: ViT, index: int, q: Tensor, k: Tensor, v: Tensor, proj: Tensor) -> Iterator[Assignment]:
    """Assignments of one block: weights (C, C) of q, k, v and proj, biases zero."""
    attention, start = model.blocks[index].attn, f"blocks.{index}.attn."
    yield Assignment(start + "qkv.weight", torch.cat([q, k, v]).float(), computed=True)
    yield Assignment(start + "proj.weight", proj.float(), computed=True)
    for part in ("qkv", "proj"):
        bias = getattr(attention, part).bias
        if bias is not None:
            yield Assignment(f"{start}{part}.bias", torch.zeros_like(bias), computed=True)
