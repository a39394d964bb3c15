# Oxford-IIIT Pets below data/pets/oxford-iiit-pet: 3,680 (its trainval) + 3,669 pictures.
_base_ = "../_base_/transfer_set.py"
model = dict(num_classes=37)
train_dataloader = dict(dataset=dict(name="torch/oxford_iiit_pet", root="data/pets"))
val_dataloader = dict(dataset=dict(name="torch/oxford_iiit_pet", root="data/pets"))
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
