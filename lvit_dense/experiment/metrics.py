"""The columns of the paper's tables: which result of which run each one is."""

from typing import NamedTuple


class Metric(NamedTuple):
    """One column.

    Attributes:
        task: stage whose run reports it.
        kind: kind of line in ``results.jsonl``: ``val``, ``tta`` (multi-scale), ``test@DATA``.
        name: metric key of that line.
        factor: makes it a percentage.
        tolerance: points by which a reproduction may differ. IN-1K: twice the largest standard deviation over seeds in
            the paper's Table F (0.2). The paper gives no spread for the others; these are choices of ours.
    """

    task: str
    kind: str
    name: str
    factor: float
    tolerance: float


METRICS = {
    "top1": Metric("imagenet", "val", "accuracy/top1", 1.0, 0.4),
    "APb": Metric("maskrcnn", "val", "coco/bbox_mAP", 100.0, 0.5),
    "APb50": Metric("maskrcnn", "val", "coco/bbox_mAP_50", 100.0, 0.7),
    "APb75": Metric("maskrcnn", "val", "coco/bbox_mAP_75", 100.0, 0.7),
    "APm": Metric("maskrcnn", "val", "coco/segm_mAP", 100.0, 0.5),
    "APm50": Metric("maskrcnn", "val", "coco/segm_mAP_50", 100.0, 0.7),
    "APm75": Metric("maskrcnn", "val", "coco/segm_mAP_75", 100.0, 0.7),
    "APb_ms": Metric("maskrcnn", "tta", "coco/bbox_mAP", 100.0, 0.5),
    "APm_ms": Metric("maskrcnn", "tta", "coco/segm_mAP", 100.0, 0.5),
    "mIoU": Metric("upernet", "val", "mIoU", 1.0, 0.7),
    "mIoU_ms": Metric("upernet", "tta", "mIoU", 1.0, 0.7),
    "IN-A": Metric("imagenet", "test@imagenet_a", "accuracy/top1", 1.0, 1.0),
    "IN-R": Metric("imagenet", "test@imagenet_r", "accuracy/top1", 1.0, 1.0),
    "IN-S": Metric("imagenet", "test@imagenet_sketch", "accuracy/top1", 1.0, 1.0),
    "IN-V2": Metric("imagenet", "test@imagenet_v2", "accuracy/top1", 1.0, 1.0),
}
