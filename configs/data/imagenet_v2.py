# ImageNet-V2 (Recht et al., 2019), matched frequency, evaluation only: data/imagenet_v2/<0..999>/*, 10,000 pictures in
# folders that are named by label.
test_dataloader = dict(dataset=dict(type="ImageNetFolders", root="data/imagenet_v2", split="", num_classes=1000))
test_evaluator = dict(type="SubsetAccuracy")
