"""The visual tower of CLIP (Radford et al., 2021) and OpenCLIP."""

from typing import Any

import torch
from torch import Tensor

from lvit_dense.transfer.reader import (
    READERS,
    CheckpointReader,
    Converted,
    View,
    not_canonical,
    reverse,
    take,
    translate,
)
from lvit_dense.vit import ViT

_KEYS = {
    "class_embedding": "cls_token",
    "positional_embedding": "pos_embed",
    "conv1": "patch_embed.proj",
    "ln_pre": "norm_pre",
    "transformer.resblocks.*.ln_1": "blocks.*.norm1",
    "transformer.resblocks.*.attn.in_proj_weight": "blocks.*.attn.qkv.weight",
    "transformer.resblocks.*.attn.in_proj_bias": "blocks.*.attn.qkv.bias",
    "transformer.resblocks.*.attn.out_proj": "blocks.*.attn.proj",
    "transformer.resblocks.*.ls_1": "blocks.*.ls1",
    "transformer.resblocks.*.ln_2": "blocks.*.norm2",
    "transformer.resblocks.*.mlp.c_fc": "blocks.*.mlp.fc1",
    "transformer.resblocks.*.mlp.c_proj": "blocks.*.mlp.fc2",
    "transformer.resblocks.*.ls_2": "blocks.*.ls2",
    "ln_post": "norm",
}
# Scalars that only OpenAI's own files hold; those models use QuickGELU.
_OPENAI = ("input_resolution", "context_length", "vocab_size")


@READERS.register("clip")
class CLIPReader(CheckpointReader):
    """Pre-norm, no patch bias, LayerNorm eps 1e-5; QuickGELU for OpenAI's files.

    OpenCLIP files do not tell their activation: GELU is assumed, ``facts=dict(act_layer="quick_gelu")`` says otherwise.
    """

    title = "CLIP / OpenCLIP"
    native = {"pre_norm": True, "patch_bias": False, "norm_eps": 1e-5, "act_layer": "quick_gelu"}
    anchor = "conv1.weight"

    def why_not(self, view: View) -> str | None:
        """See :class:`CheckpointReader`."""
        if not view.has("class_embedding") or not view.has(r"transformer\.resblocks\."):
            return "no class_embedding or no transformer.resblocks.*"
        state, _ = _renamed(view.state)
        return not_canonical(state)

    def convert(self, view: View) -> Converted:
        """See :class:`CheckpointReader`."""
        state, dropped = _renamed(view.state)
        quick = any(name.endswith(_OPENAI) for name in view.others)
        known = {
            "norm_eps": 1e-5,
            "act_layer": "quick_gelu" if quick else "gelu",
            "pixel_mean": (0.48145466, 0.4578275, 0.40821073),
            "pixel_std": (0.26862954, 0.26130258, 0.27577711),
        }
        return Converted(state, known, dropped)

    def lay_out(self, vit: ViT) -> dict[str, Any]:
        """OpenAI's state dict with a piece of the text tower."""
        state = translate(vit.state_dict(), reverse(_KEYS))
        state["class_embedding"] = state["class_embedding"].flatten()
        state["positional_embedding"] = state["positional_embedding"][0]
        state["proj"] = torch.randn(vit.embed_dim, 8)
        text = {"transformer.resblocks.0.ln_1.weight": torch.ones(8), "positional_embedding": torch.randn(77, 8)}
        scalars = {name: torch.tensor(1) for name in _OPENAI}
        return {**{f"visual.{name}": value for name, value in state.items()}, **text, **scalars}


def _renamed(original: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    state, dropped = translate(original, _KEYS), dict[str, str]()
    take(state, dropped, r"proj", "projection into the space shared with text")
    if "cls_token" in state:
        state["cls_token"] = state["cls_token"].reshape(1, 1, -1)
    if "pos_embed" in state:
        state["pos_embed"] = state["pos_embed"][None]
    return state, dropped
