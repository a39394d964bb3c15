# UperNet 160k on ADE20K, elu attention, Tiny.
# python tools/train.py configs/upernet_elu_tiny.py
_base_ = "./_base_/upernet_tiny.py"
model = dict(
    backbone=dict(
        operator="elu",
        transfer=dict(plan="pretrained", source="work_dirs/imagenet_elu_tiny@mlpcopy+distill"),
    )
)
