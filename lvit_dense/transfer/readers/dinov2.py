"""DINOv2 (Oquab et al., 2023), with registers (Darcet et al., 2023), original or timm names, FSDP-chunked blocks."""

import re
from typing import Any

import torch
from torch import Tensor

from lvit_dense.transfer.reader import READERS, CheckpointReader, Converted, View, not_canonical, take, with_class_row
from lvit_dense.transfer.readers.timm import has_patch_rows_only
from lvit_dense.vit import ViT

# FSDP training files number blocks as blocks.CHUNK.BLOCK, with the running index in BLOCK.
_CHUNKED = re.compile(r"blocks\.\d+\.(\d+)\.")


@READERS.register("dinov2")
class DINOv2Reader(CheckpointReader):
    """LayerScale in every block; a class position row, or registers."""

    title = "DINOv2"
    native = {"init_values": 1.0, "registers": 4}

    def why_not(self, view: View) -> str | None:
        """See :class:`CheckpointReader`."""
        state, _ = _renamed(view.state)
        if not any(name.endswith(".ls1.gamma") for name in state):
            return "no LayerScale (blocks.*.ls1.gamma)"
        if has_patch_rows_only(state, view.grid) and "reg_token" not in state:
            return "neither a class position row nor registers"
        return not_canonical(state)

    def convert(self, view: View) -> Converted:
        """See :class:`CheckpointReader`."""
        state, dropped = _renamed(view.state)
        if "cls_token" in state and has_patch_rows_only(state, view.grid):  # timm adds the class row to the class token
            state["pos_embed"] = with_class_row(state["pos_embed"])
        return Converted(state, dropped=dropped)

    def lay_out(self, vit: ViT) -> dict[str, Any]:
        """A training file: FSDP chunks of two blocks, registers, the mask token."""
        state: dict[str, Tensor] = vit.state_dict()
        for name in [name for name in state if name.startswith("blocks.")]:
            _, index, rest = name.split(".", 2)
            state[f"blocks.{int(index) // 2}.{index}.{rest}"] = state.pop(name)
        if "reg_token" in state:
            state["register_tokens"] = state.pop("reg_token")
        state["mask_token"] = torch.zeros(1, vit.embed_dim)
        head = {"dino_head.last_layer.weight_v": torch.randn(8, 4)}
        return {"teacher": {**{f"backbone.{n}": v for n, v in state.items()}, **head}, "optimizer": {}}


def _renamed(original: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    state = {_CHUNKED.sub(r"blocks.\1.", name): value for name, value in original.items()}
    dropped: dict[str, str] = {}
    if "register_tokens" in state:
        state["reg_token"] = state.pop("register_tokens")
    take(state, dropped, r"mask_token", "masked-image modelling")
    return state, dropped
