# UperNet 160k on ADE20K, elu attention, Small.
# python tools/train.py configs/upernet_elu_small.py
_base_ = "./_base_/upernet_small.py"
model = dict(
    backbone=dict(
        operator="elu",
        transfer=dict(plan="pretrained", source="work_dirs/imagenet_elu_small@mlpcopy+distill"),
    )
)
