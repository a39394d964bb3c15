# Mask R-CNN 1x on COCO, elu attention, Tiny.
# python tools/train.py configs/maskrcnn_elu_tiny.py
_base_ = "./_base_/maskrcnn_tiny.py"
model = dict(
    backbone=dict(
        operator="elu",
        transfer=dict(plan="pretrained", source="work_dirs/imagenet_elu_tiny@mlpcopy+distill"),
    )
)
