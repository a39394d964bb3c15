# UperNet 160k on ADE20K, softmax attention, Small.
# python tools/train.py configs/upernet_softmax_small.py
_base_ = './_base_/upernet_small.py'
model = dict(backbone=dict(operator='softmax'))
