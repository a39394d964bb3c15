# ImageNet-1K classification (the paper's Table C recipe), relu attention, Small.
# python tools/train.py configs/imagenet_relu_small.py --init mlpcopy --distill
_base_ = "./_base_/imagenet_small.py"
model = dict(backbone=dict(operator="relu"))
