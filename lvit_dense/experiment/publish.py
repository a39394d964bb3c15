"""A finished run's checkpoint as a file for others: weights and facts alone, its hash in its name, a metafile row."""

import hashlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
import yaml
from torch import Tensor

from lvit_dense.engine.atomic_checkpoint import AtomicBackend
from lvit_dense.engine.results import read_results
from lvit_dense.experiment.cell import Cell
from lvit_dense.experiment.metrics import METRICS
from lvit_dense.experiment.model_index import entry, to_yaml
from lvit_dense.transfer import newest_checkpoint
from lvit_dense.transfer.loading import load_file_tensors
from lvit_dense.transfer.readers.own import META_KEY

WEIGHTS = "state_dict"
# dataset_meta and cfg: what mmdet's and mmseg's inferencers read; the rest says which run and which moment it was.
KEPT_META = (META_KEY, "dataset_meta", "cfg", "experiment_name", "seed", "epoch", "iter", "mmengine_version")
HASH_DIGITS = 8  # torch.hub and mmengine take -XXXXXXXX.pth for the beginning of the file's SHA-256
_TIME_STAMP = "_00000000_000000"  # what mmengine appends to the config's name in meta['experiment_name']
CLASSES = {"imagenet": 1000, "maskrcnn": 80, "upernet": 150}  # of the data set that RESULTS names
# column of METRICS -> task, data set and metric in the words of OpenMMLab's metafiles
RESULTS = {
    "top1": ("Image Classification", "ImageNet-1K", "Top 1 Accuracy"),
    "APb": ("Object Detection", "COCO", "box AP"),
    "APm": ("Instance Segmentation", "COCO", "mask AP"),
    "mIoU": ("Semantic Segmentation", "ADE20K", "mIoU"),
    "mIoU_ms": ("Semantic Segmentation", "ADE20K", "mIoU(ms+flip)"),
    "IN-A": ("Image Classification", "ImageNet-A", "Top 1 Accuracy"),
    "IN-R": ("Image Classification", "ImageNet-R", "Top 1 Accuracy"),
    "IN-S": ("Image Classification", "ImageNet-Sketch", "Top 1 Accuracy"),
    "IN-V2": ("Image Classification", "ImageNet-V2", "Top 1 Accuracy"),
}


class Published(NamedTuple):
    """A written file, what its checkpoint's ``meta`` says, classes of its head, and names of what was left out."""

    path: Path
    sha256: str
    meta: dict[str, Any]
    classes: int | None
    left_out: list[str]


def find_checkpoint(path: Path) -> Path:
    """A checkpoint file as it is, or the newest one of a work dir.

    Raises:
        FileNotFoundError: neither.
    """
    if path.is_dir():
        path = newest_checkpoint(path)
    if not path.is_file():
        raise FileNotFoundError(f"no checkpoint {path}: give a .pth file or the work dir of a run")
    return path


def publish(checkpoint: Path, out: Path) -> Published:
    """Write the weights of a run's checkpoint, and what is needed to read them, to ``NAME-XXXXXXXX.pth``.

    The checkpoint's code is never run, and the result holds tensors, texts and numbers in plain containers only
    (``torch.load(..., weights_only=True)``). The same checkpoint gives the same bytes, thus the same name.

    Args:
        out: where to, without the hash: ``zoo/NAME.pth``.

    Raises:
        SourceError: the file cannot be read.
        ValueError: another suffix, no checkpoint of a run of ours, NaN or Inf in the weights.
    """
    if out.suffix != ".pth":
        raise ValueError(f"{out}: expected a name that ends in .pth; the hash goes before the suffix")
    raw = load_file_tensors(str(checkpoint))
    weights = {
        name.removeprefix(f"{WEIGHTS}."): value.detach().clone()  # a view would bring its whole storage along
        for name, value in raw.tensors.items()
        if name.startswith(f"{WEIGHTS}.")
    }
    if not weights or META_KEY not in raw.meta:
        raise ValueError(
            f"{checkpoint}: not a checkpoint of a run of this package: expected {WEIGHTS!r} and meta[{META_KEY!r}], "
            f"meta holds {sorted(raw.meta)}. Give a file that tools/train.py saved"
        )
    _check_finite(checkpoint, weights)
    left_out = [f"meta.{key}" for key in raw.meta if key not in KEPT_META]
    meta = {key: _plain(raw.meta[key], f"meta.{key}", left_out) for key in KEPT_META if key in raw.meta}
    buffer = io.BytesIO()  # a buffer's archive does not hold the file's name, so its bytes depend on the content only
    torch.save({"meta": meta, WEIGHTS: weights}, buffer)
    sha256 = hashlib.sha256(buffer.getvalue()).hexdigest()
    path = out.with_name(f"{out.stem}-{sha256[:HASH_DIGITS]}.pth")
    AtomicBackend().put(buffer.getvalue(), path)
    return Published(path, sha256, meta, _classes(meta, weights), left_out)


def metafile_row(checkpoint: Path, published: Published) -> dict[str, Any]:
    """The entry of a metafile: name, collection, config, results of the run's work dir, file and hash.

    Results are those that belong to this checkpoint: the last validation where it was at the checkpoint's iteration;
    tests where the checkpoint is the work dir's newest, which ``tools/test.py WORK_DIR`` evaluates.

    Raises:
        ValueError: the run's config is none of ours.
    """
    cell = _cell(checkpoint.parent, published.meta)
    row = entry(cell, cell.name if checkpoint.parent.name == cell.name else cell.config_name)
    results = _results(checkpoint, published.meta.get("iter"), cell.task)
    if published.classes not in (CLASSES[cell.task], None):
        named = read_results(checkpoint.parent).get("val", {}).get("data")  # --data NAME
        row["Metadata"]["Training Data"] = named or f"own data, {published.classes} classes"
        for result in results:
            result["Dataset"] = row["Metadata"]["Training Data"]
    row["Metadata"] |= {
        key.capitalize(): value for key in ("epoch", "iter", "seed") if (value := published.meta.get(key))
    }
    row["Results"] = results
    return {**row, "Weights": published.path.name, "SHA256": published.sha256}


def add_row(metafile: Path, row: Mapping[str, Any]) -> None:
    """Append a row to a metafile, which is made where it is missing; a row of the same name is replaced.

    Raises:
        ValueError: no YAML, or no metafile.
    """
    try:
        content = yaml.safe_load(metafile.read_text()) if metafile.exists() else {}
    except yaml.YAMLError as error:
        raise ValueError(f"{metafile}: not YAML ({str(error).splitlines()[0]}); nothing was changed in it") from error
    content = {} if content is None else content
    models = content.setdefault("Models", []) if isinstance(content, dict) else None
    if not isinstance(models, list) or not all(isinstance(model, dict) for model in models):
        raise ValueError(f"{metafile}: no metafile: expected a mapping with a list 'Models'; nothing was changed in it")
    content["Models"] = [model for model in models if model.get("Name") != row["Name"]] + [dict(row)]
    AtomicBackend().put_text(to_yaml(content), metafile)


def _check_finite(checkpoint: Path, weights: Mapping[str, Tensor]) -> None:
    bad = [name for name, value in weights.items() if not torch.isfinite(value).all()]
    if bad:
        raise ValueError(
            f"{checkpoint}: NaN or Inf in {len(bad)} of {len(weights)} tensors, first {bad[0]}: the training diverged; "
            "publish an earlier checkpoint"
        )


def _plain(value: Any, name: str, left_out: list[str]) -> Any:
    """Copy mappings, sequences, texts and numbers; anything else becomes None and is named in ``left_out``."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item, f"{name}.{key}", left_out) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(item, f"{name}[{i}]", left_out) for i, item in enumerate(value))
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    left_out.append(name)
    return None


def _cell(work_dir: Path, meta: Mapping[str, Any]) -> Cell:
    """The cell of a run: its work dir's name where that fits the config's, which mmengine keeps, else the config's."""
    config = str(meta.get("experiment_name", ""))[: -len(_TIME_STAMP)]
    for name in (work_dir.name, config):
        try:
            cell = Cell.parse(name)
        except ValueError:
            continue
        if cell.config_name == config:
            return cell
    raise ValueError(
        f"{work_dir}: its config is called {config!r}, expected TASK_OPERATOR_SIZE as in configs/: a metafile row "
        "names one of these. Publish without a metafile"
    )


def _classes(meta: Mapping[str, Any], weights: Mapping[str, Tensor]) -> int | None:
    """The number of classes: a detector's or segmentor's data set states them, a classifier's head has as many rows."""
    stated = (meta.get("dataset_meta") or {}).get("classes")
    head = weights.get("head.weight")
    if stated is not None:
        return len(stated)
    return None if head is None else len(head)


def _results(checkpoint: Path, iteration: Any, task: str) -> list[dict[str, Any]]:
    """One entry per kind of task and data set that the checkpoint has results for."""
    lines = read_results(checkpoint.parent)
    if lines.get("val", {}).get("iter") != iteration:
        lines.pop("val", None)
    try:
        newest = newest_checkpoint(checkpoint.parent)
    except FileNotFoundError:
        newest = None
    if newest != checkpoint:
        lines = {kind: line for kind, line in lines.items() if kind == "val"}
    found: dict[tuple[str, str], dict[str, float]] = {}
    for column, (kind_of_task, data, title) in RESULTS.items():
        metric = METRICS[column]
        line = lines.get(metric.kind)
        if metric.task == task and line and metric.name in line["metrics"]:
            value = round(metric.factor * line["metrics"][metric.name], 2)
            found.setdefault((kind_of_task, data), {})[title] = value
    return [{"Task": kind, "Dataset": data, "Metrics": metrics} for (kind, data), metrics in found.items()]
