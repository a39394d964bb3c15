#!/usr/bin/env python
"""Evaluate a checkpoint: top-1/top-5, box and mask AP, or mIoU; single-scale, or multi-scale with --tta.

python tools/test.py configs/imagenet_relu_base.py work_dirs/imagenet_relu_base@mlpcopy+distill
python tools/test.py configs/upernet_relu_base.py work_dirs/upernet_relu_base@mlpcopy+distill/iter_160000.pth --tta
python tools/test.py configs/imagenet_relu_base.py work_dirs/imagenet_relu_base@mlpcopy+distill --data imagenet_a
    (also imagenet_r, imagenet_sketch, imagenet_v2, and the transfer sets of tools/train.py)
tools/dist_test.sh configs/maskrcnn_relu_base.py CHECKPOINT 8 --out predictions.pkl
"""

import argparse

from lvit_dense.experiment.flags import add_launch_flags, add_preset_flags, parse_launched


def parse_args() -> argparse.Namespace:
    """Flags as OpenMMLab users know them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", help="the config that the checkpoint was trained with")
    parser.add_argument("checkpoint", help="a .pth file, or a work dir (its newest checkpoint)")
    parser.add_argument("--work-dir", help="folder of logs and metrics (default: work_dirs/[RECIPE/][DATA/]CONFIG)")
    add_preset_flags(parser)
    parser.add_argument("--tta", action="store_true", help="multi-scale and flip, as tta_pipeline says")
    parser.add_argument("--out", help="write predictions to this .pkl file")
    parser.add_argument("--show", action="store_true", help="show predictions in a window")
    parser.add_argument("--show-dir", help="write pictures of predictions to this folder")
    add_launch_flags(parser)
    return parse_launched(parser)


def main() -> None:
    """Configure (errors here are one line), then test."""
    args = parse_args()
    from lvit_dense.experiment.launch import one_line_errors, ready_to_test, test

    with one_line_errors():
        cfg = ready_to_test(args)
    test(cfg)


if __name__ == "__main__":
    main()
