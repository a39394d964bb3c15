"""Google's JAX files of ViT and AugReg (Steiner et al., 2022), .npz."""

import re
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

_BLOCK = "Transformer.encoderblock_*."
_ATTENTION = _BLOCK + "MultiHeadDotProductAttention_1."
_KEYS = {
    "cls": "cls_token",
    "embedding": "patch_embed.proj",
    "Transformer.posembed_input.pos_embedding": "pos_embed",
    _BLOCK + "LayerNorm_0": "blocks.*.norm1",
    _ATTENTION + "query": "blocks.*.attn.query",
    _ATTENTION + "key": "blocks.*.attn.key",
    _ATTENTION + "value": "blocks.*.attn.value",
    _ATTENTION + "out": "blocks.*.attn.proj",
    _BLOCK + "LayerNorm_2": "blocks.*.norm2",
    _BLOCK + "MlpBlock_3.Dense_0": "blocks.*.mlp.fc1",
    _BLOCK + "MlpBlock_3.Dense_1": "blocks.*.mlp.fc2",
    "Transformer.encoder_norm": "norm",
}
_PARTS = ("query", "key", "value")


@READERS.register("augreg")
class AugRegReader(CheckpointReader):
    """Kernels are stored input first and split by heads, which tells the number of heads; pixels are in -1..1."""

    title = "ViT / AugReg"
    suffix = ".npz"
    anchor = "embedding.kernel"
    segments = ("opt", "target", "params")

    def why_not(self, view: View) -> str | None:
        """See :class:`CheckpointReader`."""
        if not view.has(r"Transformer\.encoderblock_\d+\.MultiHeadDotProductAttention_1\.query\.kernel"):
            return "no Transformer/encoderblock_*/MultiHeadDotProductAttention_1/query/kernel"
        return not_canonical(_renamed(view.state)[0])

    def convert(self, view: View) -> Converted:
        """See :class:`CheckpointReader`."""
        state, dropped = _renamed(view.state)
        query = next(value for name, value in view.state.items() if name.endswith("query.kernel"))
        known = {"num_heads": query.shape[1], "pixel_mean": (0.5, 0.5, 0.5), "pixel_std": (0.5, 0.5, 0.5)}
        return Converted(state, known, dropped)

    def lay_out(self, vit: ViT) -> dict[str, Any]:
        """Arrays of the .npz file."""
        state, heads = vit.state_dict(), vit.arch.num_heads
        for name in [name for name in state if ".attn.qkv." in name]:
            for part, rows in zip(_PARTS, state.pop(name).chunk(3)):
                split = rows.T.unflatten(1, (heads, -1)) if rows.ndim == 2 else rows.unflatten(0, (heads, -1))
                state[name.replace("qkv", part)] = split
        for name, value in state.items():
            if name == "patch_embed.proj.weight":
                state[name] = value.permute(2, 3, 1, 0)
            elif name.endswith("attn.proj.weight"):
                state[name] = value.T.unflatten(0, (heads, -1))
            elif value.ndim == 2 and name.endswith(".weight"):
                state[name] = value.T
        arrays = {"pre_logits/bias": torch.randn(8)}
        for name, value in translate(state, reverse(_KEYS)).items():
            leaf = "scale" if "Norm_" in name or "_norm" in name else "kernel"
            arrays[name.replace(".weight", f".{leaf}").replace(".", "/")] = value
        return arrays


def _renamed(original: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    state = translate({re.sub(r"\.(kernel|scale)$", ".weight", n): v for n, v in original.items()}, _KEYS)
    dropped: dict[str, str] = {}
    take(state, dropped, r"pre_logits\..*", "head")
    for name, value in state.items():
        if name == "patch_embed.proj.weight":
            state[name] = value.permute(3, 2, 0, 1)
        elif re.search(r"attn\.(query|key|value)\.weight", name):
            state[name] = value.flatten(1).T
        elif re.search(r"attn\.(query|key|value)\.bias", name):
            state[name] = value.flatten()
        elif name.endswith("attn.proj.weight"):
            state[name] = value.flatten(0, 1).T
        elif value.ndim == 2 and name.endswith(".weight"):
            state[name] = value.T
    for name in [name for name in state if ".attn.query." in name]:
        names = [name.replace("query", part) for part in _PARTS]
        if all(n in state for n in names):
            state[name.replace("query", "qkv")] = torch.cat([state.pop(n) for n in names])
    return state, dropped
