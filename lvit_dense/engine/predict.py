"""Predictions for pictures and videos by mmdet's and mmseg's own inferencers: drawn, and as plain data."""

import copy
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import mmcv
import numpy as np
from mmengine.config import Config
from numpy.typing import NDArray

from lvit_dense.engine.provenance import check_state
from lvit_dense.transfer.loading import load_file_tensors

Picture = NDArray[np.uint8]
PICTURES = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
VIDEOS = (".mp4", ".avi", ".mov", ".mkv", ".webm", ".mpg", ".mpeg", ".m4v")


class Source(NamedTuple):
    """A picture or video, and the name of what is written for it, without suffix."""

    path: Path
    name: str


class Prediction(NamedTuple):
    """What the model found in one picture.

    Attributes:
        data: plain numbers and strings for JSON.
        drawn: the picture with boxes and masks or colours of classes, RGB (H, W, 3).
        labels: for a segmentor, the class index of every pixel (H, W).
    """

    data: dict[str, Any]
    drawn: Picture
    labels: NDArray[np.integer[Any]] | None


class Predictor:
    """A trained Mask R-CNN or UperNet behind its library's inferencer.

    Args:
        cfg: a config with mmdet's or mmseg's scope.
        checkpoint: weights that must be exactly those of the config's model.
        device: ``"cpu"``, ``"cuda:0"``, ...; None = a GPU where there is one.
        score_thr: detections below it are left out.

    Raises:
        ValueError: a classifier's config, or a checkpoint of another model.
    """

    def __init__(self, cfg: Config, checkpoint: str, device: str | None = None, score_thr: float = 0.3) -> None:
        cfg = copy.deepcopy(cfg)
        scope = cfg.get("default_scope")
        if scope not in ("mmdet", "mmseg"):
            raise ValueError(f"predictions are drawn for Mask R-CNN and UperNet configs, this one has scope {scope!r}")
        cfg.visualizer.vis_backends = None  # pictures are written by who asked for them
        self.detects = scope == "mmdet"
        self.score_thr = score_thr
        self.inferencer = _inferencer(self.detects)(cfg, checkpoint, device=device, show_progress=False)
        tensors = load_file_tensors(checkpoint).tensors
        weights = {k.removeprefix("state_dict."): v for k, v in tensors.items() if k.startswith("state_dict.")}
        check_state(self.inferencer.model, weights or tensors)
        self.classes = list(self.inferencer.model.dataset_meta["classes"])
        if not self.detects:  # mmseg's inferencer sets Cityscapes' names until it draws by itself
            self.inferencer.visualizer.set_dataset_meta(**self.inferencer.model.dataset_meta)

    def __call__(self, picture: Picture) -> Prediction:
        """Predict a BGR picture (H, W, 3)."""
        if self.detects:
            sample = self.inferencer(picture, return_datasamples=True)["predictions"][0].cpu()
        else:
            sample = self.inferencer(picture, return_datasamples=True).cpu()
        visualizer = self.inferencer.visualizer
        options = {"pred_score_thr": self.score_thr} if self.detects else {}
        visualizer.add_datasample("", mmcv.bgr2rgb(picture), sample, draw_gt=False, show=False, **options)
        height, width = picture.shape[:2]
        data: dict[str, Any] = {"height": height, "width": width}
        if self.detects:
            return Prediction({**data, "objects": self._objects(sample)}, visualizer.get_image(), None)
        labels = sample.pred_sem_seg.data[0].numpy()
        return Prediction({**data, "classes": self._shares(labels)}, visualizer.get_image(), labels)

    def _objects(self, sample: Any) -> list[dict[str, Any]]:
        """Detections, best first, with masks in COCO's run-length code."""
        found = self.inferencer.pred2dict(sample)
        masks = found.get("masks") or [None] * len(found["labels"])
        columns = zip(found["labels"], found["scores"], found["bboxes"], masks)
        objects = [
            {"class": self.classes[label], "label": label, "score": score, "box": box, "mask": mask}
            for label, score, box, mask in columns
            if score >= self.score_thr
        ]
        return sorted(objects, key=lambda entry: -entry["score"])

    def _shares(self, labels: NDArray[np.integer[Any]]) -> dict[str, float]:
        """Share of the pixels of every class that occurs, largest first."""
        values, counts = np.unique(labels, return_counts=True)
        order = np.argsort(-counts)
        return {self.classes[values[i]]: round(float(counts[i] / labels.size), 4) for i in order}


def find_sources(paths: Sequence[str]) -> list[Source]:
    """Files as they are named, and all pictures and videos below folders.

    Raises:
        FileNotFoundError: a path that is not there, or a folder without pictures and videos.
        ValueError: a file of another kind, or two files whose results would have one name.
    """
    found = [source for path in paths for source in _expand(Path(path))]
    names: dict[str, Path] = {}
    sources = []
    for path, name in found:
        if _clash(name, names):
            name = f"{name}_{path.suffix[1:]}"
        if other := _clash(name, names):
            raise ValueError(f"{other} and {path} would both be written to {name}.*: predict them one by one")
        names[name] = path
        sources.append(Source(path, name))
    return sources


def targets(source: Source, out: Path) -> list[Path]:
    """The files below ``out`` that may be written for a source; a detector writes no label map."""
    endings = (".mp4", ".json") if source.path.suffix.lower() in VIDEOS else (".png", ".json", "_labels.png")
    return [out / f"{source.name}{ending}" for ending in endings]


def check_targets(sources: Sequence[Source], out: Path) -> None:
    """Raise ValueError where a source would be overwritten by its own or another's result, also through links."""
    read = {_identity(source.path): source.path for source in sources}
    for source in sources:
        for target in targets(source, out):
            if target.exists() and (path := read.get(_identity(target))):
                raise ValueError(
                    f"{path} is read and would be overwritten by what is written for {source.path}: "
                    f"give another folder than --out {out}"
                )


def _identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino


def _clash(name: str, names: dict[str, Path]) -> Path | None:
    """The earlier source that has this name, or whose label map (NAME_labels.png) has, or the other way round."""
    alike = (name, f"{name}_labels", name.removesuffix("_labels"))
    return next((names[other] for other in alike if other in names), None)


def _expand(path: Path) -> Iterator[Source]:
    if not path.exists():
        raise FileNotFoundError(f"no picture, folder or video {path}")
    if path.is_file():
        if path.suffix.lower() not in PICTURES + VIDEOS:
            raise ValueError(f"{path}: expected a picture ({' '.join(PICTURES)}) or a video ({' '.join(VIDEOS)})")
        yield Source(path, path.stem)
        return
    files = sorted(file for file in path.rglob("*") if file.suffix.lower() in PICTURES + VIDEOS and file.is_file())
    if not files:
        raise FileNotFoundError(f"no pictures or videos in {path} (looked for {' '.join(PICTURES + VIDEOS)})")
    yield from (Source(file, file.relative_to(path).with_suffix("").as_posix()) for file in files)


def _inferencer(detects: bool) -> Any:
    """The library's class; imported late, because only one of the two is needed."""
    if detects:
        from mmdet.apis import DetInferencer

        return DetInferencer
    from mmseg.apis import MMSegInferencer

    return MMSegInferencer
