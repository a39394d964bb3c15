# UperNet 160k on ADE20K, ttt attention, Tiny.
# python tools/train.py configs/upernet_ttt_tiny.py
_base_ = "./_base_/upernet_tiny.py"
model = dict(
    backbone=dict(
        operator="ttt",
        transfer=dict(plan="pretrained", source="work_dirs/imagenet_ttt_tiny@mlpcopy+distill"),
    )
)
