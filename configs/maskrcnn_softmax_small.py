# Mask R-CNN 1x on COCO, softmax attention, Small.
# python tools/train.py configs/maskrcnn_softmax_small.py
_base_ = './_base_/maskrcnn_small.py'
model = dict(backbone=dict(operator='softmax', window_size=14))
