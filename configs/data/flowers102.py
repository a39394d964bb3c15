# Flowers-102 below data/flowers102/flowers-102: the training split alone, 1,020, and the test split, 6,149 pictures.
_base_ = "../_base_/transfer_set.py"
model = dict(num_classes=102)
# drop_last would throw 508 of 1,020 pictures away: 2 x 512 is one epoch.
train_dataloader = dict(drop_last=False, dataset=dict(name="torch/flowers102", root="data/flowers102"))
val_dataloader = dict(dataset=dict(name="torch/flowers102", root="data/flowers102"))
test_dataloader = val_dataloader
# 600 epochs with 100 of warm-up
train_cfg = dict(max_epochs=600)
param_scheduler = [
    # 5e-4 * 2e-3 = 1e-6
    dict(type="LinearLR", start_factor=5e-4, by_epoch=True, begin=0, end=100, convert_to_iter_based=True),
    # 600 - 100 = 500 epochs of cosine
    dict(
        type="CosineAnnealingLR", T_max=500, eta_min=1e-6, by_epoch=True, begin=100, end=600, convert_to_iter_based=True
    ),
]
