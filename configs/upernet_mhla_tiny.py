# UperNet 160k on ADE20K, mhla attention, Tiny.
# python tools/train.py configs/upernet_mhla_tiny.py
_base_ = "./_base_/upernet_tiny.py"
model = dict(
    backbone=dict(
        operator="mhla",
        transfer=dict(plan="pretrained", source="work_dirs/imagenet_mhla_tiny@mlpcopy+distill"),
    )
)
