# ImageNet-1K classification (the paper's Table C recipe), ttt attention, Base.
# Paper, random: top1 82.2, IN-A 24.1, IN-R 42.3, IN-S 30.0, IN-V2 69.3
# Paper, copy: top1 81.0, IN-A 23.7, IN-R 42.2, IN-S 29.9, IN-V2 69.1
# Paper, mlpcopy: top1 82.9
# Paper, fullcopy: top1 83.1
# Paper, copy~dino: top1 80.6
# Paper, copy~mocov3: top1 81.1
# Paper, copy~ibot: top1 80.7
# Paper, copy~mae: top1 81.4
# Paper, random+distill: top1 82.3
# Paper, copy+distill: top1 82.2
# Paper, mlpcopy+distill: top1 83.0
# Paper, fullcopy+distill: top1 83.2
# python tools/train.py configs/imagenet_ttt_base.py --init mlpcopy --distill
_base_ = "./_base_/imagenet_base.py"
model = dict(backbone=dict(operator="ttt"))
