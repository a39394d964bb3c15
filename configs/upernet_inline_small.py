# UperNet 160k on ADE20K, inline attention, Small.
# python tools/train.py configs/upernet_inline_small.py
_base_ = "./_base_/upernet_small.py"
model = dict(
    backbone=dict(
        operator="inline",
        transfer=dict(plan="pretrained", source="work_dirs/imagenet_inline_small@mlpcopy+distill"),
    )
)
