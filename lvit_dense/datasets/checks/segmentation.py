"""Check of data in ADE20K's layout, and of every other data set of mmseg with one label file per picture."""

import inspect
import io
import os
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from mmengine.fileio import list_dir_or_file, list_from_file
from PIL import Image

from lvit_dense.datasets.checks.finding import DataError, Finding
from lvit_dense.datasets.checks.job import CHECKS, Job, Opened, Survey, missing_folder, wrong_heads
from lvit_dense.datasets.checks.pictures import DECODE_ERRORS, check_picture, check_whole, missing_file, read_header

LAYOUT = "ADEChallengeData2016's layout: images/{training,validation}/*.jpg, annotations/{training,validation}/*.png"
RIGHT_ARCHIVE = (
    "Take ADEChallengeData2016.zip (SceneParsing 2016, 150 classes), not the full ADE20K_2016/2021 with *_seg.png"
)
FEWEST_LABELS = 0.02  # share of pixels with a class below which the labels of a whole data set are doubted


class LabelRule(NamedTuple):
    """How label values are read: classes, whether 0 means unlabelled and 1 is the first class, the ignored value."""

    classes: int
    reduce_zero_label: bool
    ignore: int

    def valid(self) -> frozenset[int]:
        """Every value that a label file may hold."""
        return frozenset(range(self.classes + self.reduce_zero_label)) | {self.ignore}

    def ignored(self) -> frozenset[int]:
        """The values that the loss leaves out."""
        return frozenset({self.ignore, 0} if self.reduce_zero_label else {self.ignore})

    def text(self) -> str:
        """For messages."""
        if self.reduce_zero_label:
            return f"1..{self.classes}, 0 = unlabelled (reduce_zero_label=True), {self.ignore} = ignore"
        return f"0..{self.classes - 1} (reduce_zero_label=False), {self.ignore} = ignore"


@CHECKS.register("BaseSegDataset")
def survey_segmentation(job: Job) -> Survey:
    """Survey pictures and label files of one split."""
    prefix = setting(job, "data_prefix") or {}
    root, pictures = job.path(""), job.path(prefix.get("img_path", ""))
    labels = job.path(prefix["seg_map_path"]) if prefix.get("seg_map_path") is not None else None
    picture_suffix, label_suffix = setting(job, "img_suffix"), setting(job, "seg_map_suffix")
    archive = [] if label_suffix.endswith("_seg.png") else _wrong_archive(root if root.is_dir() else root.parent)
    for path, key in (
        (root, "data_root"),
        (pictures, "data_prefix.img_path"),
        (labels, "data_prefix.seg_map_path"),
    ):
        if path is not None and not path.is_dir():
            return Survey(archive or [missing_folder(job, path, key, LAYOUT)])
    listed = job.path(job.settings.get("ann_file") or "")
    if not listed.exists():
        cure = f"Correct {job.key('ann_file')}, or leave it out to use every picture"
        return Survey([Finding("missing-file", str(listed), "no such file", "a list of names without suffix", cure)])
    rule, findings = _rule(job)
    findings += _check_need(job) if labels is None else []
    names = list_pictures(job, pictures, picture_suffix)
    if not names:
        value = f"no picture *{picture_suffix}"
        findings.append(Finding("no-data", str(pictures), value, LAYOUT, f"Correct {job.key('data_prefix.img_path')}"))
    survey = Survey(archive + findings, counts={"pictures": len(names)})
    survey.findings += wrong_heads(job, len(job.classes()), str(root)) if job.classes() else []
    for name in names:
        label = labels / (name + label_suffix) if labels else None
        survey.tasks.append(partial(_open, pictures / (name + picture_suffix), label, rule))
    if labels is not None:
        survey.conclude = partial(_conclude, rule, str(labels), job.key("reduce_zero_label"))
    return survey


def list_pictures(job: Job, folder: Path, suffix: str) -> list[str]:
    """Names without suffix below ``folder``, of ``ann_file`` where the config has one, in mmseg's order."""
    listed = job.path(job.settings.get("ann_file") or "")
    if job.settings.get("ann_file") and listed.is_file():
        return [line.strip() for line in list_from_file(str(listed))]
    found = list_dir_or_file(str(folder), list_dir=False, suffix=suffix, recursive=True)
    return [name[: len(name) - len(suffix)] for name in sorted(found)]


def setting(job: Job, name: str) -> Any:
    """A setting of the data set: the config's, else the default of its class or of the nearest base that has one."""
    if name in job.settings:
        return job.settings[name]
    for base in job.cls.__mro__:
        parameters = inspect.signature(base).parameters if "__init__" in vars(base) else {}
        if name in parameters:
            return parameters[name].default
    return None


def _check_need(job: Job) -> list[Finding]:
    """The finding for a data set without label files whose labels are read."""
    pipeline = job.key("pipeline")
    loads = _has_step(job.settings.get("pipeline") or (), "LoadAnnotations")
    if not loads and (job.format_only or (job.split != "train" and not job.evaluators)):
        return []
    reader = f"{pipeline} has LoadAnnotations" if loads else "labels are needed"
    value = f"no data_prefix.seg_map_path, but {reader}"
    cure = f"remove LoadAnnotations from {pipeline}"
    if not job.format_only:
        predict = f"; to predict only, set {job.split}_evaluator.format_only=True and {cure}"
        cure = f"set {job.key('data_prefix.seg_map_path')}" + (predict if job.split != "train" else "")
    return [Finding("missing-labels", str(job.path("")), value, "a folder of label files", cure[0].upper() + cure[1:])]


def _has_step(pipeline: Any, name: str) -> bool:
    """Whether a transform of this type is in a pipeline, also within the views of TestTimeAug."""
    if isinstance(pipeline, Mapping):
        return pipeline.get("type") == name or _has_step(list(pipeline.values()), name)
    return isinstance(pipeline, (list, tuple)) and any(_has_step(step, name) for step in pipeline)


def _rule(job: Job) -> tuple[LabelRule, list[Finding]]:
    """The rule of this data set; class names that mmseg would refuse are a finding."""
    known = tuple(getattr(job.cls, "METAINFO", {}).get("classes") or ())
    wanted = job.classes()
    findings = []
    strangers = [name for name in wanted if known and name not in known]
    if strangers:
        value = f"{job.cls.__name__} does not know the classes {', '.join(strangers[:6])}"
        cure = (
            f"For classes of your own set {job.key('type')}=BaseSegDataset with metainfo.classes, "
            "img_suffix, seg_map_suffix and reduce_zero_label"
        )
        findings.append(Finding("class-names", str(job.path("")), value, f"some of its {len(known)} names", cure))
    classes = len(known or wanted) or 255
    return LabelRule(classes, setting(job, "reduce_zero_label"), setting(job, "ignore_index")), findings


def _wrong_archive(root: Path) -> list[Finding]:
    """The full ADE20K holds, beside each picture, an RGB-coded ``*_seg.png`` and no label file."""
    for parent, folders, files in islice(os.walk(root), 200):
        seg = next((file for file in files if file.endswith("_seg.png")), None)
        if seg is not None:
            value = f"{os.path.join(os.path.relpath(parent, root), seg)} is a label file of the full ADE20K"
            return [Finding("wrong-archive", str(root), value, LAYOUT, RIGHT_ARCHIVE)]
        # a handful of folders is enough; the folders of the right archive hold thousands of files each
        folders[:] = sorted(folders)[:4]
    return []


def _open(picture: Path, label: Path | None, rule: LabelRule) -> Opened:
    """Open a picture and its label file."""
    findings = check_picture(str(picture))
    if label is None:
        return Opened(findings)
    try:
        content = label.read_bytes()
    except OSError as error:
        return Opened([*findings, _of(missing_file(str(label), error), picture)])
    try:
        values = read_labels(str(label), content)
    except DataError as error:
        return Opened([*findings, *(_of(finding, picture) for finding in error.findings)])
    if picture.is_file() and not any(finding.fatal for finding in findings):
        header = read_header(str(picture), picture.read_bytes())
        if (header.width, header.height) != values.shape[::-1]:
            value = f"the labels are {values.shape[1]}x{values.shape[0]}"
            expected = f"the picture's {header.width}x{header.height}" + (
                f" (turned by its EXIF orientation {header.orientation})" if header.orientation > 1 else ""
            )
            cure = "Make both the same size, labels by nearest neighbour"
            findings.append(Finding("size-differs", str(label), value, expected, cure, picture=str(picture)))
    present = np.unique(values)
    findings += _check_values(present.tolist(), rule, label, picture)
    ignored = int(np.isin(values, list(rule.ignored())).sum())
    return Opened(findings, frozenset(present.tolist()) - rule.ignored(), ignored, values.size)


def inspect_labels(file: str, content: bytes) -> None:
    """Look at a label file; it is decoded only if it has 16 bits.

    Raises:
        DataError: no picture, cut off, colour instead of indices, or 16 bits with values over 255.
    """
    if _is_deep(content):
        _decode(file, content)
        return
    header = read_header(file, content)
    check_whole(file, content)
    if header.mode not in ("1", "L", "P"):
        value = f"a label file of mode {header.mode}"
        cure = "Write class indices, not colours; " + RIGHT_ARCHIVE
        raise DataError([Finding("colour-labels", file, value, "one channel of class indices (mode L or P)", cure)])


def read_labels(file: str, content: bytes) -> np.ndarray:
    """Decode a label file: (H, W) integers as stored, palette indices included.

    Raises:
        DataError: see :func:`inspect_labels`; also one that does not decode.
    """
    inspect_labels(file, content)
    return _decode(file, content)


def _decode(file: str, content: bytes) -> np.ndarray:
    try:
        values = np.asarray(Image.open(io.BytesIO(content))).astype(np.int64)
    except DECODE_ERRORS as error:
        cure = "Write the file again"
        raise DataError([Finding("undecodable", file, str(error), "a label file that decodes", cure)]) from error
    top = int(values.max())
    if top > 255:
        value = f"16-bit labels up to {top}: read as 8 bits, {top} would become {top % 256}"
        cure = "Write the labels as 8-bit PNG; at most 255 classes fit"
        raise DataError([Finding("deep-labels", file, value, "values 0..255", cure)])
    return values


def _is_deep(content: bytes) -> bool:
    """Whether this is a readable one-channel picture of more than 8 bits."""
    try:
        return Image.open(io.BytesIO(content)).mode in ("I", "I;16", "I;16B", "I;16L")
    except DECODE_ERRORS:
        return False


def _check_values(present: Iterable[int], rule: LabelRule, label: Path, picture: Path) -> list[Finding]:
    outside = sorted(set(present) - rule.valid())
    if not outside:
        return []
    value = f"label values {', '.join(map(str, outside[:8]))}{', ...' if len(outside) > 8 else ''}"
    cure = "Correct the labels, the class names, or reduce_zero_label (True: 1 is the first class; False: 0 is)"
    return [Finding("label-values", str(label), value, rule.text(), cure, picture=str(picture))]


def _conclude(rule: LabelRule, folder: str, key: str, opened: list[Opened]) -> list[Finding]:
    """Doubts that only all label files together raise: nothing labelled, or one class only.

    Few labels may be scribbles; where two classes shrink to the first and to ignored pixels, masks of 0 and 255, or of
    0 and 1 with ``reduce_zero_label``, are a mistake.
    """
    read = [one for one in opened if one.pixels]
    if not read:
        return []
    pixels, ignored = sum(one.pixels for one in read), sum(one.ignored for one in read)
    seen = frozenset().union(*(one.labels for one in read))
    lone = rule.classes > 1 and len(seen) == 1 and ignored > 0
    if pixels - ignored < FEWEST_LABELS * pixels or lone:
        binary = lone and rule.classes == 2 and seen == {int(rule.reduce_zero_label)}
        value = (
            f"in {len(read)} label files {100 * ignored / pixels:.0f} % of the pixels are ignored and "
            f"the only class values are {sorted(seen) or 'none'}"
        )
        cure = f"0/255 masks must become 0/1; for labels that begin at 0 set {key}=False; sparse labels may stay"
        expected = f"labels of {rule.classes} classes: {rule.text()}"
        return [Finding("no-labels", folder, value, expected, cure, fatal=binary or ignored == pixels)]
    return []


def _of(finding: Finding, picture: Path) -> Finding:
    """The same finding about a label file, tied to the picture that ``--skip-bad`` leaves out."""
    return Finding(**{**vars(finding), "picture": str(picture)})
