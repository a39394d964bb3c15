# Mask R-CNN 1x on COCO, relu attention, Base.
# Paper, random: APb 34.0, APb50 56.5, APb75 37.6, APm 32.1, APm50 55.5, APm75 34.4
# Paper, copy: APb 33.3, APb50 55.9, APb75 37.1, APm 31.6, APm50 55.0, APm75 33.7
# Paper, mlpcopy: APb 41.4, APb50 63.9, APb75 44.9, APm 36.5, APm50 60.1, APm75 38.7
# Paper, fullcopy: APb 41.5, APb50 64.1, APb75 45.2, APm 36.7, APm50 60.4, APm75 39.2
# Paper, random+distill: APb 36.2, APb50 59.0, APb75 40.3, APm 35.8, APm50 59.2, APm75 37.9
# Paper, copy+distill: APb 36.9, APb50 59.3, APb75 40.7, APm 36.0, APm50 59.6, APm75 38.2
# Paper, mlpcopy+distill: APb 42.2, APb50 64.6, APb75 45.9, APm 38.2, APm50 62.0, APm75 40.7
# Paper, fullcopy+distill: APb 42.4, APb50 64.9, APb75 45.9, APm 39.0, APm50 62.4, APm75 41.3
# python tools/train.py configs/maskrcnn_relu_base.py
_base_ = "./_base_/maskrcnn_base.py"
model = dict(
    backbone=dict(
        operator="relu",
        transfer=dict(plan="pretrained", source="work_dirs/imagenet_relu_base@mlpcopy+distill"),
    )
)
