"""MoCo-v3 (Chen et al., 2021)."""

from typing import Any

from torch import Tensor, randn

from lvit_dense.transfer.reader import READERS, CheckpointReader, Converted, View, not_canonical, take
from lvit_dense.vit import ViT

HEADS = 12  # in every size, ViT-S (384 wide) included


@READERS.register("mocov3")
class MoCoV3Reader(CheckpointReader):
    """The base encoder, without its three-layer head. The fixed positions are stored: they are loaded, not recomputed.

    (Their axis order differs from MAE's.)
    """

    title = "MoCo-v3"
    native = {"num_heads": HEADS}

    def why_not(self, view: View) -> str | None:
        """See :class:`CheckpointReader`."""
        if not view.inside("base_encoder", "momentum_encoder"):
            return "keys are under neither 'base_encoder.' nor 'momentum_encoder.'"
        return not_canonical(_without_head(view)[0])

    def convert(self, view: View) -> Converted:
        """See :class:`CheckpointReader`."""
        state, dropped = _without_head(view)
        return Converted(state, {"num_heads": HEADS}, dropped)

    def lay_out(self, vit: ViT) -> dict[str, Any]:
        """Both encoders with heads, and the predictor, under DistributedDataParallel's prefix."""
        width = vit.embed_dim
        encoder = {**vit.state_dict(), "head.0.weight": randn(8, width), "head.1.running_mean": randn(8)}
        tensors = {f"module.base_encoder.{name}": value for name, value in encoder.items()}
        tensors |= {f"module.momentum_encoder.{name}": value + 1 for name, value in encoder.items()}
        return {"arch": "vit_small", "epoch": 300, "state_dict": {**tensors, "module.predictor.0.weight": randn(4, 8)}}


def _without_head(view: View) -> tuple[dict[str, Tensor], dict[str, str]]:
    state, dropped = dict(view.state), dict[str, str]()
    take(state, dropped, r"head\.\d.*", "projection head")
    return state, dropped
