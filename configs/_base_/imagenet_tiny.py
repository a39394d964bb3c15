_base_ = ["./imagenet.py", "./imagenet1k.py", "./runtime.py"]

# What --init copies from and --distill learns from: the official DeiT of this size.
teacher = "timm:deit_tiny_patch16_224.fb_in1k"

model = dict(backbone=dict(arch="tiny", drop_path_rate=0.0))
