# Mask R-CNN 1x on COCO, mhla attention, Base.
# python tools/train.py configs/maskrcnn_mhla_base.py
_base_ = "./_base_/maskrcnn_base.py"
model = dict(
    backbone=dict(
        operator="mhla",
        transfer=dict(plan="pretrained", source="work_dirs/imagenet_mhla_base@mlpcopy+distill"),
    )
)
