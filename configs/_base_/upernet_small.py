_base_ = ["./upernet.py", "./ade20k.py", "./runtime.py"]

# UperNet 160k, ViT-Small.
# The paper's dense tables have no row of this size: no expected numbers.
# Run: tools/dist_train.sh configs/upernet_relu_small.py 8; then
#   tools/dist_test.sh configs/upernet_relu_small.py CHECKPOINT 8 [--tta]
model = dict(
    backbone=dict(arch="small"),
    decode_head=dict(in_channels=[384, 384, 384, 384]),
    auxiliary_head=dict(in_channels=384),
)
