# ImageNet-R (Hendrycks et al., 2021), evaluation only: data/imagenet_r/<wnid>/*, 30,000 pictures of 200 of
# ImageNet-1K's classes; the scores of the other 800 are left out.
test_dataloader = dict(dataset=dict(type="ImageNetFolders", root="data/imagenet_r", split="", num_classes=200))
test_evaluator = dict(type="SubsetAccuracy")
