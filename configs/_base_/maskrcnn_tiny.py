_base_ = ["./maskrcnn.py", "./coco.py", "./runtime.py"]

# Mask R-CNN 1x, ViT-Tiny.
# The paper's dense tables have no row of this size: no expected numbers.
# Run: tools/dist_train.sh configs/maskrcnn_relu_tiny.py 8
model = dict(backbone=dict(arch="tiny"), neck=dict(in_channels=[192, 192, 192, 192]))
