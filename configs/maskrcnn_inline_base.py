# Mask R-CNN 1x on COCO, inline attention, Base.
# python tools/train.py configs/maskrcnn_inline_base.py
_base_ = "./_base_/maskrcnn_base.py"
model = dict(
    backbone=dict(
        operator="inline",
        transfer=dict(plan="pretrained", source="work_dirs/imagenet_inline_base@mlpcopy+distill"),
    )
)
