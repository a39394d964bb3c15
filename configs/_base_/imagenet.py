# The paper's ImageNet-1K recipe (Table C): AdamW, 300 epochs with 50 of warm-up, cosine to 1e-6, batch 4096,
# peak learning rate 2e-3 as it stands; --auto-scale-lr scales it by batch / 4096.
default_scope = "mmengine"

model = dict(
    type="LinearViTClassifier",
    backbone=dict(img_size=224, patch_size=16),
    num_classes=1000,
    label_smoothing=0.1,
    data_preprocessor=dict(type="ImageBatch"),
)

train_cfg = dict(by_epoch=True, max_epochs=300, val_interval=10)
val_cfg = {}
test_cfg = {}

optim_wrapper = dict(
    type="OptimWrapper",
    optimizer=dict(type="AdamW", lr=2e-3, betas=(0.9, 0.999), weight_decay=0.05),
    constructor="LayerDecayOptimWrapperConstructor",  # here for its no-decay rule: norms, biases, positions
    clip_grad=dict(max_norm=3.0),
)
param_scheduler = [
    # 5e-4 * 2e-3 = 1e-6
    dict(type="LinearLR", start_factor=5e-4, by_epoch=True, begin=0, end=50, convert_to_iter_based=True),
    # 300 - 50 = 250 epochs of cosine
    dict(
        type="CosineAnnealingLR", T_max=250, eta_min=1e-6, by_epoch=True, begin=50, end=300, convert_to_iter_based=True
    ),
]
auto_scale_lr = dict(enable=False, base_batch_size=4096)

default_hooks = dict(
    logger=dict(type="LoggerHook", interval=50),
    checkpoint=dict(type="AtomicCheckpointHook", interval=10, max_keep_ckpts=2, save_best="accuracy/top1"),
)
log_processor = dict(type="LogProcessor", window_size=50, by_epoch=True)
