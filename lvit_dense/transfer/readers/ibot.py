"""iBOT (Zhou et al., 2022): training and teacher files. Backbones without its marks are in timm's layout."""

from typing import Any

from torch import Tensor, randn

from lvit_dense.transfer.reader import READERS, CheckpointReader, Converted, View, not_canonical, take
from lvit_dense.vit import ViT


@READERS.register("ibot")
class IBOTReader(CheckpointReader):
    """DINO's layout with a mask embedding in the backbone, or a second projection head for patches."""

    title = "iBOT"

    def why_not(self, view: View) -> str | None:
        """See :class:`CheckpointReader`."""
        if not is_ibot(view):
            return "neither masked_embed nor a head for patches (last_layer2) beside a self-supervised backbone"
        return not_canonical(_without_mask(view)[0])

    def convert(self, view: View) -> Converted:
        """See :class:`CheckpointReader`."""
        state, dropped = _without_mask(view)
        return Converted(state, dropped=dropped)

    def lay_out(self, vit: ViT) -> dict[str, Any]:
        """The full training file."""
        backbone = {f"backbone.{name}": value for name, value in vit.state_dict().items()}
        head = {"head.mlp.0.weight": randn(8, vit.embed_dim), "head.last_layer2.weight_v": randn(4, 8)}
        student = {f"module.{name}": value + 1 for name, value in {**backbone, **head}.items()}
        student["module.backbone.masked_embed"] = randn(1, vit.embed_dim)
        return {"student": student, "teacher": {**backbone, **head}, "epoch": 100}


def is_ibot(view: View) -> bool:
    """Whether the keys in or, for training files, around the backbone are iBOT's."""
    around = [name for name in view.others if name.endswith("masked_embed") or ".last_layer2." in name]
    return "masked_embed" in view.state or (view.inside("teacher", "student") and bool(around))


def _without_mask(view: View) -> tuple[dict[str, Tensor], dict[str, str]]:
    state, dropped = dict(view.state), dict[str, str]()
    take(state, dropped, r"masked_embed", "masked-image modelling")
    return state, dropped
