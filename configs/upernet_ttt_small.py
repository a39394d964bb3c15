# UperNet 160k on ADE20K, ttt attention, Small.
# python tools/train.py configs/upernet_ttt_small.py
_base_ = "./_base_/upernet_small.py"
model = dict(
    backbone=dict(
        operator="ttt",
        transfer=dict(plan="pretrained", source="work_dirs/imagenet_ttt_small@mlpcopy+distill"),
    )
)
