# UperNet 160k on ADE20K, inline attention, Base.
# python tools/train.py configs/upernet_inline_base.py
_base_ = "./_base_/upernet_base.py"
model = dict(
    backbone=dict(
        operator="inline",
        transfer=dict(plan="pretrained", source="work_dirs/imagenet_inline_base@mlpcopy+distill"),
    )
)
