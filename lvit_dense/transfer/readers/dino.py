"""DINO (Caron et al., 2021): full training files. Its backbone files are in timm's layout."""

from typing import Any

from torch import randn

from lvit_dense.transfer.reader import READERS, CheckpointReader, Converted, View, not_canonical
from lvit_dense.transfer.readers.ibot import is_ibot
from lvit_dense.vit import ViT


@READERS.register("dino")
class DINOReader(CheckpointReader):
    """``teacher`` and ``student``, each a backbone and a projection head; the teacher is taken."""

    title = "DINO"

    def why_not(self, view: View) -> str | None:
        """See :class:`CheckpointReader`."""
        if not view.inside("teacher", "student"):
            return "keys are under neither 'teacher.' nor 'student.'"
        if is_ibot(view):
            return "masked_embed or a second last_layer: iBOT's layout"
        if view.has(r"blocks\.[\d.]+\.ls1\.gamma"):
            return "LayerScale: DINOv2's layout"
        return not_canonical(view.state)

    def convert(self, view: View) -> Converted:
        """See :class:`CheckpointReader`."""
        return Converted(dict(view.state))

    def lay_out(self, vit: ViT) -> dict[str, Any]:
        """Student under DistributedDataParallel's prefix, teacher without; other weights in the student."""
        state = vit.state_dict()
        head = {"head.mlp.0.weight": randn(8, vit.embed_dim), "head.last_layer.weight_v": randn(4, 8)}
        teacher = {**{f"backbone.{name}": value for name, value in state.items()}, **head}
        return {
            "student": {f"module.{name}": value + 1 for name, value in teacher.items()},
            "teacher": teacher,
            "optimizer": {"state": {0: {"exp_avg": randn(3)}}},
            "epoch": 800,
        }
