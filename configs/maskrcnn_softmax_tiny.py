# Mask R-CNN 1x on COCO, softmax attention, Tiny.
# python tools/train.py configs/maskrcnn_softmax_tiny.py
_base_ = "./_base_/maskrcnn_tiny.py"
teacher = "timm:deit_tiny_patch16_224.fb_in1k"
model = dict(
    backbone=dict(
        operator="softmax",
        transfer=dict(plan="fullcopy", source=teacher),
        window_size=14,
    )
)
