"""The pre-norm transformer block of DeiT."""

from timm.layers import DropPath, LayerScale, Mlp
from torch import Tensor, nn

from lvit_dense.operators import AttentionOperator, Grid
from lvit_dense.vit.attention import Attention


class Block(nn.Module):
    """x + ls1(attn(norm1(x))), then x + ls2(mlp(norm2(x))); names as in timm.

    Args:
        init_values: initial LayerScale of both branches; None = no LayerScale.
        drop_path: probability of dropping a branch for an image during training.
    """

    attn: Attention

    def __init__(
        self,
        dim: int,
        operator: AttentionOperator,
        mlp_ratio: float = 4.0,
        qkv_bias: bool = True,
        init_values: float | None = None,
        drop_path: float = 0.0,
        act_layer: type[nn.Module] = nn.GELU,
        norm_eps: float = 1e-6,
        window_size: int | None = None,
        k_bias: bool = True,
    ) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps=norm_eps)
        self.attn = Attention(dim, operator, qkv_bias=qkv_bias, window_size=window_size, k_bias=k_bias)
        self.ls1 = nn.Identity() if init_values is None else LayerScale(dim, init_values)
        self.norm2 = nn.LayerNorm(dim, eps=norm_eps)
        self.mlp = Mlp(dim, int(dim * mlp_ratio), act_layer=act_layer)
        self.ls2 = nn.Identity() if init_values is None else LayerScale(dim, init_values)
        self.drop_path = DropPath(drop_path) if drop_path else nn.Identity()

    def forward(self, x: Tensor, grid: Grid, prefix: int, mask: Tensor | None = None) -> Tensor:
        """Map tokens (B, N, C) to (B, N, C)."""
        position = self.attn.operator.position(x, grid, prefix, mask)
        if position is not None:
            x = x + position
        x = x + self.drop_path(self.ls1(self.attn(self.norm1(x), grid, prefix, mask)))
        return x + self.drop_path(self.ls2(self.mlp(self.norm2(x))))
