# Food-101 below data/food101/food-101: 75,750 + 25,250 pictures.
_base_ = "../_base_/transfer_set.py"
model = dict(num_classes=101)
train_dataloader = dict(dataset=dict(name="torch/food101", root="data/food101"))
val_dataloader = dict(dataset=dict(name="torch/food101", root="data/food101"))
test_dataloader = val_dataloader
