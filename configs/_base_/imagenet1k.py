# ImageNet-1K as an ImageFolder: data/imagenet/{train,val}/<wnid>/*.JPEG, 1,281,167 + 50,000 pictures, 1000 classes.
# 8 GPUs x 512 pictures = 4096, the recipe's batch.
mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

train_dataloader = dict(
    batch_size=512,
    num_workers=10,
    persistent_workers=True,
    drop_last=True,
    sampler=dict(type="DefaultSampler", shuffle=True),
    collate_fn=dict(type="default_collate"),
    dataset=dict(
        type="TimmDataset",
        root="data/imagenet",
        split="train",
        transform=dict(
            input_size=224,
            scale=(0.08, 1.0),
            hflip=0.5,
            color_jitter=0.4,
            interpolation="bicubic",
            mean=mean,
            std=std,
        ),
    ),
)
val_dataloader = dict(
    batch_size=512,
    num_workers=10,
    persistent_workers=True,
    drop_last=False,
    sampler=dict(type="DefaultSampler", shuffle=False),
    collate_fn=dict(type="default_collate"),
    dataset=dict(
        type="TimmDataset",
        root="data/imagenet",
        split="val",
        transform=dict(input_size=224, crop_pct=0.9, interpolation="bicubic", mean=mean, std=std),
    ),
)
test_dataloader = val_dataloader
val_evaluator = dict(type="TopKAccuracy", topk=(1, 5))
test_evaluator = val_evaluator
