"""What mmdet's ``CocoDataset`` leaves of the pictures and annotations of a JSON."""

from collections.abc import Iterable, Mapping
from typing import Any

from lvit_dense.datasets.checks.coco_instances import LEFT_OUT
from lvit_dense.datasets.checks.finding import Finding, counts
from lvit_dense.datasets.checks.job import Job


def check_filter(job: Job, content: Mapping[str, Any], found: Iterable[Finding], file: str) -> list[Finding]:
    """Say which pictures mmdet drops, and refuse a set of which no picture or no annotation remains.

    mmdet's rule, ``CocoDataset.filter_data``: outside of ``test_mode`` a picture stays that has an annotation of the
    config's classes, where ``filter_empty_gt`` asks for it, and no side below ``min_size``.

    Args:
        found: the findings about single annotations.
        file: the JSON, for messages.
    """
    images = content["images"]
    rule = {} if job.settings.get("test_mode") else job.settings.get("filter_cfg") or {}
    min_size, drop_empty = rule.get("min_size", 0), rule.get("filter_empty_gt", False)
    own = _own(job, content)
    filled = {annotation["image_id"] for annotation in own}
    empty = [image for image in images if image["id"] not in filled]
    small = [image for image in images if min(image["width"], image["height"]) < min_size]
    kept = len(images) - len({image["id"] for image in [*small, *(empty if drop_empty else ())]})
    if not kept or (job.split == "train" and len(empty) == len(images)):
        value = (
            f"{len(images)} images, {len(empty)} of them without an object of the config's classes"
            f"{f', {len(small)} below filter_cfg.min_size={min_size}' if small else ''}"
        )
        cure = f"Correct {job.key('ann_file')} or {job.key('filter_cfg')}"
        cure += f", or set {job.key('test_mode')}=True" if rule and job.split != "train" else ""
        return [Finding("no-data", file, value, "pictures with objects", cure)]
    unused = _nothing_used(job, len(content["annotations"]), own, found, file)
    return unused + _dropped(job, images, empty, small, rule, file)


def _own(job: Job, content: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The annotations of the config's classes."""
    names = job.classes()
    ids = {category["id"] for category in content["categories"] if category["name"] in names}
    return [annotation for annotation in content["annotations"] if annotation["category_id"] in ids]


def _nothing_used(
    job: Job, total: int, own: list[Mapping[str, Any]], found: Iterable[Finding], file: str
) -> list[Finding]:
    """The finding for a set that has annotations, all of which mmdet leaves out one by one."""
    left_out = [finding for finding in found if finding.kind in LEFT_OUT]
    ids = {finding.annotation for finding in left_out}
    if job.format_only or not total or any(one["id"] not in ids and not one.get("ignore") for one in own):
        return []
    kinds = [f"{total - len(own)} of other classes"] if total > len(own) else []
    kinds += [f"{count} {kind}" for kind, count in counts(left_out).items()]
    value = f"mmdet leaves out all {total} annotations ({', '.join(kinds)})"
    return [Finding("no-data", file, value, "annotations that are used", "Correct the annotations")]


def _dropped(
    job: Job,
    images: list[Mapping[str, Any]],
    empty: list[Mapping[str, Any]],
    small: list[Mapping[str, Any]],
    rule: Mapping[str, Any],
    file: str,
) -> list[Finding]:
    """Notes about pictures that are small or without objects."""
    findings = []
    if small:
        value = (
            f"{len(small)} of {len(images)} images are smaller than filter_cfg.min_size={rule['min_size']} "
            "and are dropped"
        )
        cure = f"Set {job.key('filter_cfg.min_size')}=0 to use them too"
        findings.append(Finding("small-pictures", file, value, "", cure, fatal=False))
    if empty and not job.format_only:
        drop = rule.get("filter_empty_gt", False)
        what = "are dropped (filter_cfg.filter_empty_gt=True)" if drop else "are used"
        value = f"{len(empty)} of {len(images)} images have no object and {what}"
        cure = f"Set {job.key('filter_cfg.filter_empty_gt')}=False to use them too" if drop else "Nothing to do"
        findings.append(Finding("empty-pictures", file, value, "", cure, fatal=False))
    return findings
