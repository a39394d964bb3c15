# ImageNet-1K classification (the paper's Table C recipe), elu attention, Small.
# python tools/train.py configs/imagenet_elu_small.py --init mlpcopy --distill
_base_ = "./_base_/imagenet_small.py"
model = dict(backbone=dict(operator="elu"))
