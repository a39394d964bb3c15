# Mask R-CNN 1x on COCO, ttt attention, Base.
# Paper, random: APb 36.4, APb50 58.9, APb75 40.3, APm 34.3, APm50 57.7, APm75 36.2
# Paper, copy: APb 35.4, APb50 58.1, APb75 39.2, APm 33.5, APm50 57.0, APm75 35.9
# Paper, mlpcopy: APb 42.9, APb50 65.2, APb75 46.5, APm 38.0, APm50 61.5, APm75 40.1
# Paper, fullcopy: APb 43.1, APb50 65.9, APb75 47.0, APm 38.7, APm50 62.3, APm75 41.0
# Paper, random+distill: APb 40.5, APb50 63.0, APb75 44.2, APm 37.4, APm50 60.9, APm75 39.5
# Paper, copy+distill: APb 41.0, APb50 63.6, APb75 44.7, APm 38.1, APm50 61.9, APm75 40.3
# Paper, mlpcopy+distill: APb 43.2, APb50 65.7, APb75 46.8, APm 39.1, APm50 62.9, APm75 41.5
# Paper, fullcopy+distill: APb 43.3, APb50 66.1, APb75 47.6, APm 39.4, APm50 63.1, APm75 41.5
# python tools/train.py configs/maskrcnn_ttt_base.py
_base_ = "./_base_/maskrcnn_base.py"
model = dict(
    backbone=dict(
        operator="ttt",
        transfer=dict(plan="pretrained", source="work_dirs/imagenet_ttt_base@mlpcopy+distill"),
    )
)
