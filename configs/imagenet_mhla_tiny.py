# ImageNet-1K classification (the paper's Table C recipe), mhla attention, Tiny.
# python tools/train.py configs/imagenet_mhla_tiny.py --init mlpcopy --distill
_base_ = "./_base_/imagenet_tiny.py"
model = dict(backbone=dict(operator="mhla"))
