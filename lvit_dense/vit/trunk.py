"""One Vision Transformer for every operator, grid and teacher-native part."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from timm.layers import PatchEmbed, QuickGELU, to_2tuple, trunc_normal_
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from lvit_dense.catalog import suggest
from lvit_dense.operators import OPERATORS, AttentionOperator, Grid
from lvit_dense.vit.arch import resolve_arch
from lvit_dense.vit.block import Block
from lvit_dense.vit.embed import resize_positions, sincos_positions

OperatorSpec = str | Mapping[str, Any]
ACTIVATIONS = {"gelu": nn.GELU, "quick_gelu": QuickGELU}
POSITIONS = ("learned", "sincos", "none")


class Features(NamedTuple):
    """Tokens (B, prefix + grid.tokens, C) with what says how to read them."""

    tokens: Tensor
    grid: Grid
    prefix: int

    @property
    def patches(self) -> Tensor:
        """Patch tokens only, (B, grid.tokens, C)."""
        return self.tokens[:, self.prefix :]


class ViT(nn.Module):
    """Vision Transformer with timm's parameter names and one attention operator per block.

    Attributes:
        facts: the constructor arguments that a checkpoint needs to be read back, resolved and JSON-able.

    Args:
        arch: ``"tiny"``, ``"small"``, ``"base"``, ``"large"`` or the fields of :class:`Arch`.
        operator: a name, a mapping with the operator's switches, or a list with one of them per block.
        img_size: side or (height, width) in pixels that the position rows belong to; any other size can be given to
            ``forward``, the rows are then resized.
        class_token, pos_embed: None takes what the first operator declares (the paper's choice). Positions are
            ``"learned"``, ``"sincos"`` or ``"none"``.
        registers: register tokens after the class token, without positions.
        init_values: LayerScale's initial value; None = none.
        final_norm: LayerNorm on the output of ``forward``; leave it out where only ``intermediates`` is used.
        window_sizes: one entry per block, None = global; or None for all global.
        qkv_bias, k_bias, pre_norm, act_layer, norm_eps, patch_bias: native parts of teachers that differ from DeiT.
        with_cp: recompute block activations in the backward pass (non-re-entrant) to save memory.
    """

    def __init__(
        self,
        arch: str | Mapping[str, Any] | Sequence[float] = "base",
        operator: OperatorSpec | Sequence[OperatorSpec] = "relu",
        img_size: int | tuple[int, int] = 224,
        patch_size: int = 16,
        in_chans: int = 3,
        class_token: bool | None = None,
        pos_embed: str | None = None,
        registers: int = 0,
        qkv_bias: bool = True,
        k_bias: bool = True,
        init_values: float | None = None,
        pre_norm: bool = False,
        act_layer: str = "gelu",
        norm_eps: float = 1e-6,
        patch_bias: bool = True,
        drop_path_rate: float = 0.0,
        final_norm: bool = True,
        window_sizes: Sequence[int | None] | None = None,
        with_cp: bool = False,
    ) -> None:
        super().__init__()
        self.arch = resolve_arch(arch)
        self.embed_dim = self.arch.embed_dim
        self.patch_size = patch_size
        self.grid = Grid(*(-(-side // patch_size) for side in to_2tuple(img_size)))
        self.with_cp = with_cp
        if act_layer not in ACTIVATIONS:
            raise KeyError(f"unknown activation {act_layer!r}: {suggest(act_layer, ACTIVATIONS)}")
        operators = self._build_operators(operator)
        self._build_embedding(in_chans, patch_bias, class_token, pos_embed, registers, operators[0], pre_norm, norm_eps)
        self.blocks = self._build_blocks(
            operators,
            window_sizes,
            drop_path_rate,
            mlp_ratio=self.arch.mlp_ratio,
            qkv_bias=qkv_bias,
            k_bias=k_bias,
            init_values=init_values,
            act_layer=ACTIVATIONS[act_layer],
            norm_eps=norm_eps,
        )
        self.norm = nn.LayerNorm(self.embed_dim, eps=norm_eps) if final_norm else nn.Identity()
        self._reset_parameters()
        self.facts: dict[str, Any] = {
            "arch": self.arch._asdict(),
            "operator": operator,
            "img_size": [side * patch_size for side in self.grid],
            "patch_size": patch_size,
            "in_chans": in_chans,
            "class_token": self.cls_token is not None,
            "pos_embed": self.positions,
            "registers": registers,
            "qkv_bias": qkv_bias,
            "k_bias": k_bias,
            "init_values": init_values,
            "pre_norm": pre_norm,
            "act_layer": act_layer,
            "norm_eps": norm_eps,
            "patch_bias": patch_bias,
        }

    @property
    def prefix(self) -> int:
        """Number of tokens before the patch tokens: class token and registers."""
        return int(self.cls_token is not None) + (0 if self.reg_token is None else self.reg_token.shape[1])

    def forward(self, images: Tensor, mask: Tensor | None = None) -> Features:
        """Map images (B, in_chans, H, W) to normalised output tokens; ``mask`` (B, N) is True for real tokens."""
        tokens, grid = self.embed(images)
        for output in self._outputs(tokens, grid, mask):
            tokens = output
        return Features(self.norm(tokens), grid, self.prefix)

    def intermediates(
        self, images: Tensor, indices: Sequence[int], mask: Tensor | None = None
    ) -> tuple[list[Tensor], Grid]:
        """Patch tokens (B, grid.tokens, C) after the blocks in ``indices`` (0-based, ascending), without final norm."""
        tokens, grid = self.embed(images)
        wanted = set(indices)
        outputs = self._outputs(tokens, grid, mask)
        return [t[:, self.prefix :] for i, t in enumerate(outputs) if i in wanted], grid

    def embed(self, images: Tensor) -> tuple[Tensor, Grid]:
        """Patch, position and prefix tokens, (B, prefix + grid.tokens, C); sides are zero-padded to whole patches."""
        if min(images.shape[-2:]) < 1:
            raise ValueError(f"empty picture of shape {tuple(images.shape)}")
        patches = self.patch_embed(images)
        grid = Grid(*patches.shape[-2:])
        tokens = patches.flatten(2).transpose(1, 2)
        class_rows = int(self.cls_token is not None and self.learned_positions)
        if self.pos_embed is not None:
            positions = resize_positions(self.pos_embed[:, class_rows:], self.grid, grid)
            tokens = tokens + positions.to(tokens.dtype)
        prefix = []
        if self.cls_token is not None:
            cls = self.cls_token + self.pos_embed[:, :1] if class_rows else self.cls_token
            prefix.append(cls)
        if self.reg_token is not None:
            prefix.append(self.reg_token)
        if prefix:
            tokens = torch.cat([*(p.to(tokens.dtype).expand(tokens.shape[0], -1, -1) for p in prefix), tokens], 1)
        return self.norm_pre(tokens), grid

    def _outputs(self, tokens: Tensor, grid: Grid, mask: Tensor | None) -> Iterator[Tensor]:
        """Yield the residual stream after each block."""
        for block in self.blocks:
            if self.with_cp and torch.is_grad_enabled():
                tokens = checkpoint(block, tokens, grid, self.prefix, mask, use_reentrant=False)
            else:
                tokens = block(tokens, grid, self.prefix, mask)
            yield tokens

    def _build_operators(self, spec: OperatorSpec | Sequence[OperatorSpec]) -> list[AttentionOperator]:
        depth = self.arch.depth
        specs = [spec] * depth if isinstance(spec, (str, Mapping)) else list(spec)
        if len(specs) != depth:
            raise ValueError(f"operator lists {len(specs)} entries for {depth} blocks")
        return [OPERATORS.build(s, dim=self.embed_dim, num_heads=self.arch.num_heads) for s in specs]

    def _build_blocks(
        self,
        operators: Sequence[AttentionOperator],
        window_sizes: Sequence[int | None] | None,
        drop_path_rate: float,
        **options: Any,
    ) -> nn.ModuleList:
        """The blocks, with drop path rising from 0 to ``drop_path_rate``; ``options`` are the same for all of them."""
        depth = len(operators)
        windows: list[int | None] = [None] * depth if window_sizes is None else list(window_sizes)
        if len(windows) != depth:
            raise ValueError(f"window_sizes has {len(windows)} entries for {depth} blocks")
        rates = [drop_path_rate * i / max(depth - 1, 1) for i in range(depth)]
        return nn.ModuleList(
            Block(self.embed_dim, operator, drop_path=rate, window_size=window, **options)
            for operator, rate, window in zip(operators, rates, windows, strict=True)
        )

    def _build_embedding(
        self,
        in_chans: int,
        patch_bias: bool,
        class_token: bool | None,
        pos_embed: str | None,
        registers: int,
        operator: AttentionOperator,
        pre_norm: bool,
        norm_eps: float,
    ) -> None:
        dim = self.embed_dim
        class_token = operator.tokens.class_token if class_token is None else class_token
        pos_embed = operator.tokens.pos_embed if pos_embed is None else pos_embed
        if pos_embed not in POSITIONS:
            raise KeyError(f"unknown position embedding {pos_embed!r}: {suggest(pos_embed, POSITIONS)}")
        self.patch_embed = PatchEmbed(
            None, self.patch_size, in_chans, dim, flatten=False, bias=patch_bias, dynamic_img_pad=True
        )
        self.positions = pos_embed
        self.learned_positions = pos_embed == "learned"
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim)) if class_token else None
        self.reg_token = nn.Parameter(torch.zeros(1, registers, dim)) if registers else None
        self.pos_embed: Tensor  # None with "none", as torch does for a buffer that is not there
        if self.learned_positions:
            self.pos_embed = nn.Parameter(torch.zeros(1, int(class_token) + self.grid.tokens, dim))
        elif pos_embed == "none":
            self.register_buffer("pos_embed", None)
        else:
            # Computed, so kept out of checkpoints: another size's table must never be loaded over it.
            self.register_buffer("pos_embed", sincos_positions(self.grid, dim), persistent=False)
        self.norm_pre = nn.LayerNorm(dim, eps=norm_eps) if pre_norm else nn.Identity()

    def _reset_parameters(self) -> None:
        """Default initialisation of DeiT; operators have initialised their own parameters."""
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear) and ".operator." not in name:
                trunc_normal_(module.weight, std=0.02)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        for token in (self.cls_token, self.reg_token, self.pos_embed if self.learned_positions else None):
            if token is not None:
                trunc_normal_(token, std=0.02)
