"""MAE (He et al., 2022): pre-training files with the decoder, and fine-tuned ones.

Its encoder-only files are in timm's layout.
"""

from typing import Any

from torch import Tensor, randn

from lvit_dense.transfer.reader import READERS, CheckpointReader, Converted, View, not_canonical, take
from lvit_dense.vit import ViT


@READERS.register("mae")
class MAEReader(CheckpointReader):
    """``mask_token`` and ``decoder_*`` beside the encoder; or, fine-tuned under ``model``, fc_norm in place of norm."""

    title = "MAE"

    def why_not(self, view: View) -> str | None:
        """See :class:`CheckpointReader`."""
        pretrained = view.has(r"mask_token|decoder_")
        if not pretrained and not (view.prefix == "model." and "fc_norm.weight" in view.state):
            return "no mask_token, no decoder_*, and no fc_norm under 'model.'"
        if view.has(r"blocks\.[\d.]+\.ls1\.gamma"):
            return "LayerScale, which MAE has not"
        return not_canonical(_encoder(view)[0])

    def convert(self, view: View) -> Converted:
        """See :class:`CheckpointReader`."""
        state, dropped = _encoder(view)
        return Converted(state, dropped=dropped)

    def lay_out(self, vit: ViT) -> dict[str, Any]:
        """The pre-training file."""
        decoder = {
            "mask_token": randn(1, 1, 8),
            "decoder_pos_embed": randn(1, 5, 8),
            "decoder_embed.weight": randn(8, vit.embed_dim),
            "decoder_blocks.0.attn.qkv.weight": randn(24, 8),
            "decoder_norm.weight": randn(8),
            "decoder_pred.bias": randn(12),
        }
        return {"model": {**vit.state_dict(), **decoder}}


def _encoder(view: View) -> tuple[dict[str, Tensor], dict[str, str]]:
    state, dropped = dict(view.state), dict[str, str]()
    take(state, dropped, r"mask_token|decoder_.*", "masked-image modelling")
    return state, dropped
