#!/usr/bin/env python
"""Time and peak memory of testing one random picture from several views, as `tools/test.py --tta` does.

  for views in 1 6 12; do python tools/tta_memory.py configs/upernet_relu_tiny.py --views $views; done
  python tools/tta_memory.py configs/upernet_relu_tiny.py --views 12 --shape 1000 1333
  python tools/tta_memory.py configs/upernet_relu_tiny.py --views 12 --stock      mmseg's own class, for comparison

Weights are random. The views are those of the config's tta_pipeline: 1 is the test scale, then all scales, then all
scales with their flips. On CPU the peak is the process's (ru_maxrss), so every figure needs a process of its own; the
figure before the first view, with the model built, is printed beside it.
"""

import argparse
import time
from typing import Any

from mmengine.config import Config, DictAction


def parse_args() -> argparse.Namespace:
    """Flags."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", help="a Mask R-CNN or UperNet config")
    parser.add_argument("--views", type=int, default=1, help="1, all scales, or all scales and flips")
    parser.add_argument("--shape", type=int, nargs=2, default=(512, 683), metavar=("HEIGHT", "WIDTH"))
    parser.add_argument("--stock", action="store_true", help="mmseg's SegTTAModel or mmdet's DetTTAModel (boxes only)")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--cfg-options", nargs="+", action=DictAction, metavar="KEY=VALUE")
    return parser.parse_args()


def views_pipeline(cfg: Config, views: int) -> list[dict[str, Any]]:
    """The config's TestTimeAug, cut down to that many views and without reading labels.

    Raises:
        ValueError: the pipeline has no such selection of views.
    """
    scales, flips, *rest = cfg.tta_pipeline[1].transforms
    test_scale = next(step for step in cfg.test_dataloader.dataset.pipeline if step.type == "Resize").scale
    selections = {
        1: ([scale for scale in scales if scale.scale == test_scale], flips[:1]),
        len(scales): (scales, flips[:1]),
        len(scales) * len(flips): (scales, flips),
    }
    if views not in selections:
        raise ValueError(f"--views {views}: this config has {', '.join(map(str, selections))}")
    packing = [steps for steps in rest if not steps[0].type.startswith("Load")]
    for step in packing[-1]:
        step.meta_keys = ("ori_shape", "img_shape", "scale_factor", "flip", "flip_direction", "img_path")
    return [{"type": "TestTimeAug", "transforms": [*selections[views], *packing]}]


def build(cfg: Config, stock: bool) -> Any:
    """The test-time model of the config, or its library's."""
    from mmengine.registry import MODELS

    wrapper = dict(cfg.tta_model)
    if stock and cfg.default_scope == "mmseg":
        wrapper = {"type": "SegTTAModel"}
    elif stock:
        cfg.model.roi_head.update(mask_head=None, mask_roi_extractor=None)
        wrapper = {"type": "DetTTAModel", "tta_cfg": {"nms": {"type": "nms", "iou_threshold": 0.5}, "max_per_img": 100}}
    return MODELS.build({**wrapper, "module": cfg.model})


def main() -> None:
    """Build, test once, print one line."""
    args = parse_args()
    import numpy as np
    import torch
    from mmengine.dataset import Compose, pseudo_collate
    from mmengine.model import revert_sync_batchnorm
    from mmengine.registry import init_default_scope

    from lvit_dense.engine.memory import peak_gib
    from lvit_dense.experiment.launch import load_config, one_line_errors

    with one_line_errors():
        cfg = load_config(args.config, args.cfg_options)
        pipeline = views_pipeline(cfg, args.views)
    cfg.model.backbone.pop("transfer", None)
    init_default_scope(cfg.default_scope)
    torch.manual_seed(0)
    model = revert_sync_batchnorm(build(cfg, args.stock)).to(args.device).eval()
    picture = np.random.default_rng(0).integers(0, 256, (*args.shape, 3), dtype=np.uint8)
    facts = {"img": picture, "img_shape": picture.shape[:2], "ori_shape": picture.shape[:2], "img_path": "random"}
    batch = pseudo_collate([Compose(pipeline)(facts)])
    before = peak_gib(args.device)
    start = time.perf_counter()
    with torch.no_grad():
        model.test_step(batch)
    seconds = time.perf_counter() - start
    kind = type(model).__name__
    print(
        f"{args.config} {args.shape[0]}x{args.shape[1]}, {args.views} views, {kind}, on {args.device}: "
        f"{seconds:.1f} s, peak {peak_gib(args.device):.2f} GiB ({before:.2f} before)"
    )


if __name__ == "__main__":
    main()
