"""What every attention operator receives, returns and declares."""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from lvit_dense.catalog import Catalog

OPERATORS: Catalog[type["AttentionOperator"]] = Catalog("attention operator", "lvit_dense.operators")


class Grid(NamedTuple):
    """Height and width of the patch-token map, in tokens (never pixels)."""

    height: int
    width: int

    @property
    def tokens(self) -> int:
        """Number of patch tokens."""
        return self.height * self.width


class TokenLayout(NamedTuple):
    """The paper's choice of tokens around an operator: class token, and 'learned', 'sincos' or 'none' for positions."""

    class_token: bool
    pos_embed: str


class AttentionInputs(NamedTuple):
    """Inputs of one attention call. B images, N = prefix + grid.height * grid.width tokens, head_dim = C / heads."""

    q: Tensor  # (B, heads, N, head_dim), unscaled
    k: Tensor  # (B, heads, N, head_dim)
    v: Tensor  # (B, heads, N, head_dim)
    x: Tensor  # (B, N, C) normalised tokens that q, k and v were projected from
    grid: Grid
    prefix: int  # tokens before the patch tokens (class token, registers)
    mask: Tensor | None = None  # (B, N) bool, True = a real key; None = all are
    extra: Tensor | None = None  # (B, N, operator.extra_inputs), further rows of the qkv projection


class AttentionOperator(nn.Module):
    """The part of attention in which linear ViTs differ; it owns only ``attn.operator.*`` parameters.

    Subclasses take ``(dim, num_heads)`` and their switches, and register under the name that configs use.

    Attributes:
        tokens: the token layout that the paper gives models with this operator.
        similarity: whether q.k products weigh the values, so that initialisations of W_Q W_K^T have a meaning.
        extra_inputs: further output rows that the operator wants from the qkv projection.
        extra_outputs: further input columns that it adds to the output projection (see :meth:`extra`).
    """

    tokens: ClassVar[TokenLayout] = TokenLayout(class_token=True, pos_embed="learned")
    similarity: ClassVar[bool] = True
    extra_inputs: int = 0
    extra_outputs: int = 0

    def __init__(self, dim: int, num_heads: int) -> None:
        super().__init__()
        if num_heads < 1 or dim % num_heads:
            raise ValueError(f"the width must be a multiple of the number of heads, got {dim} and {num_heads}")
        self.dim = dim
        self.num_heads = num_heads
        self.head_dim = dim // num_heads

    def forward(self, inputs: AttentionInputs) -> Tensor:
        """Return the attention output per head, (B, heads, N, head_dim), in the dtype of ``inputs.v``."""
        raise NotImplementedError

    def extra(self, inputs: AttentionInputs) -> Tensor | None:
        """Return (B, N, extra_outputs) to be concatenated before the output projection, or None."""
        return None

    def position(self, x: Tensor, grid: Grid, prefix: int, mask: Tensor | None = None) -> Tensor | None:
        """Return what is added to the residual stream ``x`` (B, N, C) before norm1, or None.

        For operators whose model has a conditional position encoding instead of a position embedding.
        """
        return None

    def attention_matrix(self, inputs: AttentionInputs) -> Tensor | None:
        """Return the explicit map A, (B, heads, N, N), with forward(inputs) == A @ v; None where no such map exists.

        Costs O(N^2): for tests, map losses and pictures only.
        """
        return None

    def macs(self, grid: Grid, prefix: int) -> int:
        """Multiply-accumulates of one call on one image, without the qkv and output projections.

        Counts matrix products and convolutions, as ``torch.utils.flop_counter`` does; element-wise work is left out.
        """
        raise NotImplementedError


def check_tokens(count: int, grid: Grid, prefix: int) -> None:
    """Raise ValueError unless ``count`` tokens are ``prefix`` prefix tokens and a non-empty grid."""
    if min(grid) < 1:
        raise ValueError(f"empty token grid {grid[0]}x{grid[1]}: both sides must be at least 1")
    if count != prefix + grid[0] * grid[1]:
        raise ValueError(
            f"{count} tokens do not make {prefix} prefix tokens and a {grid[0]}x{grid[1]} grid "
            f"({prefix + grid[0] * grid[1]} tokens)"
        )


def at_least_fp32(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Promote half-precision tensors to float32 and leave the others as they are."""
    return tuple(t.float() if t.dtype in (torch.float16, torch.bfloat16) else t for t in tensors)


def recomputed(function: Callable[..., Tensor], *arguments: Any) -> Tensor:
    """Call ``function`` and keep only its arguments for the backward pass, which calls it again.

    For kernels whose intermediate results would take more memory than the rest of the block, and are quick to make.
    Under torch.compile the compiler decides what is kept.
    """
    if not torch.is_grad_enabled() or torch.compiler.is_compiling():
        return function(*arguments)
    return checkpoint(function, *arguments, use_reentrant=False, preserve_rng_state=False)


def no_autocast(tensor: Tensor) -> torch.autocast:
    """Context in which autocast does not lower the precision of operations on ``tensor``'s device.

    The linear operators run in it, in float32, up to the cast of their result. Each of their products sums over all
    tokens, K^T V in the forward and Q^T G of the gradient in the backward pass: in fp16 these sums leave the range from
    about 1000 tokens, in bf16 the key gradient, a difference of two such sums, keeps few digits. What is an ordinary
    layer (projections, convolutions) stays in the input dtype, in the operators too.
    """
    return torch.autocast(tensor.device.type, enabled=False)
