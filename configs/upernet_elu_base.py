# UperNet 160k on ADE20K, elu attention, Base.
# python tools/train.py configs/upernet_elu_base.py
_base_ = "./_base_/upernet_base.py"
model = dict(
    backbone=dict(
        operator="elu",
        transfer=dict(plan="pretrained", source="work_dirs/imagenet_elu_base@mlpcopy+distill"),
    )
)
