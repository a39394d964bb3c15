# Mask R-CNN 1x on COCO, inline attention, Tiny.
# python tools/train.py configs/maskrcnn_inline_tiny.py
_base_ = "./_base_/maskrcnn_tiny.py"
model = dict(
    backbone=dict(
        operator="inline",
        transfer=dict(plan="pretrained", source="work_dirs/imagenet_inline_tiny@mlpcopy+distill"),
    )
)
