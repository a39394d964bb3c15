# UperNet 160k on ADE20K, relu attention, Tiny.
# python tools/train.py configs/upernet_relu_tiny.py
_base_ = "./_base_/upernet_tiny.py"
model = dict(
    backbone=dict(
        operator="relu",
        transfer=dict(plan="pretrained", source="work_dirs/imagenet_relu_tiny@mlpcopy+distill"),
    )
)
