"""Checks of single COCO annotations: boxes, areas, polygons, run-length masks."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from lvit_dense.datasets.checks.finding import Finding

# findings for which mmdet leaves the annotation out
LEFT_OUT = frozenset({"zero-area", "degenerate-box", "no-such-image", "no-such-category"})
_SKIP = "Correct the annotation, or leave it out with --skip-bad"


def check_annotation(
    annotation: Mapping[str, Any], image: Mapping[str, Any], file: str, masks: bool = True
) -> list[Finding]:
    """Findings about one annotation of a picture of known size.

    Args:
        image: its entry in ``images``.
        file: the JSON, for messages.
        masks: whether training reads the segmentation.
    """
    who = f"annotation {annotation.get('id')} of {image.get('file_name')}"

    def found(kind: str, value: str, expected: str, cure: str = _SKIP, fatal: bool = True) -> Finding:
        return Finding(kind, file, f"{who}: {value}", expected, cure, fatal, annotation=annotation.get("id"))

    findings = _check_box(annotation, image, found) + _check_area(annotation, found)
    if not masks:
        return findings
    segmentation = annotation.get("segmentation")
    if isinstance(segmentation, Mapping):
        findings += _check_run_lengths(segmentation, annotation, image, found)
    else:
        findings += _check_polygons(segmentation, found)
    return findings


def _check_box(annotation: Mapping[str, Any], image: Mapping[str, Any], found: Callable[..., Finding]) -> list[Finding]:
    box = annotation.get("bbox")
    if not isinstance(box, (list, tuple)) or len(box) != 4 or not all(map(_is_number, box)):
        return [found("bad-box", f"bbox {box}", "[x, y, width, height] in pixels")]
    x, y, width, height = box
    across = min(x + width, image["width"]) - max(x, 0)
    down = min(y + height, image["height"]) - max(y, 0)
    if width < 1 or height < 1 or across <= 0 or down <= 0:
        value = f"bbox {box} in a picture of {image.get('width')}x{image.get('height')}"
        cure = "Correct it; mmdet leaves the instance out"
        return [found("degenerate-box", value, "a box of at least 1x1 pixels inside the picture", cure, fatal=False)]
    return []


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def _check_area(annotation: Mapping[str, Any], found: Callable[..., Finding]) -> list[Finding]:
    expected = "the mask's area in pixels (mmdet and COCO evaluation use it)"
    area = annotation.get("area")
    if not _is_number(area):
        return [found("missing-area", f"area {area!r}" if "area" in annotation else "no 'area'", expected)]
    if area <= 0:
        return [found("zero-area", f"area {area}", expected, "Correct it; mmdet leaves the instance out", fatal=False)]
    return []


def _check_polygons(polygons: Any, found: Callable[..., Finding]) -> list[Finding]:
    """Polygons are lists of x, y, x, y, ...: an even count of at least 6 numbers."""
    expected = "polygons of at least 3 points, [[x, y, x, y, x, y, ...], ...], or a run-length mask"
    if not isinstance(polygons, (list, tuple)) or len(polygons) == 0:
        return [found("missing-segmentation", f"segmentation is {polygons!r}", expected)]
    sizes = [len(polygon) if isinstance(polygon, (list, tuple)) else -1 for polygon in polygons]
    wrong = [size for size in sizes if size < 6 or size % 2]
    if not wrong:
        return []
    value = f"{len(wrong)} of {len(sizes)} polygons have {', '.join(map(str, sorted(set(wrong))))} numbers"
    value = value.replace("-1 numbers", "no list of numbers")
    if -1 in wrong:
        return [found("bad-polygon", value, expected)]
    # training ignores such polygons; COCO evaluation takes 4 numbers for a box
    cure = (
        "Correct it or leave it out with --skip-bad; mmdet ignores these polygons, COCO's evaluation takes 4 for a box"
    )
    return [found("bad-polygon", value, expected, cure, fatal=False)]


def _check_run_lengths(
    mask: Mapping[str, Any], annotation: Mapping[str, Any], image: Mapping[str, Any], found: Callable[..., Finding]
) -> list[Finding]:
    size, run_lengths = mask.get("size"), mask.get("counts")
    expected_size = [image["height"], image["width"]]
    if list(size or ()) != expected_size:
        return [found("bad-rle", f"run-length mask of size {size}", f"[height, width] = {expected_size}")]
    if not isinstance(run_lengths, (list, str)):
        return [found("bad-rle", f"counts are {type(run_lengths).__name__}", "a list of numbers or COCO's string")]
    if isinstance(run_lengths, list) and sum(run_lengths) != expected_size[0] * expected_size[1]:
        value = f"counts add up to {sum(run_lengths)}"
        return [found("bad-rle", value, f"height * width = {expected_size[0] * expected_size[1]} pixels")]
    if annotation.get("iscrowd"):
        cure = "Nothing to do: crowds are ignored in training and in evaluation"
        return [found("crowd", "a crowd with a run-length mask", "", cure, fatal=False)]
    return []
