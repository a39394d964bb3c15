# Mask R-CNN 1x on COCO, elu attention, Small.
# python tools/train.py configs/maskrcnn_elu_small.py
_base_ = "./_base_/maskrcnn_small.py"
model = dict(
    backbone=dict(
        operator="elu",
        transfer=dict(plan="pretrained", source="work_dirs/imagenet_elu_small@mlpcopy+distill"),
    )
)
