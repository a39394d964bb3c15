# Mask R-CNN 1x on COCO, relu attention, Small.
# python tools/train.py configs/maskrcnn_relu_small.py
_base_ = "./_base_/maskrcnn_small.py"
model = dict(
    backbone=dict(
        operator="relu",
        transfer=dict(plan="pretrained", source="work_dirs/imagenet_relu_small@mlpcopy+distill"),
    )
)
