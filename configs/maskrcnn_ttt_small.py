# Mask R-CNN 1x on COCO, ttt attention, Small.
# python tools/train.py configs/maskrcnn_ttt_small.py
_base_ = "./_base_/maskrcnn_small.py"
model = dict(
    backbone=dict(
        operator="ttt",
        transfer=dict(plan="pretrained", source="work_dirs/imagenet_ttt_small@mlpcopy+distill"),
    )
)
