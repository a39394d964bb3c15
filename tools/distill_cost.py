#!/usr/bin/env python
"""What distillation adds to a training step: plain and distilled steps of equal models, taken in turns.

  python tools/distill_cost.py                                       # relu and ttt, Tiny, 112 pixels, batch 8, CPU
  python tools/distill_cost.py --operators elu --arch small --rounds 20
  python tools/distill_cost.py --device cuda --dtype bfloat16 --arch base --img-size 224 --batch-size 128

A step is forward, backward, gradient clipping and AdamW of the classifier on one batch; the distilled one has a softmax
teacher of the student's size beside it and the term output_mse. Three forwards' work against about one more: 1.33 where
teacher and student cost the same. A round takes one step of each, in changing order, so what else the machine does hits
both; the ratio is taken per round, the table gives its median, quartiles and range. Times are the least of all rounds:
processor time on the CPU, elapsed time with the device synchronised on CUDA. The exit code is 1 above --limit.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def parse_args() -> argparse.Namespace:
    """Flags."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operators", nargs="+", default=["relu", "ttt"], metavar="NAME", help="of the student")
    parser.add_argument("--arch", default="tiny", help="tiny, small, base or large, of both (default tiny)")
    parser.add_argument("--img-size", type=int, default=112, help="side of the pictures in pixels (default 112)")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=20, help="timed rounds after two that warm up (default 20)")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16", "float16"], help="of autocast")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch on the CPU (default 1)")
    parser.add_argument(
        "--limit", type=float, default=1.4, help="highest median ratio that is no failure (default 1.4)"
    )
    args = parser.parse_args()
    if args.rounds < 1:
        parser.error("--rounds must be at least 1")
    return args


def make_step(args: argparse.Namespace, operator: str, teacher: str | None) -> Callable[[], float]:
    """A training step of a fresh classifier that returns its duration in seconds."""
    import torch

    from lvit_dense.models.classifier import LinearViTClassifier

    torch.manual_seed(0)
    backbone = {"arch": args.arch, "operator": operator, "img_size": args.img_size}
    distill = None if teacher is None else {"teacher": teacher}
    model = LinearViTClassifier(backbone, num_classes=1000, distill=distill).to(args.device).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-5)
    images = torch.randn(args.batch_size, 3, args.img_size, args.img_size, device=args.device)
    labels = torch.arange(args.batch_size, device=args.device)
    dtype = getattr(torch, args.dtype)

    def step() -> float:
        begin = clock(args.device)
        with torch.autocast(args.device, dtype, enabled=dtype != torch.float32):
            losses = model(images, labels, mode="loss")
        optimiser.zero_grad()
        sum(losses.values()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 3.0)
        optimiser.step()
        return clock(args.device) - begin

    return step


def clock(device: str) -> float:
    """Seconds: of this process on the CPU, elapsed once the device has finished otherwise."""
    if device == "cpu":
        return time.process_time()
    import torch

    torch.cuda.synchronize()
    return time.perf_counter()


def measure(args: argparse.Namespace, operator: str, teacher: str) -> dict[str, Any]:
    """Least seconds of both steps, and the ratio of each round."""
    plain, distilled = make_step(args, operator, None), make_step(args, operator, teacher)
    for _ in range(2):
        plain(), distilled()
    rounds = []
    for number in range(args.rounds):
        if number % 2:
            second, first = distilled(), plain()
        else:
            first, second = plain(), distilled()
        rounds.append((first, second))
    ratios = sorted(second / first for first, second in rounds)
    return {
        "plain": min(first for first, _ in rounds),
        "distilled": min(second for _, second in rounds),
        "median": statistics.median(ratios),
        "quartiles": statistics.quantiles(ratios, n=4)[::2] if len(ratios) > 1 else ratios * 2,
        "range": (ratios[0], ratios[-1]),
    }


def main() -> None:
    """Measure every operator and print the table."""
    args = parse_args()
    import torch
    from safetensors.torch import save_file

    from lvit_dense.experiment.launch import one_line_errors
    from lvit_dense.vit import ViT

    torch.set_num_threads(args.threads)
    print("| student | plain s | distilled s | ratio, median | quartiles | range |\n|---|---:|---:|---:|---|---|")
    worst = 0.0
    with one_line_errors(), tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "teacher.safetensors"
        save_file(ViT(args.arch, "softmax", img_size=args.img_size).state_dict(), file)
        for operator in args.operators:
            row = measure(args, operator, str(file))
            quartiles, whole = ("{:.3f} - {:.3f}".format(*row[key]) for key in ("quartiles", "range"))
            numbers = f"{row['plain']:.4f} | {row['distilled']:.4f} | {row['median']:.3f} | {quartiles} | {whole}"
            print(f"| {operator} | {numbers} |", flush=True)
            worst = max(worst, row["median"])
    sys.exit(worst > args.limit)


if __name__ == "__main__":
    main()
