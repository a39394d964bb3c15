_base_ = ["./maskrcnn.py", "./coco.py", "./runtime.py"]

# Mask R-CNN 1x, ViT-Small.
# The paper's dense tables have no row of this size: no expected numbers.
# Run: tools/dist_train.sh configs/maskrcnn_relu_small.py 8
model = dict(backbone=dict(arch="small"), neck=dict(in_channels=[384, 384, 384, 384]))
