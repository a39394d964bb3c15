# STL-10 below data/stl10/stl10_binary: 5,000 + 8,000 labelled pictures of 96x96.
_base_ = "../_base_/transfer_set.py"
model = dict(num_classes=10)
train_dataloader = dict(dataset=dict(name="torch/stl10", root="data/stl10"))
val_dataloader = dict(dataset=dict(name="torch/stl10", root="data/stl10"))
test_dataloader = val_dataloader
