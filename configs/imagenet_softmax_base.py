# ImageNet-1K classification (the paper's Table C recipe), softmax attention, Base.
# python tools/train.py configs/imagenet_softmax_base.py
_base_ = "./_base_/imagenet_base.py"
model = dict(backbone=dict(operator="softmax"))
