"""Which numbers a validation will report, known before the first step: a misspelt ``save_best`` must not cost a run."""

from collections.abc import Sequence
from typing import Any

from mmengine.evaluator import BaseMetric

from lvit_dense.catalog import suggest

COCO_COLUMNS = ("mAP", "mAP_50", "mAP_75", "mAP_s", "mAP_m", "mAP_l")
# What mmseg's IoUMetric adds to aAcc for each entry of iou_metrics.
IOU_COLUMNS = {"mIoU": ("mIoU", "mAcc"), "mDice": ("mDice", "mAcc"), "mFscore": ("mFscore", "mPrecision", "mRecall")}


def check_save_best(save_best: Sequence[str] | None, runner: Any) -> None:
    """Compare ``save_best`` of a checkpoint hook with the names that the validation will report.

    Nothing is said where there is no validation, where an evaluator is not known here, or for ``auto``.

    Raises:
        ValueError: a name that the validation does not report; lists the names.
    """
    wanted = [key for key in save_best or () if key != "auto"]
    if not wanted or runner.val_loop is None:
        return
    setting = f"default_hooks.checkpoint.save_best={wanted[0] if len(wanted) == 1 else wanted}"
    reported = [reported_names(metric) for metric in runner.val_loop.evaluator.metrics]
    if any(names is None for names in reported):
        return
    known = [name for names in reported for name in names or ()]
    unknown = [key for key in wanted if key not in known]
    if unknown:
        raise ValueError(
            f"{setting}: the validation does not report {', '.join(unknown)}: {suggest(unknown[0], known)}"
        )


def reported_names(metric: BaseMetric) -> list[str] | None:
    """Names under which ``metric`` reports, prefix included; None = this class is not known."""
    kind = type(metric).__name__
    if hasattr(metric, "reported_names"):
        names = list(metric.reported_names())
    elif kind == "IoUMetric":
        names = ["aAcc", *(name for entry in metric.metrics for name in IOU_COLUMNS.get(entry, ()))]
    elif kind == "CocoMetric" and metric.metric_items is None:
        names = [f"{entry}_{column}" for entry in metric.metrics for column in COCO_COLUMNS]
    else:
        return None
    if getattr(metric, "format_only", False):
        return []
    return [f"{metric.prefix}/{name}" if metric.prefix else name for name in names]
