# Flowers-102 below data/flowers102/flowers-102: the training split alone, 1,020, and the test split, 6,149 pictures.
_base_ = "../_base_/transfer_set_600.py"
model = dict(num_classes=102)
# drop_last would throw 508 of 1,020 pictures away: 2 x 512 is one epoch.
train_dataloader = dict(drop_last=False, dataset=dict(name="torch/flowers102", root="data/flowers102"))
val_dataloader = dict(dataset=dict(name="torch/flowers102", root="data/flowers102"))
test_dataloader = val_dataloader
