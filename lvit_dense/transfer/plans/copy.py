"""The paper's copies: attention (Copy), MLP (MLPCopy), all that matches (FullCopy), its variants of Table G."""

import dataclasses
from typing import ClassVar

from lvit_dense.transfer.canonical import GROUPS, Source
from lvit_dense.transfer.copying import fold_layer_scale, resolve_copy
from lvit_dense.transfer.plan import PLANS, Resolution, TransferPlan
from lvit_dense.vit import ViT

_ALL = frozenset(GROUPS) - {"head"}  # heads are always fresh


class _Copy(TransferPlan):
    """Copy ``groups``.

    Args:
        fold_layer_scale: multiply the source's LayerScale into the weights before it instead of copying it, for
            students without LayerScale. The same function at initialisation.
    """

    complete: ClassVar[bool] = False

    def __init__(self, fold_layer_scale: bool = False) -> None:
        self.fold_layer_scale = fold_layer_scale

    def resolve(self, source: Source | None, model: ViT) -> Resolution:
        """See :class:`TransferPlan`."""
        assert source is not None
        if self.fold_layer_scale:
            facts = source.facts._replace(layer_scale=False)
            source = dataclasses.replace(source, state=fold_layer_scale(source.state), facts=facts)
        return resolve_copy(source, model, self.groups, self.complete)


@PLANS.register("copy")
class CopyPlan(_Copy):
    """Attention projections of every block, with the LayerScale of their branch.

    Args:
        copy_proj: also the output projection.
        copy_norms: also the norm before the attention.
        fold_layer_scale: see the other copies.
    """

    def __init__(self, copy_proj: bool = True, copy_norms: bool = False, fold_layer_scale: bool = False) -> None:
        super().__init__(fold_layer_scale)
        self.groups = ["qkv", "ls1"] + ["proj"] * copy_proj + ["norm1"] * copy_norms


@PLANS.register("mlpcopy")
class MLPCopyPlan(_Copy):
    """fc1 and fc2 of every block, with the LayerScale of their branch.

    Args:
        copy_norms: also the norm before the MLP.
        fold_layer_scale: see the other copies.
    """

    def __init__(self, copy_norms: bool = False, fold_layer_scale: bool = False) -> None:
        super().__init__(fold_layer_scale)
        self.groups = ["mlp", "ls2"] + ["norm2"] * copy_norms


@PLANS.register("fullcopy")
class FullCopyPlan(_Copy):
    """Every matching weight but the head."""

    groups = _ALL


@PLANS.register("variant1")
class Variant1Plan(_Copy):
    """Table G: FullCopy without the class token (its position row counts as a position)."""

    groups = _ALL - {"class_token"}


@PLANS.register("variant2")
class Variant2Plan(_Copy):
    """Table G: Variant1 also without the position embedding."""

    groups = _ALL - {"class_token", "positions"}


@PLANS.register("variant3")
class Variant3Plan(_Copy):
    """Table G: Variant2 also without the patch embedding."""

    groups = _ALL - {"class_token", "positions", "patch_embed"}


@PLANS.register("pretrained")
class PretrainedPlan(_Copy):
    """All weights of a model with the same operator, for the next stage of training.

    The student must be filled completely. What a dense backbone has not (class token and its position row, final norm,
    head) is dropped.
    """

    groups = _ALL
    complete = True

    def __init__(self) -> None:
        super().__init__()
