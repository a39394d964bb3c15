# Mask R-CNN 1x on COCO, softmax attention, Base.
# Paper, teacher: APb 42.9, APm 39.4
# python tools/train.py configs/maskrcnn_softmax_base.py
_base_ = './_base_/maskrcnn_base.py'
model = dict(backbone=dict(operator='softmax', window_size=14))
