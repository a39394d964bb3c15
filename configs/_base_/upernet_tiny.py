_base_ = ["./upernet.py", "./ade20k.py", "./runtime.py"]

# UperNet 160k, ViT-Tiny.
# The paper's dense tables have no row of this size: no expected numbers.
# Run: tools/dist_train.sh configs/upernet_relu_tiny.py 8; then
#   tools/dist_test.sh configs/upernet_relu_tiny.py CHECKPOINT 8 [--tta]
model = dict(
    backbone=dict(arch="tiny"),
    decode_head=dict(in_channels=[192, 192, 192, 192]),
    auxiliary_head=dict(in_channels=192),
)
