# Mask R-CNN 1x on COCO, mhla attention, Small.
# python tools/train.py configs/maskrcnn_mhla_small.py
_base_ = "./_base_/maskrcnn_small.py"
model = dict(
    backbone=dict(
        operator="mhla",
        transfer=dict(plan="pretrained", source="work_dirs/imagenet_mhla_small@mlpcopy+distill"),
    )
)
