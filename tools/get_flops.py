#!/usr/bin/env python
"""Multiply-accumulates (MACs) and parameters of a config's model, part by part, for one picture.

  python tools/get_flops.py configs/maskrcnn_relu_base.py --shape 800 1333
  python tools/get_flops.py configs/upernet_softmax_base.py --shape 512 512
  python tools/get_flops.py configs/imagenet_ttt_small.py --shape 224 224
  python tools/get_flops.py configs/maskrcnn_relu_base.py --shape 800 1333 --cfg-options model.backbone.operator=softmax

Exact and without running anything: the shape is padded as the config's preprocessor pads it, the ViT is counted from
its layers with the attention products that each operator states, the rest by torch's counter on tensors without data.
Papers often call these numbers FLOPs; counted as such they are twice as many. RoI heads depend on how many boxes they
get: --proposals for the box head, --instances for the mask head (the test settings' maxima by default). RoIAlign, NMS,
normalisation and activations are not matrix products and not counted. Auxiliary heads run in training only and are
shown outside the total.
"""

import argparse
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from mmengine.config import Config, DictAction


class Part(NamedTuple):
    """One line of the table."""

    name: str
    macs: int
    parameters: int
    counted: bool = True  # in the total


def parse_args() -> argparse.Namespace:
    """Flags."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", help="any config of configs/")
    parser.add_argument("--shape", type=int, nargs=2, required=True, metavar=("HEIGHT", "WIDTH"), help="in pixels")
    parser.add_argument("--proposals", type=int, default=1000, help="boxes that reach the box head")
    parser.add_argument("--instances", type=int, default=100, help="boxes that reach the mask head")
    parser.add_argument("--cfg-options", nargs="+", action=DictAction, metavar="KEY=VALUE")
    args = parser.parse_args()
    if min(args.shape) < 1:
        parser.error(f"--shape needs two sides of at least one pixel, got {args.shape[0]} {args.shape[1]}")
    return args


def count(cfg: Config, shape: tuple[int, int], proposals: int = 1000, instances: int = 100) -> list[Part]:
    """MACs and parameters of the parts of ``cfg.model`` for a picture of ``shape`` pixels."""
    import torch
    from mmengine.registry import MODELS, init_default_scope

    import lvit_dense.models  # noqa: F401

    init_default_scope(cfg.default_scope)
    cfg = cfg.copy()
    drop_sources(cfg.model)
    divisor = (cfg.model.get("data_preprocessor") or {}).get("pad_size_divisor", 1)
    height, width = (math.ceil(side / divisor) * divisor for side in shape)
    with torch.device("meta"):
        model = MODELS.build(cfg.model).eval()
        if hasattr(model, "decode_head"):
            return segmentor_parts(model, height, width)
        if hasattr(model, "roi_head"):
            return detector_parts(model, height, width, proposals, instances)
        return classifier_parts(model, height, width)


def drop_sources(model: dict[str, Any]) -> None:
    """Counting needs no weights: forget where they would come from."""
    for holder in (model, model.get("backbone", {})):
        for key in ("transfer", "distill", "init_cfg"):
            if key in holder:
                holder[key] = None


def vit_parts(vit: Any, height: int, width: int) -> tuple[list[Part], Any]:
    """The ViT by kind of work, and the token grid."""
    from lvit_dense.operators import Grid
    from lvit_dense.vit.macs import vit_macs

    grid = Grid(-(-height // vit.patch_size), -(-width // vit.patch_size))
    attention = sum(p.numel() for block in vit.blocks for p in block.attn.operator.parameters())
    projections = sum(p.numel() for block in vit.blocks for p in block.attn.parameters()) - attention
    mlp = sum(p.numel() for block in vit.blocks for p in block.mlp.parameters())
    parameters = dict(projections=projections, attention=attention, mlp=mlp)
    parameters["embedding"] = sum(p.numel() for p in vit.parameters()) - sum(parameters.values())
    labels = {
        "embedding": "ViT embedding, norms",
        "projections": "ViT qkv, proj",
        "attention": f"ViT attention ({vit.blocks[0].attn.operator.__class__.__name__})",
        "mlp": "ViT mlp",
    }
    return [Part(labels[k], macs, parameters[k]) for k, macs in vit_macs(vit, grid).items()], grid


def classifier_parts(model: Any, height: int, width: int) -> list[Part]:
    """ViT and its linear head."""
    parts, _ = vit_parts(model.vit, height, width)
    return [*parts, Part("head", model.head.weight.numel(), parameters_of(model.head))]


def dense_parts(model: Any, height: int, width: int) -> tuple[list[Part], Any]:
    """ViT and pyramid, and the pyramid's maps."""
    import torch

    parts, grid = vit_parts(model.backbone.vit, height, width)
    pyramid = model.backbone.pyramid
    tokens = [torch.empty(1, grid.tokens, model.backbone.vit.embed_dim) for _ in model.backbone.out_indices]
    macs, maps = torch_macs(lambda: pyramid(tokens, grid))
    return [*parts, Part("pyramid", macs, parameters_of(pyramid))], maps


def segmentor_parts(model: Any, height: int, width: int) -> list[Part]:
    """Backbone, decode head, auxiliary heads."""
    from torch import nn

    parts, maps = dense_parts(model, height, width)
    if getattr(model, "neck", None) is not None:
        macs, maps = torch_macs(lambda: model.neck(maps))
        parts.append(Part("neck", macs, parameters_of(model.neck)))
    macs, _ = torch_macs(lambda: model.decode_head(maps))
    parts.append(Part("decode head", macs, parameters_of(model.decode_head)))
    heads = getattr(model, "auxiliary_head", None) or []
    for head in heads if isinstance(heads, nn.ModuleList) else [heads] if heads else []:
        macs, _ = torch_macs(lambda head=head: head(maps))
        parts.append(Part("auxiliary head (training only)", macs, parameters_of(head), counted=False))
    return parts


def detector_parts(model: Any, height: int, width: int, proposals: int, instances: int) -> list[Part]:
    """Backbone, neck, RPN, and the RoI heads for so many boxes."""
    import torch

    parts, maps = dense_parts(model, height, width)
    macs, maps = torch_macs(lambda: model.neck(maps))
    parts.append(Part("neck", macs, parameters_of(model.neck)))
    macs, _ = torch_macs(lambda: model.rpn_head(maps))
    parts.append(Part("RPN head", macs, parameters_of(model.rpn_head)))
    channels = maps[0].shape[1]
    for name, boxes in (("bbox", proposals), ("mask", instances)):
        head = getattr(model.roi_head, f"{name}_head", None)
        if head is None:
            continue
        size = getattr(model.roi_head, f"{name}_roi_extractor").roi_layers[0].output_size
        regions = torch.empty(boxes, channels, *size)
        macs, _ = torch_macs(lambda head=head, regions=regions: head(regions))
        parts.append(Part(f"{name} head, {boxes} boxes", macs, parameters_of(head)))
    return parts


def torch_macs(function: Callable[[], Any]) -> tuple[int, Any]:
    """MACs that torch counts in ``function``, and its result."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter, torch.no_grad():
        result = function()
    return counter.get_total_flops() // 2, result


def parameters_of(module: Any) -> int:
    """Number of parameters."""
    return sum(p.numel() for p in module.parameters())


def table(parts: list[Part]) -> str:
    """The parts and their sum, as text."""
    total = Part("total", *(sum(column) for column in zip(*((p.macs, p.parameters) for p in parts if p.counted))))
    width = max(len(part.name) for part in parts)
    lines = [f"{'part':{width}}  {'GMACs':>10}  {'M params':>9}"]
    for part in (*[p for p in parts if p.counted], total, *[p for p in parts if not p.counted]):
        lines.append(f"{part.name:{width}}  {part.macs / 1e9:10.3f}  {part.parameters / 1e6:9.3f}")
    return "\n".join(lines)


def main() -> None:
    """Count and print."""
    args = parse_args()
    cfg = Config.fromfile(args.config)
    if args.cfg_options:
        cfg.merge_from_dict(args.cfg_options)
    parts = count(cfg, tuple(args.shape), args.proposals, args.instances)
    print(f"{args.config}, {args.shape[0]}x{args.shape[1]} pixels, one picture")
    print(table(parts))


if __name__ == "__main__":
    main()
