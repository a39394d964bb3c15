"""Check of data in COCO's layout: the JSON, its categories and annotations, and the pictures it names."""

import json
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from lvit_dense.datasets.checks.coco_filter import check_filter
from lvit_dense.datasets.checks.coco_instances import check_annotation
from lvit_dense.datasets.checks.finding import DataError, Finding
from lvit_dense.datasets.checks.job import CHECKS, Job, Opened, Survey, missing_folder, wrong_heads
from lvit_dense.datasets.checks.pictures import check_picture

LAYOUT = "COCO's layout: annotations/instances_{train,val}2017.json, train2017/*.jpg, val2017/*.jpg"


@CHECKS.register("CocoDataset")
def survey_coco(job: Job) -> Survey:
    """Survey one COCO data set; the JSON is always read whole."""
    root, file = job.path(""), job.path(job.settings.get("ann_file", ""))
    folder = job.path((job.settings.get("data_prefix") or {}).get("img", ""))
    for path, setting in ((root, "data_root"), (folder, "data_prefix.img")):
        if not path.is_dir():
            return Survey([missing_folder(job, path, setting, LAYOUT)])
    try:
        content = read_coco(file, job)
    except DataError as error:
        return Survey(error.findings)
    survey = Survey(counts={key: len(content[key]) for key in ("images", "annotations", "categories")})
    survey.findings += _check_categories(job, content, str(file))
    survey.findings += wrong_heads(job, len(job.classes()), str(file))
    survey.findings += _check_evaluators(job, file)
    survey.findings += _check_ids(content, str(file))
    annotations = _check_annotations(job, content, str(file))
    survey.findings += annotations + check_filter(job, content, annotations, str(file))
    survey.tasks = [partial(_open, folder / image["file_name"], image, file.name) for image in content["images"]]
    return survey


def read_coco(file: Path, job: Job) -> dict[str, Any]:
    """Read a COCO JSON and see that it has the three lists with the keys that everything needs.

    Annotations may be absent where nothing reads them, as in the JSON of a test server.

    Raises:
        DataError: no such file, no JSON, or not COCO's.
    """
    cure = f"Correct {job.key('ann_file')}"
    if not file.is_file():
        beside = sorted(path.name for path in file.parent.glob("*.json")) if file.parent.is_dir() else []
        value = f"no such file (beside it: {', '.join(beside) or 'no JSON'})"
        raise DataError([Finding("missing-json", str(file), value, LAYOUT, cure)])
    try:
        content = json.loads(file.read_bytes())
    except ValueError as error:
        raise DataError([Finding("bad-json", str(file), f"no JSON: {error}", "COCO's instances JSON", cure)]) from error
    if job.format_only and isinstance(content, dict):
        content.setdefault("annotations", [])
    needed = {
        "images": ("id", "file_name", "width", "height"),
        "annotations": ("id", "image_id", "category_id"),
        "categories": ("id", "name"),
    }
    for name, keys in needed.items():
        entries = content.get(name) if isinstance(content, dict) else None
        if not isinstance(entries, list):
            value = f"no list {name!r}" + (f" (keys: {', '.join(content)})" if isinstance(content, dict) else "")
            if name == "annotations" and job.split != "train":
                cure += f", or set {job.split}_evaluator.format_only=True to predict only"
            raise DataError([Finding("bad-json", str(file), value, f"lists {', '.join(needed)}", cure)])
        for entry in entries:
            absent = [key for key in keys if key not in entry]
            if absent:
                value = f"{name} entry {entry.get('id')} has no {', '.join(absent)}"
                raise DataError([Finding("bad-json", str(file), value, f"keys {', '.join(keys)}", "Complete the JSON")])
    return content


def _check_categories(job: Job, content: Mapping[str, Any], file: str) -> list[Finding]:
    """Names that the config and the JSON do not share; labels follow the JSON's order of the shared names."""
    wanted, there = job.classes(), [category["name"] for category in content["categories"]]
    shared = [name for name in there if name in wanted]
    cure = f"Set {job.key('metainfo.classes')} (and model num_classes) to the JSON's names, in its order"
    if not shared:
        value = (
            f"0 of {len(content['images'])} images kept; JSON has classes {{{_names(there)}}}, "
            f"config has {{{_names(wanted)}}}"
        )
        return [Finding("category-names", file, value, "the same class names in both", cure)]
    findings = []
    missing = [name for name in wanted if name not in there]
    if missing:
        value = f"the JSON lacks {len(missing)} of the config's {len(wanted)} classes: {{{_names(missing)}}}"
        findings.append(Finding("category-names", file, value, "every class (else labels shift)", cure))
    elif shared != list(wanted):
        value = f"order {{{_names(shared)}}}, config {{{_names(wanted)}}}"
        findings.append(Finding("category-order", file, value, "one order: names in pictures would be wrong", cure))
    foreign = {category["id"] for category in content["categories"] if category["name"] not in wanted}
    lost = sum(annotation["category_id"] in foreign for annotation in content["annotations"])
    if lost:
        strangers = _names(name for name in there if name not in wanted)
        value = f"{lost} annotations of classes that the config does not have: {{{strangers}}}"
        findings.append(
            Finding("foreign-class", file, value, "", f"They are left out. {cure} to use them", fatal=False)
        )
    return findings


def _names(names: Any, most: int = 6) -> str:
    """The first names, and how many more there are."""
    names = list(names)
    return ", ".join(names[:most]) + (f", ... {len(names) - most} more" if len(names) > most else "")


def _check_evaluators(job: Job, file: Path) -> list[Finding]:
    """The metric reads a JSON of its own: it must be the data set's."""
    findings = []
    for evaluator in job.evaluators:
        other = evaluator.get("ann_file")
        if other and Path(other).resolve() != file.resolve():
            cure = f"Set {job.split}_evaluator.ann_file={file} with --cfg-options"
            value = "the metric's ann_file" + ("" if Path(other).is_file() else ", which does not exist")
            findings.append(Finding("evaluator-json", str(other), value, f"the data set's, {file}", cure))
    return findings


def _check_ids(content: Mapping[str, Any], file: str) -> list[Finding]:
    findings = []
    for name in ("images", "annotations", "categories"):
        twice = [key for key, count in Counter(entry["id"] for entry in content[name]).items() if count > 1]
        if twice:
            value = f"{len(twice)} ids of {name} occur more than once, such as {twice[0]}"
            findings.append(Finding("duplicate-id", file, value, "unique ids", "Number them anew"))
    return findings


def _check_annotations(job: Job, content: Mapping[str, Any], file: str) -> list[Finding]:
    images = {image["id"]: image for image in content["images"]}
    categories = {category["id"] for category in content["categories"]}
    masks = any(step.get("with_mask") for step in job.settings.get("pipeline", ()))
    findings = []
    for annotation in content["annotations"]:
        image = images.get(annotation["image_id"])
        number = annotation["id"]
        who = f"annotation {number}"
        if image is None:
            value, cure = f"{who} is of image {annotation['image_id']}", "Left out by mmdet; remove it"
            findings.append(Finding("no-such-image", file, value, "an id in 'images'", cure, False, None, number))
            continue
        if annotation["category_id"] not in categories:
            value, cure = f"{who} has category {annotation['category_id']}", "Left out by mmdet; correct it"
            findings.append(
                Finding("no-such-category", file, value, "an id in 'categories'", cure, False, None, number)
            )
        findings += check_annotation(annotation, image, file, masks)
    return findings


def _open(path: Path, image: Mapping[str, Any], owner: str) -> Opened:
    return Opened(check_picture(str(path), (image["width"], image["height"]), owner))
