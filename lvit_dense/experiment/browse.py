"""What a data set of a config gives to the model, drawn: pictures with boxes, masks, label maps or class names."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from mmengine.config import Config
from mmengine.registry import DATASETS, VISUALIZERS, init_default_scope
from mmengine.visualization import Visualizer
from numpy.typing import NDArray
from PIL import Image, ImageDraw

Picture = NDArray[np.uint8]
# Steps that --raw keeps: reading and packing, nothing that changes the picture.
_READ_AND_PACK = ("Load", "Pack")


def open_dataset(cfg: Config, split: str, raw: bool = False) -> Any:
    """Build the data set of a split.

    Args:
        raw: leave out every transform between reading and packing, and keep pictures without objects.

    Raises:
        KeyError: the config has no such split.
    """
    if f"{split}_dataloader" not in cfg:
        known = ", ".join(key.removesuffix("_dataloader") for key in cfg if key.endswith("_dataloader"))
        raise KeyError(f"the config has no {split}_dataloader; it has: {known}")
    settings = cfg[f"{split}_dataloader"]["dataset"]
    if raw:
        _strip(settings)
    init_default_scope(cfg.get("default_scope", "mmengine"))
    return DATASETS.build(settings)


def draw_samples(cfg: Config, dataset: Any, count: int, split: str) -> Iterator[tuple[str, Picture]]:
    """Name and RGB picture (H, W, 3) of ``count`` samples at equal distances."""
    init_default_scope(cfg.get("default_scope", "mmengine"))
    visualizer = _visualizer(cfg, dataset)
    count = min(count, len(dataset))
    for index in (place * len(dataset) // count for place in range(count)):
        sample = dataset[index]
        if visualizer is None:
            yield f"{split}_{index:06d}", _draw_class(sample, dataset, cfg[f"{split}_dataloader"]["dataset"])
        else:
            yield f"{split}_{index:06d}", _draw_objects(visualizer, sample)


def contact_sheet(pictures: list[Picture], side: int = 320) -> Picture:
    """All pictures on one sheet, each scaled to fit a square of ``side`` pixels."""
    columns = int(np.ceil(np.sqrt(len(pictures))))
    rows = -(-len(pictures) // columns)
    sheet = Image.new("RGB", (columns * side, rows * side), (255, 255, 255))
    for place, picture in enumerate(pictures):
        image = Image.fromarray(picture)
        scale = (side - 8) / max(image.size)
        image = image.resize((max(1, round(image.width * scale)), max(1, round(image.height * scale))))
        left, top = place % columns * side, place // columns * side
        sheet.paste(image, (left + (side - image.width) // 2, top + (side - image.height) // 2))
    return np.asarray(sheet)


def save(picture: Picture, file: Path) -> None:
    """Write a picture, making its folder."""
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture).save(file)


def _strip(settings: Any) -> None:
    """Cut a data set's pipeline, or timm's transforms, down to reading and its filter off, also inside wrappers."""
    settings.pop("filter_cfg", None)
    for inner in settings.get("datasets", ()):
        _strip(inner)
    if "dataset" in settings:
        _strip(settings["dataset"])
    if "pipeline" in settings:
        settings["pipeline"] = [step for step in settings["pipeline"] if step["type"].startswith(_READ_AND_PACK)]
        for step in settings["pipeline"]:
            step.pop("meta_keys", None)  # they name what left-out transforms would have added
            if step["type"] == "PackDetInputs":
                step["meta_keys"] = ("img_path", "ori_shape", "img_shape")
            if step["type"] == "PackSegInputs":
                step["meta_keys"] = ("img_path", "seg_map_path", "ori_shape", "img_shape", "reduce_zero_label")
    if "transform" in settings:
        keep = {
            key: settings["transform"][key] for key in ("input_size", "mean", "std") if key in settings["transform"]
        }
        settings["transform"] = {**keep, "no_aug": True}


def _visualizer(cfg: Config, dataset: Any) -> Visualizer | None:
    """The config's visualizer with the data set's names and colours; None for classification."""
    if "visualizer" not in cfg:
        return None
    visualizer = VISUALIZERS.build({**cfg.visualizer, "vis_backends": None, "name": f"browse_{id(dataset)}"})
    visualizer.dataset_meta = dataset.metainfo
    return visualizer


def _draw_objects(visualizer: Visualizer, sample: Mapping[str, Any]) -> Picture:
    """Boxes and masks, or the label map, over the picture as the model would get it."""
    picture = np.ascontiguousarray(sample["inputs"].permute(1, 2, 0).numpy()[..., ::-1])
    truth = sample["data_samples"].cpu()
    objects = truth.get("gt_instances")
    if objects is not None:
        if hasattr(objects.get("bboxes"), "tensor"):
            objects.bboxes = objects.bboxes.tensor
        if objects.get("masks") is not None:
            objects.masks = objects.masks.to_ndarray().astype(bool)
    visualizer.add_datasample("", picture, truth, draw_pred=False, show=False)
    return visualizer.get_image()


def _draw_class(sample: Mapping[str, Any], dataset: Any, settings: Mapping[str, Any]) -> Picture:
    """A classification sample, its normalisation undone, with its class name."""
    transform = settings.get("transform") or {}
    mean, std = (np.array(transform.get(key, default)) for key, default in (("mean", 0.0), ("std", 1.0)))
    pixels = sample["inputs"].permute(1, 2, 0).numpy() * std + mean
    picture = Image.fromarray((np.clip(pixels, 0, 1) * 255).astype(np.uint8)).resize((320, 320))
    names = dataset.metainfo.get("classes") or ()
    target = int(sample["targets"])
    text = names[target] if target < len(names) else str(target)
    ImageDraw.Draw(picture).text(
        (8, 6), text, fill=(255, 255, 255), stroke_width=2, stroke_fill=(0, 0, 0), font_size=20
    )
    return np.asarray(picture)
