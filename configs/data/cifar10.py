# CIFAR-10 below data/cifar10/cifar-10-batches-py: 50,000 + 10,000 pictures of 32x32.
_base_ = "../_base_/transfer_set.py"
model = dict(num_classes=10)
train_dataloader = dict(dataset=dict(name="torch/cifar10", root="data/cifar10"))
val_dataloader = dict(dataset=dict(name="torch/cifar10", root="data/cifar10"))
test_dataloader = val_dataloader
