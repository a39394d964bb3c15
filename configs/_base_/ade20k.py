# ADE20K, SceneParsing 2016: data/ade/ADEChallengeData2016/{images,annotations}/{training,validation}.
#   20,210 + 2,000 pictures, 150 classes; label files hold 1..150, 0 = unlabelled, read as 0..149 and 255 (ignored)
# 8 GPUs x 2 pictures = 16, the recipe's batch; 160,000 x 16 / 20,210 = 127 passes.
dataset_type = "ADE20KDataset"
data_root = "data/ade/ADEChallengeData2016"
crop_size = (512, 512)

train_pipeline = [
    dict(type="LoadImageFromFile"),
    dict(type="LoadAnnotations"),
    dict(type="RandomResize", scale=(2048, 512), ratio_range=(0.5, 2.0), keep_ratio=True),
    dict(type="RandomCrop", crop_size=crop_size, cat_max_ratio=0.75),
    dict(type="RandomFlip", prob=0.5),
    dict(type="PhotoMetricDistortion"),
    dict(type="PackSegInputs"),
]
test_pipeline = [
    dict(type="LoadImageFromFile"),
    dict(type="Resize", scale=(2048, 512), keep_ratio=True),
    # after Resize: labels keep the size of the picture file, and predictions are brought back to it
    dict(type="LoadAnnotations"),
    dict(type="PackSegInputs"),
]
# Multi-scale test (tools/test.py --tta), the second mIoU of the tables: (2048, 512) x .5, .75, 1, 1.25, 1.5, 1.75,
# each also flipped, 6 x 2 = 12 views.
tta_pipeline = [
    dict(type="LoadImageFromFile"),
    dict(
        type="TestTimeAug",
        transforms=[
            [
                dict(type="Resize", scale=(1024, 256), keep_ratio=True),
                dict(type="Resize", scale=(1536, 384), keep_ratio=True),
                dict(type="Resize", scale=(2048, 512), keep_ratio=True),
                dict(type="Resize", scale=(2560, 640), keep_ratio=True),
                dict(type="Resize", scale=(3072, 768), keep_ratio=True),
                dict(type="Resize", scale=(3584, 896), keep_ratio=True),
            ],
            [
                dict(type="RandomFlip", prob=0.0, direction="horizontal"),
                dict(type="RandomFlip", prob=1.0, direction="horizontal"),
            ],
            [dict(type="LoadAnnotations")],
            [dict(type="PackSegInputs")],
        ],
    ),
]

train_dataloader = dict(
    batch_size=2,
    num_workers=4,
    persistent_workers=True,
    sampler=dict(type="InfiniteSampler", shuffle=True),
    dataset=dict(
        type=dataset_type,
        data_root=data_root,
        data_prefix=dict(img_path="images/training", seg_map_path="annotations/training"),
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    batch_size=1,
    num_workers=4,
    persistent_workers=True,
    sampler=dict(type="DefaultSampler", shuffle=False),
    dataset=dict(
        type=dataset_type,
        data_root=data_root,
        data_prefix=dict(img_path="images/validation", seg_map_path="annotations/validation"),
        pipeline=test_pipeline,
    ),
)
test_dataloader = val_dataloader

val_evaluator = dict(type="IoUMetric", iou_metrics=["mIoU"])
test_evaluator = val_evaluator
