# ImageNet-1K classification (the paper's Table C recipe), elu attention, Base.
# Paper, random: top1 79.6, IN-A 18.1, IN-R 38.9, IN-S 27.2, IN-V2 66.8
# Paper, copy: top1 79.8, IN-A 19.1, IN-R 39.6, IN-S 27.8, IN-V2 67.2
# Paper, copy~dino: top1 80.2
# Paper, copy~mocov3: top1 79.9
# Paper, copy~ibot: top1 80.3
# Paper, copy~mae: top1 80.4
# python tools/train.py configs/imagenet_elu_base.py --init mlpcopy --distill
_base_ = "./_base_/imagenet_base.py"
model = dict(backbone=dict(operator="elu"))
