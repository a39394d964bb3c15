"""``--skip-bad``: train without the pictures and annotations that the checks refuse, and say how many."""

import json
import os
from pathlib import Path

from mmengine.config import Config

from lvit_dense.datasets.checks.finding import counts, raise_fatal
from lvit_dense.datasets.checks.job import Job
from lvit_dense.datasets.checks.run import Progress, open_all, surveys
from lvit_dense.datasets.checks.segmentation import list_pictures, setting


def skip_bad(cfg: Config, folder: str | Path, workers: int = 0, progress: Progress | None = None) -> list[str]:
    """Open every picture of the training data and point the config to lists without the bad ones.

    COCO data gets a JSON without them, data of mmseg a list of names; both are written to ``folder``. timm passes over
    unreadable pictures of an ImageFolder by itself. Validation and test data are never thinned out.

    Args:
        cfg: its train_dataloader is changed in place.

    Returns:
        one line per data set that has something to leave out.

    Raises:
        DataError: something is wrong that leaving out pictures or annotations does not cure.
    """
    lines = []
    for index, (title, job, survey) in enumerate(surveys(cfg, ["train"])):
        opened = list(open_all(survey.tasks, workers, title, progress))
        findings = [*survey.findings, *(finding for one in opened for finding in one.findings)]
        raise_fatal(finding for finding in findings if finding.picture is None and finding.annotation is None)
        bad = [finding for finding in findings if finding.fatal or finding.kind == "bad-polygon"]
        if not bad:
            continue
        pictures = {finding.picture for finding in bad if finding.picture is not None}
        annotations = {finding.annotation for finding in bad if finding.annotation is not None}
        target = Path(folder).absolute() / f"skip_bad_{index}"
        _leave_out(job, pictures, annotations, target)
        kinds = ", ".join(f"{count} {kind}" for kind, count in counts(bad).items())
        lines.append(
            f"--skip-bad: {title} leaves out {len(pictures)} of {len(survey.tasks)} pictures and "
            f"{len(annotations)} annotations ({kinds})"
        )
    return lines


def _leave_out(job: Job, pictures: set[str], annotations: set[int], target: Path) -> None:
    """Write the thinned list beside ``target`` and make it the data set's ``ann_file``."""
    names = {base.__name__ for base in job.cls.__mro__}
    target.parent.mkdir(parents=True, exist_ok=True)
    if "CocoDataset" in names:
        file = target.with_suffix(".json")
        folder = job.path((job.settings.get("data_prefix") or {}).get("img", ""))
        content = json.loads(job.path(job.settings["ann_file"]).read_bytes())
        images = [image for image in content["images"] if str(folder / image["file_name"]) not in pictures]
        kept = {image["id"] for image in images}
        content["images"] = images
        content["annotations"] = [
            one for one in content["annotations"] if one["image_id"] in kept and one["id"] not in annotations
        ]
        _write(file, json.dumps(content))
    elif "BaseSegDataset" in names:
        file = target.with_suffix(".txt")
        folder = job.path((setting(job, "data_prefix") or {}).get("img_path", ""))
        suffix = setting(job, "img_suffix")
        kept_names = [n for n in list_pictures(job, folder, suffix) if str(folder / (n + suffix)) not in pictures]
        _write(file, "\n".join(kept_names) + "\n")
    else:
        return
    job.settings["ann_file"] = str(file)  # type: ignore[index]


def _write(file: Path, text: str) -> None:
    """Write in one step: every process of a distributed run makes the same list, and none may read half of it."""
    part = file.with_name(f"{file.name}.{os.getpid()}")
    part.write_text(text)
    part.replace(file)
