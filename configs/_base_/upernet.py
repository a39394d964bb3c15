# UperNet 160k on a plain ViT: the recipe of ViT-Adapter's (Chen et al., 2023) plain baselines. No plain configuration
# was released, so the Softmax row of the tables is a reconstruction. Attention is global in every block for all rows.
default_scope = "mmseg"
norm_cfg = dict(type="SyncBN", requires_grad=True)

model = dict(
    type="EncoderDecoder",
    data_preprocessor=dict(
        type="SegDataPreProcessor",
        # 255 * (.485, .456, .406) and 255 * (.229, .224, .225), RGB
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        bgr_to_rgb=True,
        pad_val=0,
        seg_pad_val=255,
        size=(512, 512),
        # In a test the padding to whole patches happens here, so that mmseg crops it from the logits; in the backbone
        # it would stretch the prediction of a picture whose side is no multiple of 16.
        test_cfg=dict(size_divisor=16),
    ),
    # 512 x 512 pixels are 32 x 32 = 1024 tokens.
    backbone=dict(type="LinearViT", img_size=224, patch_size=16, drop_path_rate=0.1),
    decode_head=dict(
        type="UPerHead",
        in_index=[0, 1, 2, 3],
        pool_scales=(1, 2, 3, 6),
        channels=512,
        dropout_ratio=0.1,
        num_classes=150,
        norm_cfg=norm_cfg,
        align_corners=False,
        loss_decode=dict(type="CrossEntropyLoss", use_sigmoid=False, loss_weight=1.0),
    ),
    auxiliary_head=dict(
        type="FCNHead",
        in_index=2,
        channels=256,
        num_convs=1,
        concat_input=False,
        dropout_ratio=0.1,
        num_classes=150,
        norm_cfg=norm_cfg,
        align_corners=False,
        loss_decode=dict(type="CrossEntropyLoss", use_sigmoid=False, loss_weight=0.4),
    ),
    train_cfg={},
    # 512 - 341 = 171: neighbouring windows share a third of their side.
    test_cfg=dict(mode="slide", crop_size=(512, 512), stride=(341, 341)),
)
tta_model = dict(type="StreamingSegTTA")

train_cfg = dict(type="IterBasedTrainLoop", max_iters=160000, val_interval=16000)
val_cfg = dict(type="ValLoop")
test_cfg = dict(type="TestLoop")
optim_wrapper = dict(
    type="OptimWrapper",
    optimizer=dict(type="AdamW", lr=6e-5, betas=(0.9, 0.999), weight_decay=0.01),
    constructor="LayerDecayOptimWrapperConstructor",
    # lr of layer i of 14 (embedding 0, blocks 1..12, the rest 13): 6e-5 * .95 ** (13 - i)
    paramwise_cfg=dict(layer_decay_rate=0.95),
)
param_scheduler = [
    dict(type="LinearLR", start_factor=1e-6, by_epoch=False, begin=0, end=1500),
    # linear to 0 over the remaining 160000 - 1500 = 158500 iterations
    dict(type="PolyLR", power=1.0, eta_min=0.0, by_epoch=False, begin=1500, end=160000),
]
auto_scale_lr = dict(enable=False, base_batch_size=16)

default_hooks = dict(
    logger=dict(type="LoggerHook", interval=50, log_metric_by_epoch=False),
    checkpoint=dict(type="AtomicCheckpointHook", by_epoch=False, interval=16000, max_keep_ckpts=2, save_best="mIoU"),
    visualization=dict(type="SegVisualizationHook"),
)
visualizer = dict(type="SegLocalVisualizer", vis_backends=[dict(type="LocalVisBackend")], name="visualizer")
log_processor = dict(by_epoch=False)
