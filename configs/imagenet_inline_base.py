# ImageNet-1K classification (the paper's Table C recipe), inline attention, Base.
# python tools/train.py configs/imagenet_inline_base.py --init mlpcopy --distill
_base_ = "./_base_/imagenet_base.py"
model = dict(backbone=dict(operator="inline"))
