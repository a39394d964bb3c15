#!/usr/bin/env python
"""Time and peak memory of one training step of a dense config on one random picture.

  python tools/step_memory.py configs/maskrcnn_relu_base.py --shape 800 1333
  python tools/step_memory.py configs/upernet_softmax_base.py --shape 512 512 --batch-size 2

Weights are random, the optimiser is the config's. On CPU the peak is the process's (ru_maxrss); the figure before the
step, with model and optimiser built, is printed beside it.
"""

import argparse
import time
from typing import Any

from mmengine.config import Config, DictAction


def parse_args() -> argparse.Namespace:
    """Flags."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", help="a Mask R-CNN or UperNet config")
    parser.add_argument("--shape", type=int, nargs=2, default=(800, 1333), metavar=("HEIGHT", "WIDTH"))
    parser.add_argument("--batch-size", type=int, default=1)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--cfg-options", nargs="+", action=DictAction, metavar="KEY=VALUE")
    return parser.parse_args()


def random_batch(cfg: Config, height: int, width: int, batch_size: int) -> dict[str, Any]:
    """Pictures of noise; for a detector eight objects each, for a segmentor random labels."""
    import numpy as np
    import torch
    from mmengine.structures import InstanceData, PixelData

    random = np.random.default_rng(0)
    samples = []
    meta = {"img_shape": (height, width), "ori_shape": (height, width), "scale_factor": (1.0, 1.0)}
    for _ in range(batch_size):
        if cfg.default_scope == "mmdet":
            from mmdet.structures import DetDataSample
            from mmdet.structures.mask import BitmapMasks

            corner = random.uniform(0, 0.5, (8, 2)) * (width, height)
            size = random.uniform(0.1, 0.5, (8, 2)) * (width, height)
            boxes = np.concatenate([corner, corner + size], 1).astype(np.float32)
            masks = np.zeros((8, height, width), np.uint8)
            for mask, (x1, y1, x2, y2) in zip(masks, boxes.astype(int)):
                mask[y1:y2, x1:x2] = 1
            sample = DetDataSample(metainfo=meta)
            sample.gt_instances = InstanceData(
                bboxes=torch.from_numpy(boxes),
                labels=torch.from_numpy(random.integers(0, 80, 8)),
                masks=BitmapMasks(masks, height, width),
            )
        else:
            from mmseg.structures import SegDataSample

            sample = SegDataSample(metainfo=meta)
            labels = random.integers(0, cfg.model.decode_head.num_classes, (1, height, width))
            sample.gt_sem_seg = PixelData(data=torch.from_numpy(labels))
        samples.append(sample)
    inputs = [torch.from_numpy(random.integers(0, 256, (3, height, width), dtype=np.uint8)) for _ in samples]
    return {"inputs": inputs, "data_samples": samples}


def main() -> None:
    """Build, step once, print one line."""
    args = parse_args()
    cfg = Config.fromfile(args.config)
    cfg.merge_from_dict(args.cfg_options or {})
    cfg.model.backbone.pop("transfer", None)

    import torch
    from mmengine.model import revert_sync_batchnorm
    from mmengine.optim import build_optim_wrapper
    from mmengine.registry import MODELS, init_default_scope

    import lvit_dense.engine.register
    import lvit_dense.models  # noqa: F401
    from lvit_dense.engine.memory import peak_gib

    init_default_scope(cfg.default_scope)
    torch.manual_seed(0)
    model = revert_sync_batchnorm(MODELS.build(cfg.model)).to(args.device).train()
    optim_wrapper = build_optim_wrapper(model, cfg.optim_wrapper)
    batch = random_batch(cfg, *args.shape, args.batch_size)
    before = peak_gib(args.device)
    start = time.perf_counter()
    losses = model.train_step(batch, optim_wrapper)
    loss = float(losses["loss"])  # waits for the GPU
    seconds = time.perf_counter() - start
    parameters = sum(p.numel() for p in model.parameters())
    print(
        f"{args.config} {args.batch_size} x {args.shape[0]}x{args.shape[1]} on {args.device}: {parameters / 1e6:.1f} M "
        f"parameters, loss {loss:.3f}, {seconds:.1f} s, peak {peak_gib(args.device):.2f} GiB ({before:.2f} before)"
    )


if __name__ == "__main__":
    main()
