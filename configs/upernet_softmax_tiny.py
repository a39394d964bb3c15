# UperNet 160k on ADE20K, softmax attention, Tiny.
# python tools/train.py configs/upernet_softmax_tiny.py
_base_ = "./_base_/upernet_tiny.py"
teacher = "timm:deit_tiny_patch16_224.fb_in1k"
model = dict(
    backbone=dict(
        operator="softmax",
        transfer=dict(plan="fullcopy", source=teacher),
    )
)
