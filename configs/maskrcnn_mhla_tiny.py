# Mask R-CNN 1x on COCO, mhla attention, Tiny.
# python tools/train.py configs/maskrcnn_mhla_tiny.py
_base_ = "./_base_/maskrcnn_tiny.py"
model = dict(
    backbone=dict(
        operator="mhla",
        transfer=dict(plan="pretrained", source="work_dirs/imagenet_mhla_tiny@mlpcopy+distill"),
    )
)
