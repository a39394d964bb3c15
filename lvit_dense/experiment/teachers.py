"""Short names of the pre-trained ViT-B that the paper's Table 1 copies from; ``--teacher dino`` takes them."""

# MoCo-v3's and iBOT's files are not in timm's hub: docs/data_preparation.md says where they come from.
TEACHERS = {
    "dino": "timm:vit_base_patch16_224.dino",
    "mae": "timm:vit_base_patch16_224.mae",
    "mocov3": "weights/mocov3_vit_base.pth.tar",
    "ibot": "weights/ibot_vit_base.pth",
}
