# COCO 2017, boxes and masks: data/coco/{annotations,train2017,val2017}.
#   train2017: 118,287 pictures, of which the 117,266 with boxes are used; 117,266 / 16 = 7,330 iterations an epoch
#   val2017: 5,000 pictures
# 8 GPUs x 2 pictures = 16, the recipe's batch.
dataset_type = "CocoDataset"
data_root = "data/coco/"

train_pipeline = [
    dict(type="LoadImageFromFile"),
    dict(type="LoadAnnotations", with_bbox=True, with_mask=True),
    dict(type="Resize", scale=(1333, 800), keep_ratio=True),
    dict(type="RandomFlip", prob=0.5),
    dict(type="PackDetInputs"),
]
test_pipeline = [
    dict(type="LoadImageFromFile"),
    dict(type="Resize", scale=(1333, 800), keep_ratio=True),
    dict(type="LoadAnnotations", with_bbox=True, with_mask=True),
    dict(type="PackDetInputs", meta_keys=("img_id", "img_path", "ori_shape", "img_shape", "scale_factor")),
]
# Multi-scale test with boxes and masks (tools/test.py --tta): 3 scales x 2 flips = 6 views. The paper reports
# single-scale AP only, so the ratios .75, 1, 1.25 of (1333, 800) are our choice.
tta_pipeline = [
    dict(type="LoadImageFromFile"),
    dict(
        type="TestTimeAug",
        transforms=[
            [
                dict(type="Resize", scale=(1000, 600), keep_ratio=True),
                dict(type="Resize", scale=(1333, 800), keep_ratio=True),
                dict(type="Resize", scale=(1666, 1000), keep_ratio=True),
            ],
            [dict(type="RandomFlip", prob=0.0), dict(type="RandomFlip", prob=1.0)],
            [dict(type="LoadAnnotations", with_bbox=True, with_mask=True)],
            [
                dict(
                    type="PackDetInputs",
                    meta_keys=(
                        "img_id",
                        "img_path",
                        "ori_shape",
                        "img_shape",
                        "scale_factor",
                        "flip",
                        "flip_direction",
                    ),
                )
            ],
        ],
    ),
]

train_dataloader = dict(
    batch_size=2,
    num_workers=2,
    persistent_workers=True,
    sampler=dict(type="DefaultSampler", shuffle=True),
    batch_sampler=dict(type="AspectRatioBatchSampler"),
    dataset=dict(
        type=dataset_type,
        data_root=data_root,
        ann_file="annotations/instances_train2017.json",
        data_prefix=dict(img="train2017/"),
        filter_cfg=dict(filter_empty_gt=True, min_size=32),
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    batch_size=1,
    num_workers=2,
    persistent_workers=True,
    drop_last=False,
    sampler=dict(type="DefaultSampler", shuffle=False),
    dataset=dict(
        type=dataset_type,
        data_root=data_root,
        ann_file="annotations/instances_val2017.json",
        data_prefix=dict(img="val2017/"),
        test_mode=True,
        pipeline=test_pipeline,
    ),
)
test_dataloader = val_dataloader

val_evaluator = dict(type="CocoAP", ann_file=data_root + "annotations/instances_val2017.json", metric=["bbox", "segm"])
test_evaluator = val_evaluator
