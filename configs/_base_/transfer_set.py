# The paper's transfer sets (Table B): batch 512 = 8 GPUs x 64, the absolute peak rate 2e-3, 300 epochs with 50 of
# warm-up, cosine to 1e-6, 224 pixels. "val" is the data set's test split.
train_dataloader = dict(batch_size=64)
val_dataloader = dict(batch_size=64)
test_dataloader = val_dataloader

train_cfg = dict(max_epochs=300)
optim_wrapper = dict(optimizer=dict(lr=2e-3))
param_scheduler = [
    # 5e-4 * 2e-3 = 1e-6
    dict(type="LinearLR", start_factor=5e-4, by_epoch=True, begin=0, end=50, convert_to_iter_based=True),
    # 300 - 50 = 250 epochs of cosine
    dict(
        type="CosineAnnealingLR", T_max=250, eta_min=1e-6, by_epoch=True, begin=50, end=300, convert_to_iter_based=True
    ),
]
auto_scale_lr = dict(base_batch_size=512)
