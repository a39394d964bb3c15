"""Find the attention call that first receives a non-finite number.

A check in every forward would make the GPU wait for the CPU, so none is made there. When a loss or an output turned out
non-finite, run the same batch once more inside :func:`checked`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from lvit_dense.operators.base import AttentionInputs, AttentionOperator


@contextmanager
def checked(model: nn.Module) -> Iterator[None]:
    """While active, every attention operator inside ``model`` checks its q, k and v and its result.

    Raises:
        FloatingPointError: from the forward; names the operator's place in ``model``, which tensor, how many of its
            values are not finite, the first such value with its index, and the largest finite magnitude.
    """
    handles = []
    for name, module in model.named_modules():
        # An operator inside another one gets what that one computes, and is checked through it.
        if isinstance(module, AttentionOperator) and not _inside_operator(model, name):
            handles.append(module.register_forward_pre_hook(_check_inputs(name)))
            handles.append(module.register_forward_hook(_check_output(name)))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def check_finite(where: str, tensor: Tensor) -> None:
    """Raise FloatingPointError if ``tensor`` holds NaN or infinity; ``where`` begins the message."""
    bad = ~tensor.isfinite()
    if not bad.any():
        return
    index = tuple(bad.nonzero()[0].tolist())
    finite = tensor[~bad]
    largest = f"{finite.abs().max().item():.4g}" if finite.numel() else "none"
    raise FloatingPointError(
        f"{where} has {int(bad.sum())} of {tensor.numel()} values not finite, the first {tensor[index].item()} at "
        f"index {index} of {tuple(tensor.shape)} ({tensor.dtype}); largest finite magnitude {largest}"
    )


def _inside_operator(model: nn.Module, name: str) -> bool:
    parts = name.split(".")
    return any(isinstance(model.get_submodule(".".join(parts[:i])), AttentionOperator) for i in range(1, len(parts)))


def _check_inputs(name: str) -> Any:
    def hook(module: AttentionOperator, args: tuple[AttentionInputs]) -> None:
        for field in ("q", "k", "v"):
            check_finite(
                f"{field} given to {name or 'the operator'} ({type(module).__name__})", getattr(args[0], field)
            )

    return hook


def _check_output(name: str) -> Any:
    def hook(module: AttentionOperator, args: tuple[AttentionInputs], output: Tensor) -> None:
        check_finite(f"output of {name or 'the operator'} ({type(module).__name__})", output)

    return hook
