"""COCO box and mask AP by faster-coco-eval: pycocotools' numbers, unrounded, in a fraction of the time."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from faster_coco_eval import COCO, COCOeval_faster
from mmengine.evaluator import BaseMetric
from mmengine.logging import MMLogger
from mmengine.registry import METRICS
from torch import Tensor

# mmdet's names for the first six of pycocotools' twelve numbers, the columns of the paper's Table D
from lvit_dense.engine.metric_names import COCO_COLUMNS as COLUMNS

KINDS = ("bbox", "segm")


@METRICS.register_module()
class CocoAP(BaseMetric):
    """``coco/bbox_mAP``, ``coco/segm_mAP_75`` and so on, as fractions; -1 where there is nothing to find.

    Args:
        ann_file: COCO JSON with the ground truth; all its pictures count, also those that were not tested.
        metric: ``"bbox"``, ``"segm"`` or both.
        classwise: log and return AP per class too, as ``coco/bbox_mAP_CLASS``.
        format_only: write ``<outfile_prefix>.bbox.json`` and ``.segm.json`` for a test server and evaluate nothing.
        outfile_prefix: where to write predictions; None = nowhere.
        kwargs: ``collect_device`` and ``prefix`` of mmengine's BaseMetric.
    """

    default_prefix = "coco"

    def __init__(
        self,
        ann_file: str,
        metric: str | Sequence[str] = KINDS,
        classwise: bool = False,
        format_only: bool = False,
        outfile_prefix: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.kinds = [metric] if isinstance(metric, str) else list(metric)
        unknown = [kind for kind in self.kinds if kind not in KINDS]
        if unknown:
            raise KeyError(f"metric must be among {', '.join(KINDS)}, got {', '.join(unknown)}")
        if format_only and outfile_prefix is None:
            raise ValueError("format_only=True writes predictions: say where with outfile_prefix")
        self.ann_file = ann_file
        self.classwise = classwise
        self.format_only = format_only
        self.outfile_prefix = outfile_prefix
        self._truth: COCO | None = None

    def process(self, data_batch: Any, data_samples: Sequence[dict[str, Any]]) -> None:
        """Keep the detections of each picture in COCO's result form, masks run-length encoded."""
        for sample in data_samples:
            found = sample["pred_instances"]
            boxes = found["bboxes"].cpu().double().numpy().copy()
            boxes[:, 2:] -= boxes[:, :2]
            self.results.append(
                {
                    "img_id": sample["img_id"],
                    "boxes": boxes,
                    "scores": found["scores"].cpu().numpy(),
                    "labels": found["labels"].cpu().numpy(),
                    "masks": _encode(found["masks"]) if "segm" in self.kinds else None,
                }
            )

    def compute_metrics(self, results: list[dict[str, Any]]) -> dict[str, float]:
        """Evaluate the pictures of all processes."""
        truth = self.truth
        category_ids = self._category_ids(truth)
        metrics: dict[str, float] = {}
        for kind in self.kinds:
            detections = _detections(results, category_ids, kind)
            if self.outfile_prefix is not None:
                path = Path(f"{self.outfile_prefix}.{kind}.json")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(detections))
            if not self.format_only:
                metrics |= self._evaluate(truth, detections, category_ids, kind)
        return metrics

    def reported_names(self) -> list[str]:
        """Keys of the metrics, without the prefix."""
        columns = list(COLUMNS)
        if self.classwise:
            columns += [f"mAP_{name}" for name in (self.dataset_meta or {}).get("classes", ())]
        return [f"{kind}_{column}" for kind in self.kinds for column in columns]

    @property
    def truth(self) -> COCO:
        """The ground truth, read when it is first needed."""
        if self._truth is None:
            if not Path(self.ann_file).is_file():
                raise FileNotFoundError(f"no COCO annotations at {self.ann_file} (evaluator's ann_file)")
            self._truth = COCO(self.ann_file)
        return self._truth

    def _category_ids(self, truth: COCO) -> list[int]:
        """Category of each label, in the order of mmdet's CocoDataset: by the JSON's ids, not by the class list."""
        classes = list((self.dataset_meta or {})["classes"])
        ids: list[int] = truth.getCatIds(catNms=classes)
        if len(ids) != len(classes):
            known = sorted(category["name"] for category in truth.dataset["categories"])
            absent = sorted(set(classes) - set(known))
            raise ValueError(
                f"{self.ann_file} has the categories {', '.join(known)}; the data set's metainfo.classes also names "
                f"{', '.join(absent) or 'one of them twice'}"
            )
        return ids

    def _evaluate(
        self, truth: COCO, detections: list[dict[str, Any]], category_ids: list[int], kind: str
    ) -> dict[str, float]:
        logger = MMLogger.get_current_instance()
        if not detections:
            logger.warning(f"no detection in any picture: every {kind} AP is 0")
            return {f"{kind}_{column}": 0.0 for column in COLUMNS}
        evaluation = COCOeval_faster(truth, truth.loadRes(detections), kind)
        evaluation.params.catIds = category_ids
        evaluation.params.imgIds = truth.getImgIds()
        evaluation.run()
        values = {f"{kind}_{column}": float(value) for column, value in zip(COLUMNS, evaluation.stats)}
        if self.classwise:
            # The evaluation sorts categories by id, whatever their order in the file.
            names = [category["name"] for category in truth.loadCats(list(evaluation.params.catIds))]
            per_class = {f"{kind}_mAP_{n}": ap for n, ap in zip(names, _class_ap(evaluation.eval["precision"]))}
            width = max(map(len, names))
            lines = (f"  {n:{width}}  {ap:.3f}" for n, ap in zip(names, per_class.values()))
            logger.info(f"{kind} AP per class\n" + "\n".join(lines))
            values |= per_class
        return values


def _encode(masks: Any) -> list[dict[str, Any]]:
    """Run-length code of (n, H, W) masks; masks that are encoded already stay as they are."""
    from pycocotools import mask as coder

    if not isinstance(masks, Tensor):
        return list(masks)
    codes = []
    for mask in masks.cpu().numpy():
        code = coder.encode(np.asfortranarray(mask, dtype=np.uint8))
        codes.append({"size": code["size"], "counts": code["counts"].decode()})
    return codes


def _detections(results: list[dict[str, Any]], category_ids: list[int], kind: str) -> list[dict[str, Any]]:
    """Flat COCO result list; mask results carry no box, so that their area is the mask's."""
    flat = []
    for result in results:
        shapes = result["boxes"].tolist() if kind == "bbox" else result["masks"]
        key = "bbox" if kind == "bbox" else "segmentation"
        for shape, score, label in zip(shapes, result["scores"].tolist(), result["labels"].tolist()):
            flat.append({"image_id": result["img_id"], "category_id": category_ids[label], "score": score, key: shape})
    return flat


def _class_ap(precision: np.ndarray) -> list[float]:
    """Mean over thresholds and recalls, (T, R, classes, areas, limits) -> one AP per class; -1 for absent classes."""
    aps = []
    for values in precision[:, :, :, 0, -1].transpose(2, 0, 1):
        valid = values[values > -1]
        aps.append(float(valid.mean()) if valid.size else -1.0)
    return aps
