# ImageNet-1K classification (the paper's Table C recipe), inline attention, Tiny.
# python tools/train.py configs/imagenet_inline_tiny.py --init mlpcopy --distill
_base_ = "./_base_/imagenet_tiny.py"
model = dict(backbone=dict(operator="inline"))
