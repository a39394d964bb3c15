#!/usr/bin/env python
"""Draw where query patches look, in a teacher and in its student, block by block, with the error of attention outputs.

  python tools/visualize_routing.py photo.jpg --teacher vit_small_patch14_518.safetensors \\
      --student work_dirs/imagenet_relu_small@mlpcopy+distill --out routing.png
  python tools/visualize_routing.py photo.jpg --teacher timm:deit_base_patch16_224.fb_in1k --student RUN \\
      --queries 3,4 10,7 --blocks 0 5 11 --img-size 224 --out routing.png

A source is a checkpoint of any known family, the folder of a run, or timm:NAME; both need the same width and depth. The
student runs on its own activations. Maps are averaged over heads and show patches only, each from 0 (or its lowest
entry, where that is below) to its maximum. Operators without an attention map (ttt, mhla) say so; the error curve is
there for all: squared error of a token's attention output over the teacher's squared norm, averaged over tokens.
"""

import argparse
from pathlib import Path


def parse_args() -> argparse.Namespace:
    """Flags."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("image", type=Path, help="picture, resized by its shorter side and cropped to a square")
    parser.add_argument("--teacher", required=True, metavar="SOURCE", help="softmax teacher")
    parser.add_argument("--student", required=True, metavar="SOURCE", help="student of the same width and depth")
    parser.add_argument(
        "--queries", nargs="+", type=token, metavar="ROW,COLUMN", help="up to four tokens of the student's grid"
    )
    parser.add_argument(
        "--blocks", nargs="+", type=int, metavar="N", help="0-based (default: the last of each quarter)"
    )
    parser.add_argument("--img-size", type=int, help="side of the picture in pixels (default: the student's)")
    parser.add_argument("--out", type=Path, required=True, help="PNG file to write")
    args = parser.parse_args()
    if args.out.suffix != ".png":
        parser.error(f"--out {args.out}: expected a name that ends in .png")
    return args


def token(text: str) -> tuple[int, int]:
    """``"3,4"`` -> (3, 4)."""
    try:
        row, column = map(int, text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"a query is ROW,COLUMN in tokens, such as 3,4, got {text!r}") from None
    return row, column


def main() -> None:
    """Compare, print the errors, draw."""
    args = parse_args()
    from lvit_dense.experiment.launch import one_line_errors
    from lvit_dense.experiment.routing import compare, draw
    from lvit_dense.transfer import read_source

    with one_line_errors():
        teacher, student = read_source(args.teacher), read_source(args.student)
        routing = compare(args.image, teacher, student, args.img_size, args.queries, args.blocks)
        draw(routing, args.out)
    for block, error in enumerate(routing.errors):
        print(f"block {block}: output error {error:.3f} of the teacher's squared norm")
    if None in routing.student:
        print(f"{routing.operators[1]} attention has no map: its squares are left empty")
    print(f"{args.out} written")


if __name__ == "__main__":
    main()
