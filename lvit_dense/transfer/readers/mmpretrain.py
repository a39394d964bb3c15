"""MMPretrain's VisionTransformer (OpenMMLab)."""

from typing import Any

from torch import randn

from lvit_dense.transfer.reader import READERS, CheckpointReader, Converted, View, not_canonical, reverse, translate
from lvit_dense.transfer.readers.timm import without_distillation
from lvit_dense.vit import ViT

_KEYS = {
    "patch_embed.projection": "patch_embed.proj",
    "pre_norm": "norm_pre",
    "layers.*.ln1": "blocks.*.norm1",
    "layers.*.attn.qkv": "blocks.*.attn.qkv",
    "layers.*.attn.proj": "blocks.*.attn.proj",
    "layers.*.attn.gamma1.weight": "blocks.*.ls1.gamma",
    "layers.*.ln2": "blocks.*.norm2",
    "layers.*.ffn.layers.0.0": "blocks.*.mlp.fc1",
    "layers.*.ffn.layers.1": "blocks.*.mlp.fc2",
    "layers.*.ffn.gamma2.weight": "blocks.*.ls2.gamma",
    "ln1": "norm",
}


@READERS.register("mmpretrain")
class MMPretrainReader(CheckpointReader):
    """``backbone.layers.*``; heads and necks lie outside the backbone."""

    title = "MMPretrain"
    anchor = "patch_embed.projection.weight"

    def why_not(self, view: View) -> str | None:
        """See :class:`CheckpointReader`."""
        return not_canonical(without_distillation(translate(view.state, _KEYS))[0])

    def convert(self, view: View) -> Converted:
        """See :class:`CheckpointReader`."""
        state, dropped = without_distillation(translate(view.state, _KEYS))
        return Converted(state, dropped=dropped)

    def lay_out(self, vit: ViT) -> dict[str, Any]:
        """A classifier's checkpoint."""
        state = translate(vit.state_dict(), reverse(_KEYS))
        head = {"head.layers.head.weight": randn(10, vit.embed_dim)}
        return {"meta": {"epoch": 1}, "state_dict": {**{f"backbone.{n}": v for n, v in state.items()}, **head}}
