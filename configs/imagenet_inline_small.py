# ImageNet-1K classification (the paper's Table C recipe), inline attention, Small.
# python tools/train.py configs/imagenet_inline_small.py --init mlpcopy --distill
_base_ = "./_base_/imagenet_small.py"
model = dict(backbone=dict(operator="inline"))
