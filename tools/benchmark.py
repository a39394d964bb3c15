#!/usr/bin/env python
"""Time, memory, parameters and multiply-accumulates of the attention operators, against softmax.

  python tools/benchmark.py                                      # every operator, Base, CPU, 14x14 to 128x128 tokens
  python tools/benchmark.py --operators relu ttt --grids 50x84   # 800x1344 pixels are 50x84 tokens of 16 pixels
  python tools/benchmark.py --device cuda --dtype bfloat16 --grids 50x84 128x128 --batch-size 2
  python tools/benchmark.py --depth 1 --clock cpu --threads 1 --out work_dirs/benchmark    # on a machine others use too

What is measured: the blocks of the ViT on random tokens without class token, forward alone and a training step (forward
and backward, no optimiser). Patch embedding and heads are the same for every operator and left out; they are 0.7 % of a
Base backbone. --depth takes fewer blocks: ratios and exponents stay, times and memory shrink. Softmax is torch's fused
scaled_dot_product_attention and always runs, interleaved: each round times every operator once, so a slow phase of the
machine hits all alike; a time is the least of all rounds, because what else runs on a machine only ever adds. On Linux
the C library is told to keep freed memory, as torch does on a GPU: else every large tensor is fetched from the kernel
page by page again, which costs a fifth of a step at 128x128 and nothing at 14x14.

How to read the table: `faster` is softmax time / this time, 2.0 = twice as fast. Memory is the peak of a training step
beyond weights and their gradients. MACs are the blocks' (operator.macs inside). The exponent is the slope of log(time)
and log(memory) over log(tokens) from 1024 tokens on: 1 is linear, 2 quadratic.

Written to --out: benchmark.md, benchmark.json, benchmark.png (log-log).
"""

import argparse
import contextlib
import ctypes
import json
import math
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

DEFAULT_GRIDS = ("14x14", "32x32", "50x84", "128x128")


def parse_args() -> argparse.Namespace:
    """Flags."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operators", nargs="+", metavar="NAME", help="default: all; softmax is always added")
    parser.add_argument("--arch", default="base", help="tiny, small, base or large")
    parser.add_argument("--depth", type=int, help="number of blocks, default the size's own")
    parser.add_argument("--grids", nargs="+", type=parse_grid, metavar="HxW", default=[*map(parse_grid, DEFAULT_GRIDS)])
    parser.add_argument("--batch-size", type=int, default=1)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16", "float16"], help="of autocast")
    parser.add_argument("--rounds", type=int, default=3, help="timed rounds after one that warms up")
    parser.add_argument("--clock", default="wall", choices=["wall", "cpu"], help="cpu: processor time, CPU device only")
    parser.add_argument("--threads", type=int, help="threads of torch on the CPU")
    parser.add_argument("--out", type=Path, default=Path("work_dirs/benchmark"))
    args = parser.parse_args()
    if args.clock == "cpu" and args.device != "cpu":
        parser.error(f"--clock cpu measures the processor, which only waits for --device {args.device}")
    if args.rounds < 1 or args.batch_size < 1 or (args.depth is not None and args.depth < 1):
        parser.error("--rounds, --batch-size and --depth must be at least 1")
    return args


def parse_grid(text: str) -> tuple[int, int]:
    """``"50x84"`` -> (50, 84) tokens."""
    try:
        height, width = map(int, text.lower().split("x"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"a grid is HEIGHTxWIDTH in tokens, such as 50x84, got {text!r}") from None
    if min(height, width) < 1:
        raise argparse.ArgumentTypeError(f"both sides of a grid must be at least 1, got {text!r}")
    return height, width


class Subject:
    """The blocks of one operator with what is needed to time them."""

    def __init__(self, operator: str, args: argparse.Namespace) -> None:
        import torch

        from lvit_dense.vit import ViT, resolve_arch

        arch = resolve_arch(args.arch)
        arch = arch._replace(depth=args.depth or arch.depth)
        torch.manual_seed(0)
        self.vit = ViT(arch._asdict(), operator, class_token=False, final_norm=False).to(args.device)
        self.operator, self.args = operator, args
        self.dtype = getattr(torch, args.dtype)

    def forward(self, tokens: Any, grid: Any) -> Any:
        """Through all blocks, under autocast where asked."""
        import torch

        with torch.autocast(self.args.device, self.dtype, enabled=self.dtype != torch.float32):
            for block in self.vit.blocks:
                tokens = block(tokens, grid, 0)
        return tokens

    def inference(self, tokens: Any, grid: Any) -> None:
        """Forward alone."""
        import torch

        with torch.no_grad():
            self.forward(tokens, grid)

    def training_step(self, tokens: Any, grid: Any) -> None:
        """Forward and backward; gradients stay allocated between steps."""
        self.vit.zero_grad(set_to_none=False)
        self.forward(tokens, grid).float().mean().backward()
        tokens.grad = None


def measure(subjects: list[Subject], grid: Any, args: argparse.Namespace) -> list[dict[str, Any]]:
    """One row per operator for one grid."""
    import torch

    from lvit_dense.vit.macs import block_macs

    width = subjects[0].vit.embed_dim
    tokens = torch.randn(args.batch_size, grid.tokens, width, device=args.device, requires_grad=True)
    rows = []
    for subject in subjects:  # the warming round, which also gives the memory
        subject.vit.eval()
        subject.inference(tokens, grid)
        subject.vit.train()
        subject.training_step(tokens, grid)
        memory = peak_memory(lambda subject=subject: subject.training_step(tokens, grid), args.device)
        macs = sum(sum(block_macs(block, grid, 0).values()) for block in subject.vit.blocks)
        parameters = sum(p.numel() for p in subject.vit.blocks.parameters())
        rows.append(dict(operator=subject.operator, memory=memory, macs=macs, parameters=parameters))
        print(f"  {grid.height}x{grid.width} {subject.operator}: {memory / 2**20:.0f} MiB", file=sys.stderr, flush=True)
    times: dict[str, list[list[float]]] = {"forward": [[] for _ in rows], "train": [[] for _ in rows]}
    for number in range(args.rounds):
        for i, subject in enumerate(subjects):
            subject.vit.eval()
            times["forward"][i].append(timed(lambda s=subject: s.inference(tokens, grid), args))
            subject.vit.train()
            times["train"][i].append(timed(lambda s=subject: s.training_step(tokens, grid), args))
        print(f"  round {number + 1} of {args.rounds}", file=sys.stderr, flush=True)
    base = next(i for i, subject in enumerate(subjects) if subject.operator == "softmax")
    for i, row in enumerate(rows):
        row.update(grid=tuple(grid), tokens=grid.tokens, memory_ratio=row["memory"] / rows[base]["memory"])
        for kind, seconds in times.items():
            row[kind] = min(seconds[i])
            row[f"{kind}_faster"] = min(seconds[base]) / min(seconds[i])
    return rows


def timed(function: Callable[[], None], args: argparse.Namespace) -> float:
    """Seconds of one call."""
    import torch

    if args.device != "cpu":
        torch.cuda.synchronize()
    clock = time.process_time if args.clock == "cpu" else time.perf_counter
    start = clock()
    function()
    if args.device != "cpu":
        torch.cuda.synchronize()
    return clock() - start


def peak_memory(function: Callable[[], None], device: str) -> int:
    """Bytes that one call had allocated at most, beyond what was there before."""
    import torch

    if device != "cpu":
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        function()
        return torch.cuda.max_memory_allocated() - before
    # The CPU allocator keeps no statistics, but the profiler sees every allocation and release in order.
    activities = [torch.profiler.ProfilerActivity.CPU]
    with silent_stderr(), torch.profiler.profile(activities=activities, profile_memory=True) as profiler:
        function()
    events = [e for e in profiler.profiler.kineto_results.events() if e.name() == "[memory]"]
    now = peak = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        now += event.nbytes()
        peak = max(peak, now)
    return peak


@contextlib.contextmanager
def silent_stderr() -> Iterator[None]:
    """Keep the profiler's C++ messages off the terminal."""
    saved, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)


def keep_freed_memory() -> None:
    """Have glibc's malloc serve large blocks from its heap and not give them back; does nothing elsewhere."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        m_trim_threshold, m_mmap_max = -1, -4
        mallopt(m_mmap_max, 0)
        mallopt(m_trim_threshold, 2**31 - 1)


def exponents(rows: list[dict[str, Any]], operator: str) -> dict[str, float]:
    """Slopes of log(train time), log(forward time) and log(memory) over log(tokens), from 1024 tokens on."""
    rows = [row for row in rows if row["operator"] == operator and row["tokens"] >= 1024]
    if len(rows) < 2:
        return {}
    x = [math.log(row["tokens"]) for row in rows]
    return {
        kind: statistics.linear_regression(x, [math.log(row[kind]) for row in rows]).slope
        for kind in ("forward", "train", "memory")
    }


def table(rows: list[dict[str, Any]], args: argparse.Namespace) -> str:
    """The figures as Markdown."""
    columns = ("tokens", "operator", "forward s", "faster", "training step s", "faster", "memory MiB", "of softmax")
    columns += ("GMACs", "M params")
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    for row in rows:
        cells = ["x".join(map(str, row["grid"])) + f" = {row['tokens']}", row["operator"]]
        cells += [f"{row['forward']:.3f}", f"{row['forward_faster']:.2f}"]
        cells += [f"{row['train']:.3f}", f"{row['train_faster']:.2f}"]
        cells += [f"{row['memory'] / 2**20:.0f}", f"{row['memory_ratio']:.2f}"]
        cells += [f"{args.batch_size * row['macs'] / 1e9:.2f}", f"{row['parameters'] / 1e6:.2f}"]
        lines.append("| " + " | ".join(cells) + " |")
    slopes = {row["operator"]: exponents(rows, row["operator"]) for row in rows}
    if all(slopes.values()):
        lines += ["", "| operator | exponent of forward | of training step | of memory |", "|---|---|---|---|"]
        for name, slope in slopes.items():
            lines.append(f"| {name} | {slope['forward']:.2f} | {slope['train']:.2f} | {slope['memory']:.2f} |")
    return "\n".join(lines)


def picture(rows: list[dict[str, Any]], path: Path) -> None:
    """Training step and memory over tokens, both axes logarithmic."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for axis, kind, scale, label in (
        (axes[0], "train", 1.0, "training step, s"),
        (axes[1], "memory", 2.0**-20, "peak memory, MiB"),
    ):
        for name in dict.fromkeys(row["operator"] for row in rows):
            mine = [row for row in rows if row["operator"] == name]
            style = dict(color="black", linestyle="--") if name == "softmax" else {}
            axis.loglog([r["tokens"] for r in mine], [scale * r[kind] for r in mine], marker="o", label=name, **style)
        axis.set(xlabel="tokens", ylabel=label)
        axis.grid(True, which="both", alpha=0.3)
    axes[0].legend()
    figure.savefig(path, dpi=110)


def main() -> None:
    """Measure, print, write."""
    args = parse_args()
    keep_freed_memory()
    import torch

    from lvit_dense.operators import OPERATORS, Grid

    if args.threads:
        torch.set_num_threads(args.threads)
    names = args.operators or OPERATORS.names()
    names = ["softmax", *(name for name in dict.fromkeys(names) if name != "softmax")]
    for name in names:
        OPERATORS.get(name)  # a misspelt name fails before anything is timed
    subjects = [Subject(name, args) for name in names]
    rows: list[dict[str, Any]] = []
    args.out.mkdir(parents=True, exist_ok=True)
    for grid in args.grids:
        rows += measure(subjects, Grid(*grid), args)
        facts = dict(arch=args.arch, depth=len(subjects[0].vit.blocks), batch_size=args.batch_size, device=args.device)
        facts |= dict(dtype=args.dtype, clock=args.clock, rounds=args.rounds, threads=torch.get_num_threads())
        facts |= dict(torch=torch.__version__, machine=device_name(args.device))
        (args.out / "benchmark.json").write_text(json.dumps(dict(facts=facts, rows=rows), indent=1))
    heading = ", ".join(f"{key} {value}" for key, value in facts.items())
    text = f"{heading}\n\n{table(rows, args)}\n"
    (args.out / "benchmark.md").write_text(text)
    picture(rows, args.out / "benchmark.png")
    print(text)
    print(f"written to {args.out}")


def device_name(device: str) -> str:
    """What ran it."""
    import torch

    return platform.machine() if device == "cpu" else torch.cuda.get_device_name()


if __name__ == "__main__":
    main()
