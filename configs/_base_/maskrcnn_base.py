_base_ = ["./maskrcnn.py", "./coco.py", "./runtime.py"]

# Mask R-CNN 1x, ViT-Base.
# Expected after 12 epochs (box AP / mask AP on val2017, Table D and E, distilled students unless said otherwise):
#   softmax, DeiT weights 42.9 / 39.4 | relu mlpcopy 42.2 / 38.2, fullcopy 42.4 / 39.0, random 36.2 / 35.8
#   relu without distillation: mlpcopy 41.4 / 36.5, random 34.0 / 32.1 | ttt mlpcopy 43.2 / 39.1
# Run: tools/dist_train.sh configs/maskrcnn_relu_base.py 8
model = dict(backbone=dict(arch="base"), neck=dict(in_channels=[768, 768, 768, 768]))
