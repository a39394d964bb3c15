# ImageNet-1K classification (the paper's Table C recipe), relu attention, Base.
# Paper, random: top1 76.5
# Paper, copy: top1 75.6
# Paper, mlpcopy: top1 80.2
# Paper, fullcopy: top1 80.8
# Paper, variant1: top1 80.7
# Paper, variant2: top1 80.6
# Paper, variant3: top1 80.7
# Paper, copy~dino: top1 75.2
# Paper, copy~mocov3: top1 75.7
# Paper, copy~ibot: top1 75.3
# Paper, copy~mae: top1 76.0
# Paper, random+distill: top1 79.4
# Paper, copy+distill: top1 79.9
# Paper, mlpcopy+distill: top1 81.4
# Paper, fullcopy+distill: top1 82.0
# Paper, variant1+distill: top1 81.8
# Paper, variant2+distill: top1 81.9
# Paper, variant3+distill: top1 81.9
# python tools/train.py configs/imagenet_relu_base.py --init mlpcopy --distill
_base_ = "./_base_/imagenet_base.py"
model = dict(backbone=dict(operator="relu"))
