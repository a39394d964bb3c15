# Mask R-CNN 1x on COCO, ttt attention, Base.
# Paper, random: APb 36.4, APm 34.3
# Paper, copy: APb 35.4, APm 33.5
# Paper, mlpcopy: APb 42.9, APm 38.0
# Paper, fullcopy: APb 43.1, APm 38.7
# Paper, random+distill: APb 40.5, APm 37.4
# Paper, copy+distill: APb 41.0, APm 38.1
# Paper, mlpcopy+distill: APb 43.2, APm 39.1
# Paper, fullcopy+distill: APb 43.3, APm 39.4
# python tools/train.py configs/maskrcnn_ttt_base.py
_base_ = "./_base_/maskrcnn_base.py"
model = dict(
    backbone=dict(
        operator="ttt",
        transfer=dict(plan="pretrained", source="work_dirs/imagenet_ttt_base@mlpcopy+distill"),
    )
)
