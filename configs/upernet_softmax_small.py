# UperNet 160k on ADE20K, softmax attention, Small.
# python tools/train.py configs/upernet_softmax_small.py
_base_ = "./_base_/upernet_small.py"
teacher = "timm:deit_small_patch16_224.fb_in1k"
model = dict(
    backbone=dict(
        operator="softmax",
        transfer=dict(plan="fullcopy", source=teacher),
    )
)
