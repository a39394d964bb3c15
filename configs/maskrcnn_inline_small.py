# Mask R-CNN 1x on COCO, inline attention, Small.
# python tools/train.py configs/maskrcnn_inline_small.py
_base_ = "./_base_/maskrcnn_small.py"
model = dict(
    backbone=dict(
        operator="inline",
        transfer=dict(plan="pretrained", source="work_dirs/imagenet_inline_small@mlpcopy+distill"),
    )
)
