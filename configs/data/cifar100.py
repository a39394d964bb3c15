# CIFAR-100 below data/cifar100/cifar-100-python: 50,000 + 10,000 pictures of 32x32.
_base_ = "../_base_/transfer_set.py"
model = dict(num_classes=100)
train_dataloader = dict(dataset=dict(name="torch/cifar100", root="data/cifar100"))
val_dataloader = dict(dataset=dict(name="torch/cifar100", root="data/cifar100"))
test_dataloader = val_dataloader
