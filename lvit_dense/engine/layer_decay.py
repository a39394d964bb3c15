"""Optimiser groups: one rule for what decays, and layer-wise learning rates that the backbone places."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mmengine.logging import MMLogger
from mmengine.model import is_model_wrapper
from mmengine.optim import OptimWrapper
from mmengine.registry import OPTIM_WRAPPER_CONSTRUCTORS, OPTIM_WRAPPERS, OPTIMIZERS
from torch import nn

from lvit_dense.catalog import check_arguments

TOKENS = ("pos_embed", "cls_token", "reg_token")
LayerDepth = Callable[[str, str], tuple[int, int]]


class Placement(NamedTuple):
    """How the optimiser treats one parameter."""

    name: str
    parameter: nn.Parameter
    layer: int | None  # None where there is no layer-wise decay
    lr_scale: float
    decays: bool


def place_parameters(model: nn.Module, layer_decay_rate: float = 1.0, decay_pos_embed: bool = False) -> list[Placement]:
    """Place every trainable parameter; the same for a bare and for a wrapped (DDP) model.

    Weight decay spares biases, everything of one dimension (norms, scales), and position, class and register tokens.

    Args:
        layer_decay_rate: a parameter of layer i of L has lr_scale = rate ** (L - 1 - i); the layers are asked of the
            only submodule with ``get_layer_depth(name, prefix)`` (embedding 0, block i -> i + 1, the rest last).
        decay_pos_embed: decay the position table, as the released UperNet code does because its rule misses the name.

    Raises:
        ValueError: a rate outside (0, 1], or a rate other than 1 and no submodule, or several, that know their layers.
        KeyError: a parameter that the backbone cannot place.
    """
    if not 0 < layer_decay_rate <= 1:
        raise ValueError(f"layer_decay_rate must be in (0, 1], 1 = no layer-wise decay; got {layer_decay_rate}")
    bare: nn.Module = model.module if is_model_wrapper(model) else model  # type: ignore[assignment]
    depth = None if layer_decay_rate == 1.0 else _layer_depth(bare)
    placements = []
    for name, parameter in bare.named_parameters():
        if not parameter.requires_grad:
            continue
        last = name.rpartition(".")[2]
        spared = parameter.ndim <= 1 or last == "bias" or last in TOKENS
        if last == "pos_embed" and decay_pos_embed:
            spared = False
        layer, scale = None, 1.0
        if depth is not None:
            layer, layers = depth(name)
            scale = layer_decay_rate ** (layers - 1 - layer)
        placements.append(Placement(name, parameter, layer, scale, not spared))
    return placements


def placement_table(placements: list[Placement], lr: float, weight_decay: float) -> str:
    """Text table of name, shape, layer, learning rate and weight decay, one line per parameter."""
    width = max(len(p.name) for p in placements)
    lines = [f"{'parameter':{width}}  {'shape':>20}  layer  lr scale  {'lr':>9}  decay"]
    for p in placements:
        shape = "x".join(map(str, p.parameter.shape)) or "scalar"
        layer = "-" if p.layer is None else p.layer
        decay = weight_decay if p.decays else 0.0
        lines.append(f"{p.name:{width}}  {shape:>20}  {layer:>5}  {p.lr_scale:8.4f}  {lr * p.lr_scale:9.3g}  {decay:g}")
    return "\n".join(lines)


@OPTIM_WRAPPER_CONSTRUCTORS.register_module()
class LayerDecayOptimWrapperConstructor:
    """Builds the optimiser from :func:`place_parameters`; groups of equal treatment are merged.

    Args:
        optim_wrapper_cfg: ``dict(type=..., optimizer=dict(type=..., lr=..., weight_decay=...), ...)``; lr and
            weight_decay are required because the groups are made from them.
        paramwise_cfg: the switches of :func:`place_parameters`.
    """

    def __init__(self, optim_wrapper_cfg: Mapping[str, Any], paramwise_cfg: Mapping[str, Any] | None = None) -> None:
        self.wrapper = dict(optim_wrapper_cfg)
        self.optimizer = dict(self.wrapper.pop("optimizer"))
        missing = {"lr", "weight_decay"} - set(self.optimizer)
        if missing:
            raise KeyError(f"optim_wrapper.optimizer needs {', '.join(sorted(missing))}, got {self.optimizer}")
        self.switches = dict(paramwise_cfg or {})
        check_arguments("paramwise_cfg", place_parameters, self.switches)

    def __call__(self, model: nn.Module) -> OptimWrapper:
        """Return the optimiser wrapper for ``model``."""
        placements = place_parameters(model, **self.switches)
        lr, weight_decay = self.optimizer["lr"], self.optimizer["weight_decay"]
        groups: dict[tuple[float, bool], dict[str, Any]] = {}
        for p in placements:
            new = dict(
                params=[],
                lr=lr * p.lr_scale,
                lr_scale=p.lr_scale,
                weight_decay=weight_decay if p.decays else 0.0,
            )
            group = groups.setdefault((p.lr_scale, p.decays), new)
            group["params"].append((p.name, p.parameter))  # torch keeps the names as group["param_names"]
        MMLogger.get_current_instance().info(_summary(list(groups.values())))
        optimizer = OPTIMIZERS.build({**self.optimizer, "params": list(groups.values())})
        return OPTIM_WRAPPERS.build({"type": "OptimWrapper", **self.wrapper, "optimizer": optimizer})


def _layer_depth(model: nn.Module) -> Callable[[str], tuple[int, int]]:
    """The rule of the only submodule that knows its layers, bound to its place in the model."""
    owners = {name: module for name, module in model.named_modules() if hasattr(module, "get_layer_depth")}
    if len(owners) != 1:
        raise ValueError(
            "layer_decay_rate below 1 needs exactly one submodule with get_layer_depth (a LinearViT backbone), "
            f"{type(model).__name__} has {sorted(owners) or 'none'}"
        )
    ((owner, module),) = owners.items()
    rule: LayerDepth = module.get_layer_depth
    return lambda name: rule(name, f"{owner}." if owner else "")


def _summary(groups: list[dict[str, Any]]) -> str:
    lines = [f"optimiser: {len(groups)} parameter groups"]
    for group in sorted(groups, key=lambda g: (g["lr_scale"], g["weight_decay"])):
        elements = sum(parameter.numel() for _, parameter in group["params"])
        lines.append(
            f"  lr scale {group['lr_scale']:.4f} (lr {group['lr']:.3g}), weight decay {group['weight_decay']:g}: "
            f"{len(group['params'])} tensors, {elements:,} parameters"
        )
    return "\n".join(lines)
