"""Record what passes through a model's attention modules, by hooks, without changing any forward."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from lvit_dense.operators import AttentionInputs


@contextmanager
def record_outputs(modules: Sequence[nn.Module]) -> Iterator[list[Tensor | None]]:
    """While open, keep each module's last output (the very tensor, no copy) at its place in the yielded list.

    The hooks go when the context closes, so what activation checkpointing recomputes in the backward pass is not
    recorded a second time.
    """
    outputs: list[Tensor | None] = [None] * len(modules)

    def hook(place: int) -> Any:
        def keep(module: nn.Module, args: tuple[Any, ...], output: Tensor) -> None:
            outputs[place] = output

        return keep

    handles = [module.register_forward_hook(hook(i)) for i, module in enumerate(modules)]
    try:
        yield outputs
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def record_inputs(modules: Sequence[nn.Module]) -> Iterator[list[Any]]:
    """While open, keep the first positional input of each module's last call, such as an operator's AttentionInputs."""
    inputs: list[AttentionInputs | Tensor | None] = [None] * len(modules)

    def hook(place: int) -> Any:
        def keep(module: nn.Module, args: tuple[Any, ...]) -> None:
            inputs[place] = args[0]

        return keep

    handles = [module.register_forward_pre_hook(hook(i)) for i, module in enumerate(modules)]
    try:
        yield inputs
    finally:
        for handle in handles:
            handle.remove()
