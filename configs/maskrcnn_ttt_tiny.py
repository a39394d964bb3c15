# Mask R-CNN 1x on COCO, ttt attention, Tiny.
# python tools/train.py configs/maskrcnn_ttt_tiny.py
_base_ = "./_base_/maskrcnn_tiny.py"
model = dict(
    backbone=dict(
        operator="ttt",
        transfer=dict(plan="pretrained", source="work_dirs/imagenet_ttt_tiny@mlpcopy+distill"),
    )
)
