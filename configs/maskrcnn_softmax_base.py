# Mask R-CNN 1x on COCO, softmax attention, Base.
# Paper, teacher: APb 42.9, APb50 65.7, APb75 46.8, APm 39.4, APm50 62.6, APm75 42.0
# python tools/train.py configs/maskrcnn_softmax_base.py
_base_ = "./_base_/maskrcnn_base.py"
teacher = "timm:deit_base_patch16_224.fb_in1k"
model = dict(
    backbone=dict(
        operator="softmax",
        transfer=dict(plan="fullcopy", source=teacher),
        window_size=14,
    )
)
