# ImageNet-1K classification (the paper's Table C recipe), mhla attention, Base.
# Paper, random: top1 81.8
# Paper, copy: top1 81.7
# Paper, copy~dino: top1 81.6
# Paper, copy~mocov3: top1 81.7
# Paper, copy~ibot: top1 81.8
# Paper, copy~mae: top1 82.0
# python tools/train.py configs/imagenet_mhla_base.py --init mlpcopy --distill
_base_ = "./_base_/imagenet_base.py"
model = dict(backbone=dict(operator="mhla"))
