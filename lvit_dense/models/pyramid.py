"""Four feature maps at a quarter, a half, once and twice the patch stride from a ViT's single-stride tokens."""

from collections.abc import Sequence

from torch import Tensor, nn

from lvit_dense.operators import Grid

GROUPS = 32


class Pyramid(nn.Module):
    """The neck of the plain-ViT baselines of ViT-Adapter (Chen et al., 2023).

    Each level gets a fresh LayerNorm. With patch size 16 the strides are 4 (two transposed convolutions around a
    GroupNorm and a GELU), 8 (one transposed convolution), 16 (nothing) and 32 (max pooling).

    Args:
        dim: channels C of the tokens and of every map; a multiple of 32 because of the GroupNorm.
    """

    def __init__(self, dim: int, norm_eps: float = 1e-6) -> None:
        super().__init__()
        if dim % GROUPS:
            raise ValueError(f"the pyramid's GroupNorm has {GROUPS} groups: the width must be a multiple, got {dim}")
        self.norms = nn.ModuleList(nn.LayerNorm(dim, eps=norm_eps) for _ in range(4))
        self.up4 = nn.Sequential(
            nn.ConvTranspose2d(dim, dim, 2, 2),
            nn.GroupNorm(GROUPS, dim),
            nn.GELU(),
            nn.ConvTranspose2d(dim, dim, 2, 2),
        )
        self.up2 = nn.ConvTranspose2d(dim, dim, 2, 2)
        # ceil_mode: an odd grid keeps its last row, as a strided convolution would, and a 1 x 1 grid does not vanish.
        self.down2 = nn.MaxPool2d(2, 2, ceil_mode=True)
        for module in self.modules():
            if isinstance(module, nn.ConvTranspose2d):
                fan_out = module.out_channels * module.kernel_size[0] * module.kernel_size[1]
                nn.init.normal_(module.weight, std=(2 / fan_out) ** 0.5)
                assert module.bias is not None
                nn.init.zeros_(module.bias)

    def forward(self, tokens: Sequence[Tensor], grid: Grid) -> tuple[Tensor, ...]:
        """Map four (B, H*W, C) tensors to contiguous (B, C, h, w) maps of 4, 2, 1 and 1/2 (rounded up) times the grid.

        Contiguous on purpose: compiled mmcv's RoIAlign reads channels_last maps as if they were not.
        """
        maps = [
            norm(level).transpose(1, 2).unflatten(2, tuple(grid)).contiguous()
            for norm, level in zip(self.norms, tokens)
        ]
        stride4, stride8, stride16, stride32 = maps
        return (
            self.up4(stride4).contiguous(),
            self.up2(stride8).contiguous(),
            stride16,
            self.down2(stride32).contiguous(),
        )
