# Mask R-CNN 1x on COCO, elu attention, Base.
# python tools/train.py configs/maskrcnn_elu_base.py
_base_ = "./_base_/maskrcnn_base.py"
model = dict(
    backbone=dict(
        operator="elu",
        transfer=dict(plan="pretrained", source="work_dirs/imagenet_elu_base@mlpcopy+distill"),
    )
)
