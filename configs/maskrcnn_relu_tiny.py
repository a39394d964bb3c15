# Mask R-CNN 1x on COCO, relu attention, Tiny.
# python tools/train.py configs/maskrcnn_relu_tiny.py
_base_ = "./_base_/maskrcnn_tiny.py"
model = dict(
    backbone=dict(
        operator="relu",
        transfer=dict(plan="pretrained", source="work_dirs/imagenet_relu_tiny@mlpcopy+distill"),
    )
)
