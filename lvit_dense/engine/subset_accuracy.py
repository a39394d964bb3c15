"""Accuracy on data that has some of the classes only, such as ImageNet-A's 200 of 1000."""

from collections.abc import Sequence
from typing import Any

from mmengine.registry import METRICS

from lvit_dense.engine.accuracy import TopKAccuracy


@METRICS.register_module()
class SubsetAccuracy(TopKAccuracy):
    """``accuracy/top1`` and ``accuracy/top5`` among the labels of the data set's ``metainfo["labels"]``.

    Scores of other classes are left out before ranking, as Hendrycks et al. (2021) evaluate ImageNet-A and -R.
    """

    def process(self, data_batch: Any, data_samples: Sequence[dict[str, Any]]) -> None:
        """Keep the label's position in the subset and the ranked predictions of each picture."""
        labels = list(self.dataset_meta["labels"])
        chosen = [
            {"scores": sample["scores"][labels], "label": labels.index(int(sample["label"]))} for sample in data_samples
        ]
        super().process(data_batch, chosen)
