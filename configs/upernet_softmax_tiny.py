# UperNet 160k on ADE20K, softmax attention, Tiny.
# python tools/train.py configs/upernet_softmax_tiny.py
_base_ = './_base_/upernet_tiny.py'
model = dict(backbone=dict(operator='softmax'))
