# UperNet 160k on ADE20K, relu attention, Base.
# Paper, random: mIoU 34.9, mIoU_ms 35.7
# Paper, copy: mIoU 35.2, mIoU_ms 35.8
# Paper, mlpcopy: mIoU 43.5, mIoU_ms 44.4
# Paper, fullcopy: mIoU 43.9, mIoU_ms 44.6
# Paper, random+distill: mIoU 40.7, mIoU_ms 41.8
# Paper, copy+distill: mIoU 41.5, mIoU_ms 42.1
# Paper, mlpcopy+distill: mIoU 45.2, mIoU_ms 45.9
# Paper, fullcopy+distill: mIoU 45.3, mIoU_ms 46.4
# python tools/train.py configs/upernet_relu_base.py
_base_ = "./_base_/upernet_base.py"
model = dict(
    backbone=dict(
        operator="relu",
        transfer=dict(plan="pretrained", source="work_dirs/imagenet_relu_base@mlpcopy+distill"),
    )
)
