_base_ = ["./upernet.py", "./ade20k.py", "./runtime.py"]

# UperNet 160k, ViT-Base.
# Expected after 160k iterations (mIoU single-scale / multi-scale, Table D and E, distilled students unless said
# otherwise):
#   softmax, DeiT weights 46.1 / 47.1 | relu mlpcopy 45.2 / 45.9, fullcopy 45.3 / 46.4, random 40.7 / 41.8
#   relu without distillation: mlpcopy 43.5 / 44.4, random 34.9 / 35.7 | ttt mlpcopy 46.7 / 47.5
# Run: tools/dist_train.sh configs/upernet_relu_base.py 8; then
#   tools/dist_test.sh configs/upernet_relu_base.py CHECKPOINT 8 [--tta]
model = dict(
    backbone=dict(arch="base"),
    decode_head=dict(in_channels=[768, 768, 768, 768]),
    auxiliary_head=dict(in_channels=768),
)
