"""The baseline: nothing is transferred."""

from lvit_dense.transfer.canonical import Source
from lvit_dense.transfer.plan import PLANS, Resolution, TransferPlan
from lvit_dense.vit import ViT


@PLANS.register("random")
class RandomPlan(TransferPlan):
    """Every parameter keeps its default initialisation."""

    needs_source = False

    def resolve(self, source: Source | None, model: ViT) -> Resolution:
        """See :class:`TransferPlan`."""
        return Resolution(random=dict.fromkeys(model.state_dict(), "not part of this plan"))
