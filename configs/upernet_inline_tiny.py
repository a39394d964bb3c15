# UperNet 160k on ADE20K, inline attention, Tiny.
# python tools/train.py configs/upernet_inline_tiny.py
_base_ = "./_base_/upernet_tiny.py"
model = dict(
    backbone=dict(
        operator="inline",
        transfer=dict(plan="pretrained", source="work_dirs/imagenet_inline_tiny@mlpcopy+distill"),
    )
)
