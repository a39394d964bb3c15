# ImageNet-1K classification (the paper's Table C recipe), softmax attention, Tiny.
# python tools/train.py configs/imagenet_softmax_tiny.py
_base_ = "./_base_/imagenet_tiny.py"
model = dict(backbone=dict(operator="softmax"))
