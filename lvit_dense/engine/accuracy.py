"""Top-k accuracy under mmpretrain's metric names."""

from collections.abc import Sequence
from typing import Any

import torch
from mmengine.evaluator import BaseMetric
from mmengine.registry import METRICS
from timm.utils import accuracy


@METRICS.register_module()
class TopKAccuracy(BaseMetric):
    """``accuracy/top1`` and ``accuracy/top5`` (or other ``topk``), in percent.

    Args:
        topk: ranks to count; those above the number of classes are left out.
    """

    default_prefix = "accuracy"

    def __init__(self, topk: Sequence[int] = (1, 5), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.topk = tuple(topk)

    def reported_names(self) -> list[str]:
        """Keys of the metrics, without the prefix."""
        return [f"top{k}" for k in self.topk]

    def process(self, data_batch: Any, data_samples: Sequence[dict[str, Any]]) -> None:
        """Keep the label and the ranked predictions of each picture."""
        for sample in data_samples:
            scores = sample["scores"]
            wanted = [k for k in self.topk if k <= scores.numel()]
            hits = accuracy(scores[None], torch.as_tensor(sample["label"], device=scores.device)[None], topk=wanted)
            self.results.append({k: float(hit) for k, hit in zip(wanted, hits)})

    def compute_metrics(self, results: list[dict[int, float]]) -> dict[str, float]:
        """Mean over pictures."""
        return {f"top{k}": sum(r[k] for r in results) / len(results) for k in results[0]}
