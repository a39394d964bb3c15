"""CocoAP against pycocotools, all six columns of boxes and masks."""

import json
import os
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from mmengine.structures import BaseDataElement, InstanceData
from pycocotools import mask as coder
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from lvit_dense.engine.coco_ap import COLUMNS, CocoAP

CLASSES = ("disc", "bar", "absent")


def synthetic(folder: Path, pictures=12, seed=0) -> Path:
    """Ellipses of all COCO size ranges on 300 x 400, some crowds; category ids are not in the order of names."""
    random = np.random.default_rng(seed)
    images, annotations = [], []
    for image_id in range(1, pictures + 1):
        images.append(dict(id=image_id, file_name=f"{image_id}.jpg", height=300, width=400))
        for _ in range(random.integers(0, 7)):
            mask = ellipse(random.uniform(30, 270), random.uniform(30, 370), random.uniform(5, 110), random)
            ys, xs = np.nonzero(mask)
            box = [int(xs.min()), int(ys.min()), int(np.ptp(xs)) + 1, int(np.ptp(ys)) + 1]
            code = coder.encode(np.asfortranarray(mask))
            annotations.append(
                dict(
                    id=len(annotations) + 1,
                    image_id=image_id,
                    category_id=int(random.choice([7, 3])),
                    bbox=box,
                    area=int(mask.sum()),
                    iscrowd=int(random.random() < 0.1),
                    segmentation=dict(size=code["size"], counts=code["counts"].decode()),
                )
            )
    categories = [dict(id=7, name="disc"), dict(id=3, name="bar"), dict(id=9, name="absent")]
    path = folder / "truth.json"
    path.write_text(json.dumps(dict(images=images, annotations=annotations, categories=categories)))
    return path


def ellipse(y, x, radius, random):
    rows, columns = np.mgrid[:300, :400]
    return ((((rows - y) / radius) ** 2 + ((columns - x) / (radius * random.uniform(0.5, 1.5))) ** 2) < 1).astype(
        np.uint8
    )


def predictions(truth: Path, seed=1):
    """Data samples: the truth moved, partly relabelled, some missed, some invented."""
    random = np.random.default_rng(seed)
    coco = COCO(str(truth))
    labels = {category: label for label, category in enumerate(coco.getCatIds())}
    samples = []
    for image_id, image in coco.imgs.items():
        boxes, scores, kinds, masks = [], [], [], []
        for annotation in coco.imgToAnns[image_id]:
            for _ in range(random.integers(0, 3)):
                shift = random.integers(-6, 7, 2)
                mask = np.roll(coco.annToMask(annotation), shift, (0, 1))
                x, y, w, h = annotation["bbox"]
                boxes.append(
                    [x + shift[1], y + shift[0], x + shift[1] + w * random.uniform(0.8, 1.2), y + shift[0] + h]
                )
                scores.append(random.random())
                known = labels[annotation["category_id"]]
                kinds.append(known if random.random() < 0.9 else random.integers(len(labels)))
                masks.append(torch.from_numpy(mask).bool())
        found = InstanceData(
            bboxes=torch.tensor(boxes, dtype=torch.float32).reshape(-1, 4),
            scores=torch.tensor(scores, dtype=torch.float32),
            labels=torch.tensor(np.array(kinds, dtype=np.int64)),
            masks=torch.stack(masks) if masks else torch.zeros(0, image["height"], image["width"], dtype=torch.bool),
        )
        sample = BaseDataElement(metainfo=dict(img_id=image_id))
        sample.pred_instances = found
        samples.append(sample.to_dict())
    return samples


def ours(truth, samples, classes, **kwargs):
    metric = CocoAP(str(truth), **kwargs)
    metric.dataset_meta = dict(classes=classes)
    metric.process(None, samples)
    return metric.evaluate(size=len(samples))


def theirs(truth, prefix, kind):
    coco = COCO(str(truth))
    detections = json.loads(Path(f"{prefix}.{kind}.json").read_text())
    evaluation = COCOeval(coco, coco.loadRes(detections), kind)
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    return evaluation


def compare(truth, samples, classes, prefix):
    start = time.perf_counter()
    result = ours(truth, samples, classes, outfile_prefix=str(prefix))
    fast = time.perf_counter() - start
    start = time.perf_counter()
    for kind in ("bbox", "segm"):
        expected = theirs(truth, prefix, kind).stats[:6]
        assert [result[f"coco/{kind}_{column}"] for column in COLUMNS] == pytest.approx(expected, abs=1e-6)
        assert 0.05 < expected[0] < 0.95
    return fast, time.perf_counter() - start


@pytest.mark.parametrize("seed", range(3))
def test_equals_pycocotools(tmp_path, seed):
    truth = synthetic(tmp_path, seed=seed)
    compare(truth, predictions(truth, seed), CLASSES, tmp_path / "out")


def test_classwise_equals_pycocotools_on_one_class(tmp_path):
    truth = synthetic(tmp_path)
    result = ours(truth, predictions(truth), CLASSES, classwise=True, outfile_prefix=str(tmp_path / "out"))
    coco = COCO(str(truth))
    for category in coco.cats.values():
        evaluation = COCOeval(coco, coco.loadRes(json.loads((tmp_path / "out.bbox.json").read_text())), "bbox")
        evaluation.params.catIds = [category["id"]]
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
        assert result[f"coco/bbox_mAP_{category['name']}"] == pytest.approx(evaluation.stats[0], abs=1e-6)
    assert result["coco/bbox_mAP_absent"] == -1


def test_perfect_predictions_give_one(tmp_path):
    truth = synthetic(tmp_path)
    coco = COCO(str(truth))
    labels = {category: label for label, category in enumerate(coco.getCatIds())}
    samples = []
    for image_id in coco.imgs:
        annotations = [a for a in coco.imgToAnns[image_id] if not a["iscrowd"]]
        boxes = torch.tensor([a["bbox"] for a in annotations], dtype=torch.float32).reshape(-1, 4)
        boxes[:, 2:] += boxes[:, :2]
        masks = [torch.from_numpy(coco.annToMask(a)) for a in annotations]
        found = InstanceData(
            bboxes=boxes,
            scores=torch.ones(len(boxes)),
            labels=torch.tensor([labels[a["category_id"]] for a in annotations], dtype=torch.long),
            masks=torch.stack(masks) if masks else torch.zeros(0, 300, 400),
        )
        samples.append(dict(img_id=image_id, pred_instances=found.to_dict()))
    result = ours(truth, samples, CLASSES)
    assert result["coco/bbox_mAP"] == result["coco/segm_mAP"] == 1.0


def test_no_detection_is_zero_and_format_only_writes(tmp_path):
    truth = synthetic(tmp_path)
    nothing = predictions(truth)
    for sample in nothing:
        sample["pred_instances"] = {k: v[:0] for k, v in sample["pred_instances"].items()}
    assert set(ours(truth, nothing, CLASSES).values()) == {0.0}
    assert ours(truth, predictions(truth), CLASSES, format_only=True, outfile_prefix=str(tmp_path / "p")) == {}
    first = json.loads((tmp_path / "p.segm.json").read_text())[0]
    assert set(first) == {"image_id", "category_id", "score", "segmentation"} and first["category_id"] in (3, 7, 9)


def test_errors(tmp_path):
    truth = synthetic(tmp_path)
    with pytest.raises(ValueError, match=r"has the categories absent, bar, disc; .* also names cat"):
        ours(truth, predictions(truth), (*CLASSES, "cat"))
    with pytest.raises(FileNotFoundError, match=r"no COCO annotations at nowhere\.json"):
        ours("nowhere.json", [], CLASSES)
    with pytest.raises(KeyError, match="got keypoints"):
        CocoAP("x.json", metric="keypoints")
    with pytest.raises(ValueError, match="outfile_prefix"):
        CocoAP("x.json", format_only=True)


@pytest.mark.real
def test_equals_pycocotools_on_real_scenes(tmp_path, record_property):
    root = Path(os.environ.get("LVIT_REAL_DATA", Path(__file__).parents[3] / "shared" / "real")) / "scenes"
    truth = root / "instances_validation.json"
    if not truth.is_file():
        pytest.skip(f"no real data at {root}")
    classes = [category["name"] for category in json.loads(truth.read_text())["categories"]]
    fast, slow = compare(truth, predictions(truth), classes, tmp_path / "out")
    record_property("seconds", (fast, slow))
