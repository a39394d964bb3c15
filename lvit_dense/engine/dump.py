"""Predictions of a segmentor in a file that one can keep."""

from collections.abc import Sequence
from typing import Any

import torch
from mmengine.evaluator import DumpResults
from mmengine.registry import METRICS


@METRICS.register_module()
class DumpSegResults(DumpResults):
    """Pickle the predicted label map and the metainfo of every picture.

    mmengine's DumpResults keeps all of a sample: 212 MB of logits for 150 classes at 512 x 683, 420 GB for ADE20K's
    validation set. The label map ``pred_sem_seg["data"]`` (1, H, W) is kept as uint8, or as int16 from 257 classes on.
    """

    def process(self, data_batch: Any, predictions: Sequence[dict[str, Any]]) -> None:
        """Keep copies without logits and ground truth; metrics that come later still find both in ``predictions``."""
        dtype = torch.uint8 if len(self.dataset_meta["classes"]) <= 256 else torch.int16
        kept = []
        for sample in predictions:
            small = {key: value for key, value in sample.items() if key != "seg_logits" and not key.startswith("gt_")}
            small["pred_sem_seg"] = {"data": sample["pred_sem_seg"]["data"].to(dtype)}
            kept.append(small)
        super().process(data_batch, kept)
