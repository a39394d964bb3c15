# Oxford-IIIT Pets below data/pets/oxford-iiit-pet: 3,680 (its trainval) + 3,669 pictures.
_base_ = "../_base_/transfer_set_600.py"
model = dict(num_classes=37)
train_dataloader = dict(dataset=dict(name="torch/oxford_iiit_pet", root="data/pets"))
val_dataloader = dict(dataset=dict(name="torch/oxford_iiit_pet", root="data/pets"))
test_dataloader = val_dataloader
