# ImageNet-1K classification (the paper's Table C recipe), softmax attention, Small.
# python tools/train.py configs/imagenet_softmax_small.py
_base_ = "./_base_/imagenet_small.py"
model = dict(backbone=dict(operator="softmax"))
