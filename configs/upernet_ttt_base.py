# UperNet 160k on ADE20K, ttt attention, Base.
# Paper, random: mIoU 35.1, mIoU_ms 35.7
# Paper, copy: mIoU 35.1, mIoU_ms 36.2
# Paper, mlpcopy: mIoU 44.3, mIoU_ms 45.3
# Paper, fullcopy: mIoU 45.2, mIoU_ms 46.0
# Paper, random+distill: mIoU 44.5, mIoU_ms 45.5
# Paper, copy+distill: mIoU 45.2, mIoU_ms 46.2
# Paper, mlpcopy+distill: mIoU 46.7, mIoU_ms 47.5
# Paper, fullcopy+distill: mIoU 47.1, mIoU_ms 47.9
# python tools/train.py configs/upernet_ttt_base.py
_base_ = "./_base_/upernet_base.py"
model = dict(
    backbone=dict(
        operator="ttt",
        transfer=dict(plan="pretrained", source="work_dirs/imagenet_ttt_base@mlpcopy+distill"),
    )
)
