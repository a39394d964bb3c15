# ImageNet-1K classification (the paper's Table C recipe), ttt attention, Base.
# Paper, random: top1 82.2
# Paper, copy: top1 81.0
# Paper, mlpcopy: top1 82.9
# Paper, fullcopy: top1 83.1
# Paper, random+distill: top1 82.3
# Paper, copy+distill: top1 82.2
# Paper, mlpcopy+distill: top1 83.0
# Paper, fullcopy+distill: top1 83.2
# python tools/train.py configs/imagenet_ttt_base.py --init mlpcopy --distill
_base_ = "./_base_/imagenet_base.py"
model = dict(backbone=dict(operator="ttt"))
