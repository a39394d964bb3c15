# The heavier ImageNet-1K recipe (the settings of Xu et al., 2024, that the paper's Table C takes over in part):
# RandAugment, mixup, cutmix, random erasing, peak rate 4e-3, crop ratio .875. timm leaves colour jitter out where
# RandAugment is on. The transfer sets (--data) keep their own rate.
model = dict(data_preprocessor=dict(mixup=dict(mixup_alpha=0.8, cutmix_alpha=1.0)))
train_dataloader = dict(
    dataset=dict(transform=dict(auto_augment="rand-m9-mstd0.5-inc1", re_prob=0.25, re_mode="pixel"))
)
val_dataloader = dict(dataset=dict(transform=dict(crop_pct=0.875)))
test_dataloader = val_dataloader
optim_wrapper = dict(optimizer=dict(lr=4e-3))
param_scheduler = [
    # 2.5e-4 * 4e-3 = 1e-6
    dict(type="LinearLR", start_factor=2.5e-4, by_epoch=True, begin=0, end=50, convert_to_iter_based=True),
    # 300 - 50 = 250 epochs of cosine
    dict(
        type="CosineAnnealingLR", T_max=250, eta_min=1e-6, by_epoch=True, begin=50, end=300, convert_to_iter_based=True
    ),
]
