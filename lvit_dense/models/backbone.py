"""The ViT as a backbone of mmdet and mmseg models."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from mmengine.model import BaseModule
from mmengine.registry import MODELS
from torch import Tensor

from lvit_dense.catalog import naming_unknown_arguments
from lvit_dense.models.pyramid import Pyramid
from lvit_dense.models.start import check_start, start_from
from lvit_dense.vit import Arch, ViT, resolve_arch
from lvit_dense.vit.trunk import OperatorSpec


@MODELS.register_module()
class LinearViT(BaseModule):
    """ViT without class token and a four-level pyramid: images (B, in_chans, H, W) to maps of strides 4, 8, 16, 32.

    Sides are zero-padded to whole patches, so with G = ceil(H / 16) the map heights are 4 G, 2 G, G and ceil(G / 2).
    Registered in mmengine's root registry, so ``type='LinearViT'`` is found from mmdet's and mmseg's scopes.

    Args:
        arch, operator, img_size, patch_size, in_chans, pos_embed, registers, qkv_bias, k_bias, pre_norm, act_layer,
            norm_eps, patch_bias, drop_path_rate, with_cp: see :class:`lvit_dense.vit.ViT`.
        init_values: learnable scales of the residual branches; the reference baseline has them, starting from 1.
            None = none.
        out_indices: the four blocks (0-based) whose outputs make the pyramid, the last block among them; None = after
            each quarter of the depth, which is 2, 5, 8, 11 for 12 blocks.
        window_size: attend inside windows of this many tokens a side in all blocks but ``global_indices``; None =
            global attention in all blocks.
        global_indices: blocks that stay global when there are windows; None = ``out_indices``.
        mask_padding: keep the batch's padding out of attention. Padding is recognised as the rows and columns at the
            bottom and right that are exactly 0 after normalisation.
        frozen_stages: -1 = train everything, 0 = freeze the embedding, n = also the first n blocks. Frozen parts stay
            in eval mode and get no gradient.
        transfer: ``dict(plan=..., source=...)``, applied in ``init_weights`` after ``init_cfg``; the report is then at
            ``transfer_report``.
    """

    @naming_unknown_arguments
    def __init__(
        self,
        arch: str | Mapping[str, Any] | Arch = "base",
        operator: OperatorSpec | Sequence[OperatorSpec] = "relu",
        img_size: int | tuple[int, int] = 224,
        patch_size: int = 16,
        in_chans: int = 3,
        pos_embed: str | None = None,
        registers: int = 0,
        qkv_bias: bool = True,
        k_bias: bool = True,
        init_values: float | None = 1.0,
        pre_norm: bool = False,
        act_layer: str = "gelu",
        norm_eps: float = 1e-6,
        patch_bias: bool = True,
        drop_path_rate: float = 0.0,
        out_indices: Sequence[int] | None = None,
        window_size: int | None = None,
        global_indices: Sequence[int] | None = None,
        mask_padding: bool = False,
        frozen_stages: int = -1,
        with_cp: bool = False,
        transfer: Mapping[str, Any] | None = None,
        init_cfg: dict[str, Any] | list[dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(init_cfg)
        depth = resolve_arch(arch).depth
        self.out_indices = _resolve_indices(out_indices, depth)
        self.vit = ViT(
            arch=arch,
            operator=operator,
            img_size=img_size,
            patch_size=patch_size,
            in_chans=in_chans,
            class_token=False,
            pos_embed=pos_embed,
            registers=registers,
            qkv_bias=qkv_bias,
            k_bias=k_bias,
            init_values=init_values,
            pre_norm=pre_norm,
            act_layer=act_layer,
            norm_eps=norm_eps,
            patch_bias=patch_bias,
            drop_path_rate=drop_path_rate,
            final_norm=False,
            window_sizes=_window_sizes(window_size, global_indices, self.out_indices, depth),
            with_cp=with_cp,
        )
        self.pyramid = Pyramid(self.vit.embed_dim)
        self.mask_padding = mask_padding
        self.frozen_stages = frozen_stages
        self._freeze()
        self.transfer = check_start(transfer)
        self.transfer_report: Any = None

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        """Return the four maps, contiguous (B, C, h, w), finest first."""
        mask = real_tokens(images, self.vit.patch_size, self.vit.prefix) if self.mask_padding else None
        tokens, grid = self.vit.intermediates(images, self.out_indices, mask)
        return self.pyramid(tokens, grid)

    def init_weights(self) -> None:
        """Apply ``init_cfg``, then the transfer: mmengine's own pass would overwrite it."""
        super().init_weights()
        if self.transfer is not None:
            self.transfer_report = start_from(self.vit, self.transfer)

    def train(self, mode: bool = True) -> "LinearViT":
        """Switch the mode of everything that is not frozen."""
        super().train(mode)
        for module in self._frozen_modules():
            module.eval()
        return self

    def get_layer_depth(self, param_name: str, prefix: str = "backbone.") -> tuple[int, int]:
        """Layer of a parameter for layer-wise decay, and the number of layers (depth + 2), as mmpretrain defines it.

        Args:
            param_name: full name in the model; names that do not start with ``prefix`` belong to necks and heads.

        Raises:
            KeyError: a parameter of the backbone that has no place.
        """
        last = self.vit.arch.depth + 1
        name = param_name.removeprefix(prefix)
        if not param_name.startswith(prefix) or name.startswith(("pyramid.", "vit.norm.")):
            return last, last + 1
        parts = name.split(".")
        if parts[:2] == ["vit", "blocks"]:
            return int(parts[2]) + 1, last + 1
        if parts[0] == "vit" and parts[1] in ("patch_embed", "pos_embed", "cls_token", "reg_token", "norm_pre"):
            return 0, last + 1
        raise KeyError(f"parameter {param_name!r} has no place in the backbone's layers")

    def _frozen_modules(self) -> list[torch.nn.Module]:
        if self.frozen_stages < 0:
            return []
        return [self.vit.patch_embed, self.vit.norm_pre, *self.vit.blocks[: self.frozen_stages]]

    def _freeze(self) -> None:
        depth = len(self.vit.blocks)
        if not -1 <= self.frozen_stages <= depth:
            raise ValueError(f"frozen_stages must be between -1 (none) and {depth}, got {self.frozen_stages}")
        for module in self._frozen_modules():
            module.requires_grad_(False)
        if self.frozen_stages >= 0:
            for parameter in (self.vit.pos_embed, self.vit.reg_token):
                if parameter is not None:
                    parameter.requires_grad_(False)


def real_tokens(images: Tensor, patch_size: int, prefix: int = 0) -> Tensor:
    """Mask (B, prefix + tokens), False for patches wholly inside the zero padding at the bottom and right.

    A normalised 8-bit pixel is never exactly 0 in all channels (the ImageNet means are no integers); a picture of
    nothing but zeros counts as real.
    """
    nonzero = (images != 0).any(1)
    sides = []
    for size, occupied in ((images.shape[2], nonzero.any(2)), (images.shape[3], nonzero.any(1))):
        position = torch.arange(1, size + 1, device=images.device)
        extent = (occupied * position).amax(1)
        starts = torch.arange(0, size, patch_size, device=images.device)
        sides.append(starts < torch.where(extent > 0, extent, size)[:, None])
    rows, columns = sides
    mask = (rows[:, :, None] & columns[:, None, :]).flatten(1)
    return torch.cat([mask.new_ones(len(mask), prefix), mask], 1) if prefix else mask


def _resolve_indices(indices: Sequence[int] | None, depth: int) -> tuple[int, ...]:
    if indices is None:
        if depth % 4:
            raise ValueError(f"{depth} blocks have no quarters: name the four out_indices")
        return tuple(depth // 4 * level - 1 for level in (1, 2, 3, 4))
    indices = tuple(indices)
    if len(indices) != 4 or list(indices) != sorted(set(indices)) or indices[0] < 0 or indices[-1] != depth - 1:
        raise ValueError(
            f"out_indices must be four ascending block numbers that end with the last block, {depth - 1} (later blocks "
            f"would train on nothing), got {indices}"
        )
    return indices


def _window_sizes(
    window_size: int | None, global_indices: Sequence[int] | None, out_indices: tuple[int, ...], depth: int
) -> list[int | None] | None:
    if window_size is None:
        if global_indices is not None:
            raise ValueError("global_indices names the blocks without windows: give window_size too")
        return None
    if window_size < 1:
        raise ValueError(f"window_size is a number of tokens, got {window_size}")
    chosen = out_indices if global_indices is None else tuple(global_indices)
    outside = [index for index in chosen if not 0 <= index < depth]
    if outside:
        raise ValueError(f"global_indices {outside} are not among the {depth} blocks")
    return [None if block in chosen else window_size for block in range(depth)]
