# UperNet 160k on ADE20K, softmax attention, Base.
# Paper, teacher: mIoU 46.1, mIoU_ms 47.1
# python tools/train.py configs/upernet_softmax_base.py
_base_ = "./_base_/upernet_base.py"
teacher = "timm:deit_base_patch16_224.fb_in1k"
model = dict(
    backbone=dict(
        operator="softmax",
        transfer=dict(plan="fullcopy", source=teacher),
    )
)
