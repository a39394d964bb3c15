# UperNet 160k on ADE20K, mhla attention, Small.
# python tools/train.py configs/upernet_mhla_small.py
_base_ = "./_base_/upernet_small.py"
model = dict(
    backbone=dict(
        operator="mhla",
        transfer=dict(plan="pretrained", source="work_dirs/imagenet_mhla_small@mlpcopy+distill"),
    )
)
