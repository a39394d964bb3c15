#!/usr/bin/env python
"""Show what a pre-trained ViT file is, and what every transfer plan would take from it. Nothing is written.

  python tools/inspect_checkpoint.py dino_vitbase16_pretrain.pth
  python tools/inspect_checkpoint.py timm:deit_base_patch16_224.fb_in1k --operator ttt
  python tools/inspect_checkpoint.py model.safetensors --img-size 448 --patch-size 14
  python tools/inspect_checkpoint.py wide.pth --grid 14 28            position rows that make no square
  python tools/inspect_checkpoint.py odd.pth --facts num_heads=12     what no key tells

Printed are: the family (told by the keys, not by the file's name), the architecture, the token grid of the position
rows, each group of weights, what the file holds besides, and per plan what a student with --operator would get: tensors
copied, resized, random on purpose, dropped on purpose, or why the plan is impossible.

The exit code is 1 if the file cannot be read as a ViT, or a fact or the operator does not fit, 2 for a wrong flag, else
0. docs/transfer.md explains families, groups and plans.
"""

import argparse
import ast
import sys
from collections import Counter
from typing import Any


def parse_args() -> argparse.Namespace:
    """Flags."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", help="a .pth, .pt, .pth.tar, .bin, .ckpt, .safetensors or .npz file, or timm:NAME")
    parser.add_argument("--operator", default="relu", help="attention operator of the student (default relu)")
    parser.add_argument(
        "--img-size", type=_positive, default=224, help="pre-training size of the student (default 224)"
    )
    parser.add_argument("--patch-size", type=_positive, help="patch size of the student (default: the source's)")
    parser.add_argument("--grid", nargs=2, type=_positive, metavar=("H", "W"), help="token grid of the position rows")
    parser.add_argument("--facts", nargs="+", type=_fact, default=[], metavar="NAME=VALUE", help="facts no key tells")
    return parser.parse_args()


def main() -> int:
    """Read, print, and return the exit code."""
    args = parse_args()
    from lvit_dense.transfer import read_source

    try:
        source = read_source(args.source, grid=args.grid, facts=dict(args.facts))
        text = plans(source, args.operator, args.img_size, args.patch_size or source.facts.patch_size)
    except (ValueError, KeyError, TypeError, OSError) as error:  # what wrong files, facts and operators raise
        print(error.args[0] if isinstance(error, KeyError) else error, file=sys.stderr)
        return 1
    print(describe(source))
    print(text)
    return 0


def describe(source: Any) -> str:
    """Family, architecture, facts and groups of a source."""
    from lvit_dense.transfer import GROUPS, group_of
    from lvit_dense.transfer.canonical import block_of, without_index
    from lvit_dense.vit import ARCHS

    f = source.facts
    sizes = [name for name, arch in ARCHS.items() if arch[:3] == (f.embed_dim, f.depth, f.num_heads)]
    heads = " (assumed: embed_dim / 64)" if f.heads_assumed else ""
    lines = [
        f"file      {source.spec}",
        f"sha256    {source.sha256}",
        f"family    {source.family}",
        f"size      {sizes[0] if sizes else 'none of ours'}: embed_dim {f.embed_dim}, depth {f.depth}, num_heads "
        f"{f.num_heads}{heads}, mlp_ratio {f.mlp_ratio:g}",
        f"operator  {f.operator}",
        f"tokens    patch {f.patch_size}, grid {f.grid.height}x{f.grid.width}, class token "
        f"{'yes' if f.class_token else 'no'}, registers {f.registers}, positions {f.pos_embed}",
        f"native    {source.student_arguments(native_parts=True) or 'nothing that DeiT has not'}",
        f"pixels    mean {f.pixel_mean}, std {f.pixel_std}" if f.pixel_mean else "pixels    as its config had them",
        "",
        f"{'group':<12} {'tensors':>8} {'blocks':>7} {'numbers':>12}",
    ]
    for group in GROUPS:
        names = [name for name in source.state if group_of(name) == group]
        if names:
            blocks = {block_of(name) for name in names} - {None}
            numbers = sum(source.state[name].numel() for name in names)
            lines.append(f"{group:<12} {len(names):>8} {len(blocks) or '':>7} {numbers:>12,}")
    for reason, count in Counter(source.dropped.values()).items():
        examples = list(dict.fromkeys(without_index(n) for n, r in source.dropped.items() if r == reason))[:3]
        lines.append(f"not read: {count} tensors, {reason}, such as {', '.join(examples)}")
    return "\n".join(lines)


def plans(source: Any, operator: str, img_size: int, patch_size: int) -> str:
    """What each plan would do for a student of the source's size."""
    from lvit_dense.transfer import PLANS, resolve
    from lvit_dense.transfer.report import make_report
    from lvit_dense.vit import ViT

    arch = source.vit_arguments()["arch"]
    arguments = {"img_size": img_size, "patch_size": patch_size, "in_chans": source.facts.in_chans}
    model = ViT(arch, operator, **arguments, **source.student_arguments())
    lines = ["", f"A {operator} student of this size, {img_size} px, patch {patch_size}, {source.student_arguments()}:"]
    for name in PLANS.names():
        if not PLANS.get(name).needs_source:
            lines.append(f"{name:<11} takes nothing from a file")
            continue
        _, options, resolution = resolve(name, source, model)
        if resolution.problems:
            lines.append(f"{name:<11} impossible: " + f"\n{'':<12}".join(resolution.problems))
            continue
        report = make_report(name, options, source, resolution, list(model.state_dict()), "")
        copied = [
            f"{g.group} {g.copied}/{g.total}{' in part' if g.random and g.copied == g.total else ''}"
            for g in report.groups
            if g.copied
        ]
        resized = [f"{g.group} {g.resized}" for g in report.groups if g.resized]
        dropped = [g.group for g in report.groups if g.dropped]
        lines.append(f"{name:<11} copies {', '.join(copied)}")
        lines += [f"{'':<12}resized: {', '.join(resized)}"] * bool(resized)
        lines += [f"{'':<12}dropped on purpose, some or all of: {', '.join(dropped)}"] * bool(dropped)
        lines.append(f"{'':<12}random on purpose: {report.random} of {len(model.state_dict())} tensors")
    return "\n".join(lines)


def _fact(entry: str) -> tuple[str, Any]:
    """``num_heads=12`` with a number, ``act_layer=quick_gelu`` as it is."""
    name, equals, text = entry.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{entry!r} is not NAME=VALUE")
    try:
        return name, ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return name, text


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


if __name__ == "__main__":
    raise SystemExit(main())
