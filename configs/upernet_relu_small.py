# UperNet 160k on ADE20K, relu attention, Small.
# python tools/train.py configs/upernet_relu_small.py
_base_ = "./_base_/upernet_small.py"
model = dict(
    backbone=dict(
        operator="relu",
        transfer=dict(plan="pretrained", source="work_dirs/imagenet_relu_small@mlpcopy+distill"),
    )
)
