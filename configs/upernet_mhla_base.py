# UperNet 160k on ADE20K, mhla attention, Base.
# python tools/train.py configs/upernet_mhla_base.py
_base_ = "./_base_/upernet_base.py"
model = dict(
    backbone=dict(
        operator="mhla",
        transfer=dict(plan="pretrained", source="work_dirs/imagenet_mhla_base@mlpcopy+distill"),
    )
)
