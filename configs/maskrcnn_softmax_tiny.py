# Mask R-CNN 1x on COCO, softmax attention, Tiny.
# python tools/train.py configs/maskrcnn_softmax_tiny.py
_base_ = './_base_/maskrcnn_tiny.py'
model = dict(backbone=dict(operator='softmax', window_size=14))
