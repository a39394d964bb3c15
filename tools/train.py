#!/usr/bin/env python
"""Train a classifier (ImageNet stage), Mask R-CNN or UperNet with a ViT of any attention operator.

  python tools/train.py configs/imagenet_relu_base.py --init mlpcopy --distill
      the ImageNet stage
  python tools/train.py configs/maskrcnn_relu_base.py
      COCO, from that stage's checkpoint
  python tools/train.py configs/maskrcnn_relu_base.py --init random
      COCO, from the student trained from random
  python tools/train.py configs/upernet_softmax_small.py --teacher vit.safetensors
  tools/dist_train.sh configs/upernet_relu_base.py 8 --amp
  tools/dist_train.sh configs/imagenet_relu_base.py 4 --keep-batch --recipe xu2024
      the ImageNet stage with heavier augmentation; gradients of 2 steps make the recipe's batch of 4096
  python tools/train.py configs/imagenet_relu_base.py --data cifar100 --init mlpcopy --distill --keep-batch
      a transfer set instead of ImageNet: cifar10, cifar100, stl10, food101, flowers102, pets

Runs go to work_dirs/[RECIPE/][DATA/]CONFIG@INIT[+distill][@seedN]; `--resume` continues the newest checkpoint there.
"""

import argparse

from lvit_dense.experiment.flags import add_launch_flags, add_preset_flags, parse_launched


def parse_args() -> argparse.Namespace:
    """Flags as OpenMMLab users know them, and the arm: --init, --distill, --teacher, --seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", help="config file, such as configs/maskrcnn_relu_base.py")
    arm = parser.add_argument_group("arm (for configs named TASK_OPERATOR_SIZE)")
    arm.add_argument(
        "--init",
        help="transfer plan of the ImageNet stage: random, copy, mlpcopy, fullcopy, ...; "
        "dense configs start from the checkpoint of that stage, or take: scratch (no ImageNet stage), "
        "teacher (softmax: from the teacher itself)",
    )
    arm.add_argument("--distill", action="store_true", help="distil attention outputs in the ImageNet stage")
    arm.add_argument(
        "--teacher",
        help="weights to copy from and to distil: a file, timm:NAME, dino, mae, mocov3 or ibot (default: the config's)",
    )
    arm.add_argument(
        "--native-parts",
        action="store_true",
        help="give the student the teacher's registers, pre-norm, activation and biases too (LayerScale it always has)",
    )
    arm.add_argument("--seed", type=int, help="random seed (default 0)")
    add_preset_flags(parser)
    parser.add_argument(
        "--work-dir", help="folder of logs and checkpoints (default: WORK_ROOT/[RECIPE/][DATA/]the run's name)"
    )
    parser.add_argument("--work-root", default="work_dirs", help="folder of this run's and of upstream runs' work dirs")
    parser.add_argument(
        "--skip-bad", action="store_true", help="leave out training pictures that cannot be used, and say how many"
    )
    parser.add_argument("--amp", action="store_true", help="mixed precision (CUDA)")
    parser.add_argument(
        "--auto-scale-lr", action="store_true", help="scale the rate by batch / auto_scale_lr.base_batch_size"
    )
    parser.add_argument(
        "--keep-batch",
        action="store_true",
        help="add up gradients over as many steps as make the recipe's batch on the processes there are",
    )
    parser.add_argument(
        "--resume",
        nargs="?",
        const="auto",
        help="continue this checkpoint, a folder's newest, or the newest in the work dir",
    )
    add_launch_flags(parser)
    return parse_launched(parser)


def main() -> None:
    """Configure (errors here are one line), then train."""
    args = parse_args()
    from lvit_dense.experiment.launch import one_line_errors, ready_to_train, train

    with one_line_errors():
        cfg = ready_to_train(args)
    train(cfg)


if __name__ == "__main__":
    main()
