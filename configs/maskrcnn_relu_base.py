# Mask R-CNN 1x on COCO, relu attention, Base.
# Paper, random: APb 34.0, APm 32.1
# Paper, copy: APb 33.3, APm 31.6
# Paper, mlpcopy: APb 41.4, APm 36.5
# Paper, fullcopy: APb 41.5, APm 36.7
# Paper, random+distill: APb 36.2, APm 35.8
# Paper, copy+distill: APb 36.9, APm 36.0
# Paper, mlpcopy+distill: APb 42.2, APm 38.2
# Paper, fullcopy+distill: APb 42.4, APm 39.0
# python tools/train.py configs/maskrcnn_relu_base.py
_base_ = "./_base_/maskrcnn_base.py"
model = dict(
    backbone=dict(
        operator="relu",
        transfer=dict(plan="pretrained", source="work_dirs/imagenet_relu_base@mlpcopy+distill"),
    )
)
