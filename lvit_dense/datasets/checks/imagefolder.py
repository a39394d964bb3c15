"""Check of classification data in folders of classes, as timm reads them."""

import os
from dataclasses import replace
from functools import partial
from pathlib import Path

from timm.data.readers.img_extensions import get_img_extensions
from timm.utils.misc import natural_key

from lvit_dense.datasets.checks.finding import DataError, Finding
from lvit_dense.datasets.checks.job import CHECKS, Job, Opened, Survey, missing_folder
from lvit_dense.datasets.checks.pictures import check_picture
from lvit_dense.datasets.imagenet_labels import imagenet_labels
from lvit_dense.datasets.torchvision_sets import SETS, expected_layout

LAYOUT = "an ImageFolder: train/<class>/*.jpg and val/<class>/*.jpg"


@CHECKS.register("TimmDataset")
def survey_imagefolder(job: Job) -> Survey:
    """Survey one split of an ImageFolder; other data sets are left to their libraries, but must be there."""
    if job.settings.get("name", ""):
        return _survey_named(job, job.settings["name"])
    survey, classes = _survey_folders(job, LAYOUT)
    if classes:
        root, split = _folders(job)
        survey.findings += _check_other_splits(root, split, classes)
        survey.findings += _check_heads(job, split, len(classes))
    return survey


@CHECKS.register("ImageNetFolders")
def survey_imagenet_folders(job: Job) -> Survey:
    """Survey folders of ImageNet-1K's classes, named by WordNet id or label."""
    survey, found = _survey_folders(job, "class folders named by WordNet id or by label")
    if found:
        try:
            imagenet_labels(_folders(job)[1], job.settings.get("num_classes", len(found)))
        except DataError as error:
            survey.findings += error.findings
    return survey


def _folders(job: Job) -> tuple[Path, Path]:
    """Root, and the folder of the split."""
    root = Path(job.settings.get("root", ""))
    return root, root / job.settings.get("split", "")


def _survey_named(job: Job, name: str) -> Survey:
    root = Path(job.settings.get("root", ""))
    if name not in SETS or job.settings.get("download") or (root / SETS[name].folder).is_dir():
        return Survey()
    finding = missing_folder(job, root / SETS[name].folder, "root", SETS[name].holds)
    return Survey([replace(finding, expected="", cure=expected_layout(name, root))])


def _survey_folders(job: Job, layout: str) -> tuple[Survey, list[str]]:
    """Pictures in class folders, and the names of those that hold some."""
    root, split = _folders(job)
    for folder in (root, split):
        if not folder.is_dir():
            return Survey([missing_folder(job, folder, "root", layout)]), []
    classes, strangers, loose = _list_classes(split)
    names = sorted((name for name, files in classes.items() if files), key=natural_key)
    survey = Survey(counts={"classes": len(names), "pictures": sum(map(len, classes.values()))})
    survey.findings += _check_folders(split, classes, strangers, loose)
    for name in names:
        survey.tasks += [partial(_open, str(split / name / file)) for file in classes[name]]
    return survey, names


def _list_classes(split: Path) -> tuple[dict[str, list[str]], int, int]:
    """Class folders with their pictures; the number of other files in them, and of pictures outside of folders."""
    extensions = get_img_extensions(as_set=True)

    def is_picture(name: str) -> bool:
        return os.path.splitext(name)[1].lower() in extensions

    classes: dict[str, list[str]] = {}
    strangers = loose = 0
    for entry in sorted(os.scandir(split), key=lambda entry: entry.name):
        if entry.is_dir():
            files = sorted(os.listdir(entry.path))
            classes[entry.name] = [file for file in files if is_picture(file)]
            strangers += len(files) - len(classes[entry.name])
        elif is_picture(entry.name):
            loose += 1
    return classes, strangers, loose


def _check_folders(split: Path, classes: dict[str, list[str]], strangers: int, loose: int) -> list[Finding]:
    extensions = ", ".join(get_img_extensions())
    if not any(classes.values()):
        value = f"{len(classes)} class folders without a picture ({extensions}) and {loose} pictures outside of folders"
        cure = "Sort the pictures into one folder per class"
        return [Finding("no-data", str(split), value, LAYOUT, cure)]
    findings = []
    empty = [name for name, files in classes.items() if not files]
    if empty:
        value, cure = f"{len(empty)} class folders hold no picture: {', '.join(empty[:6])}", "Fill or remove them"
        findings.append(Finding("empty-class", str(split), value, f"pictures ({extensions}) in each", cure))
    if loose:
        value, cure = f"{loose} pictures outside of class folders", "Move them; timm makes a class '' of them"
        findings.append(Finding("loose-pictures", str(split), value, LAYOUT, cure))
    if strangers:
        value, cure = f"{strangers} files that are not read", "Nothing to do, or convert them"
        findings.append(Finding("other-files", str(split), value, extensions, cure, fatal=False))
    return findings


def _check_other_splits(root: Path, split: Path, names: list[str]) -> list[Finding]:
    """Labels are positions in the sorted folder names: all splits must hold the same folders."""
    findings = []
    for other in ("train", "val", "validation"):
        folder = root / other
        if folder == split or not folder.is_dir():
            continue
        theirs = {entry.name for entry in os.scandir(folder) if entry.is_dir()}
        differ = sorted(theirs ^ set(names))
        if differ:
            value = f"class folders that only one of {split.name}/ and {other}/ has: {', '.join(differ[:6])}"
            cure = "Give both the same folders; labels are positions in the sorted names, so they would shift"
            findings.append(Finding("class-names", str(root), value, "the same classes in every split", cure))
    return findings


def _check_heads(job: Job, split: Path, classes: int) -> list[Finding]:
    findings = []
    for key, count in job.heads.items():
        if count != classes and classes:
            value = f"{classes} class folders, {key}={count}"
            cure = f"Set --cfg-options {key}={classes}"
            expected = "as many outputs as classes"
            findings.append(Finding("class-count", str(split), value, expected, cure, fatal=classes > count))
    return findings


def _open(file: str) -> Opened:
    return Opened(check_picture(file))
