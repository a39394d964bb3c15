"""Checkpoints of this project: mmengine files whose meta states the ViT's constructor arguments."""

from collections.abc import Mapping
from typing import Any

from torch import randn

from lvit_dense.operators import Grid
from lvit_dense.transfer.canonical import SourceError
from lvit_dense.transfer.reader import READERS, CheckpointReader, Converted, View, not_canonical
from lvit_dense.vit import ViT

META_KEY = "lvit_dense"


@READERS.register("lvit_dense")
class OwnReader(CheckpointReader):
    """``vit.*`` in a classifier, ``backbone.vit.*`` in a detector or segmentor."""

    title = "lvit_dense"
    segments = ("vit",)

    def why_not(self, view: View) -> str | None:
        """See :class:`CheckpointReader`."""
        if not isinstance(view.meta.get(META_KEY), Mapping):
            return f"meta has no {META_KEY!r} entry"
        if not view.inside("vit"):
            return f"keys are not under 'vit.' but under {view.prefix!r}"
        return not_canonical(view.state)

    def convert(self, view: View) -> Converted:
        """See :class:`CheckpointReader`."""
        return Converted(dict(view.state), known=_facts(view))

    def lay_out(self, vit: ViT) -> dict[str, Any]:
        """A segmentor's checkpoint, as mmengine's Runner saves it with our provenance hook."""
        state = {f"backbone.vit.{name}": value for name, value in vit.state_dict().items()}
        head = {"decode_head.conv_seg.weight": randn(3, vit.embed_dim, 1, 1)}
        return {"meta": {META_KEY: vit.facts, "epoch": 1}, "state_dict": {**state, **head}}


def _facts(view: View) -> dict[str, Any]:
    """Our constructor arguments -> facts that shapes do not tell."""
    stated = view.meta[META_KEY]
    try:
        arch, patch = stated["arch"], stated["patch_size"]
        height, width = stated["img_size"]
        return dict(
            num_heads=arch["num_heads"],
            operator=stated["operator"],
            grid=Grid(-(-height // patch), -(-width // patch)),
            pos_embed=stated["pos_embed"],
            act_layer=stated["act_layer"],
            norm_eps=stated["norm_eps"],
            k_bias=stated.get("k_bias", True),
            pixel_mean=None,
            pixel_std=None,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise SourceError(
            f"{view.spec}: meta[{META_KEY!r}] is not what ViT.facts gives ({type(error).__name__}: {error}); it holds "
            f"{sorted(stated)}"
        ) from error
