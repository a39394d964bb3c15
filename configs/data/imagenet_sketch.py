# ImageNet-Sketch (Wang et al., 2019), evaluation only: data/imagenet_sketch/<wnid>/*, 50,889 drawings of all 1000
# classes.
test_dataloader = dict(dataset=dict(type="ImageNetFolders", root="data/imagenet_sketch", split="", num_classes=1000))
test_evaluator = dict(type="SubsetAccuracy")
