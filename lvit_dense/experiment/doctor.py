"""What ``tools/doctor.py`` looks at: versions, mmcv's ops, devices, data, weights, room; a cure for each problem.

Nothing heavy is imported at the top, so that the doctor can speak where the installation is broken.
"""

import importlib
import importlib.metadata
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OK, NOTE, PROBLEM = "ok", "note", "problem"
DISTRIBUTION = "lvit-dense"
OFFICIAL = {
    "onedl-mmengine": "mmengine",
    "onedl-mmcv": "mmcv",
    "onedl-mmdetection": "mmdet",
    "onedl-mmsegmentation": "mmsegmentation",
}
IMPORTS = {
    "onedl-mmengine": "mmengine",
    "onedl-mmcv": "mmcv",
    "onedl-mmdetection": "mmdet",
    "onedl-mmsegmentation": "mmseg",
    "pyyaml": "yaml",
    "faster-coco-eval": "faster_coco_eval",
}  # fmt: skip
DATA = {
    "data/imagenet": ("train", "val"),
    "data/coco": ("annotations/instances_train2017.json", "annotations/instances_val2017.json", "train2017", "val2017"),
    "data/ade/ADEChallengeData2016": (
        "images/training",
        "images/validation",
        "annotations/training",
        "annotations/validation",
    ),
}
TEACHERS = tuple(f"deit_{size}_patch16_224.fb_in1k" for size in ("tiny", "small", "base"))
LEAST_FREE = 20  # GB: a dense Base run keeps three checkpoints of about 1.5 GB, and its logs
LEAST_SHARED = 2  # GB of /dev/shm: the loaders' workers pass batches through it


@dataclass(frozen=True)
class Line:
    """One thing looked at.

    Args:
        group, name: what it is.
        value: what was found.
        state: ``"ok"``, ``"note"`` or ``"problem"``.
        cure: what to do, for a note or problem.
    """

    group: str
    name: str
    value: str
    state: str = OK
    cure: str = ""


def examine(root: Path) -> list[Line]:
    """Look at everything; a part that breaks becomes a problem of its own and never ends the examination.

    Args:
        root: folder that holds ``data/`` and ``work_dirs/``.
    """
    parts: tuple[tuple[str, Callable[[], Iterator[Line]]], ...] = (
        ("python", python),
        ("packages", packages),
        ("ops", ops),
        ("devices", devices),
        ("data", lambda: data(root)),
        ("weights", lambda: weights(root)),
        ("room", lambda: room(root)),
    )
    lines: list[Line] = []
    for group, part in parts:
        try:
            lines += part()
        except Exception as error:  # the doctor's task is to report whatever is broken
            cure = "Report this line with `pip list`"
            lines.append(Line(group, "examination", f"{type(error).__name__}: {error}", PROBLEM, cure))
    return lines


def python() -> Iterator[Line]:
    """The interpreter."""
    version = ".".join(map(str, sys.version_info[:3]))
    fine = sys.version_info >= (3, 10)
    yield Line(
        "python", "version", f"{version} ({sys.executable})", OK if fine else PROBLEM, "Use Python 3.10 or newer"
    )


def packages() -> Iterator[Line]:
    """Every required distribution against the version that was tried, and whether its import works."""
    for name, wanted in requirements().items():
        found = _version(name)
        module = IMPORTS.get(name, name)
        instead = OFFICIAL.get(name)
        if found is None and instead and _version(instead):
            value = f"{instead} {_version(instead)} in place of {name} {wanted}"
            yield Line("packages", name, value, NOTE, f"Not tried; if it fails: pip install '{name}{wanted}'")
        elif found is None:
            yield Line("packages", name, "not installed", PROBLEM, f"pip install '{name}{wanted}'")
            continue
        elif wanted.startswith("==") and found.split("+")[0] != wanted[2:]:
            yield Line(
                "packages", name, f"{found} (tried: {wanted[2:]})", NOTE, f"If it fails: pip install '{name}{wanted}'"
            )
        else:
            yield Line("packages", name, found)
        broken = _import_error(module)
        if broken:
            yield Line(
                "packages", f"import {module}", broken, PROBLEM, f"pip install --force-reinstall '{name}{wanted}'"
            )


def requirements() -> dict[str, str]:
    """Name and version rule of what lvit-dense needs, without its extras."""
    found = {}
    for text in importlib.metadata.requires(DISTRIBUTION) or ():
        match = re.match(r"([A-Za-z0-9._-]+)\s*([^;]*)(;.*extra.*)?$", text)
        if match and not match[3]:
            found[match[1]] = match[2].strip()
    return found


def ops() -> Iterator[Line]:
    """Who serves mmcv's compiled operations."""
    from lvit_dense.engine import mmcv_ops

    source = mmcv_ops.source()
    if source == "none":
        yield Line("ops", "mmcv ops", "none", PROBLEM, "Import lvit_dense before mmdet, or install onedl-mmcv")
    else:
        yield Line("ops", "mmcv ops", "torchvision stands in" if source == mmcv_ops.ORIGIN else f"compiled, {source}")


def devices() -> Iterator[Line]:
    """GPUs as torch sees them, and CPU cores."""
    yield Line(
        "devices",
        "cpu",
        f"{len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()} cores",
    )
    import torch

    if torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            card = torch.cuda.get_device_properties(index)
            name = f"{card.name}, {card.total_memory / 2**30:.0f} GB, compute capability {card.major}.{card.minor}"
            architecture = f"sm_{card.major}{card.minor}"
            served = torch.cuda.get_arch_list()
            # binaries run on later minor versions of their major architecture
            fits = any(arch.startswith(f"sm_{card.major}") for arch in served) or not served
            cure = f"This torch is built for {', '.join(served)}; install one for {architecture}"
            yield Line("devices", f"gpu {index}", name, OK if fits else PROBLEM, cure)
    elif torch.version.cuda is None:
        yield Line("devices", "gpu", "none (torch is built for CPU only)", NOTE, "For a GPU install torch from PyPI")
    else:
        driver = "nvidia-smi is there" if shutil.which("nvidia-smi") else "no nvidia-smi"
        cure = f"Training runs on CPU. With a GPU: its driver must serve CUDA {torch.version.cuda} (see nvidia-smi)"
        yield Line("devices", "gpu", f"none that torch {torch.__version__} can use ({driver})", NOTE, cure)


def data(root: Path) -> Iterator[Line]:
    """Whether the configs' data folders are where they look; tools/check_data.py looks inside."""
    for name, parts in DATA.items():
        folder = root / name
        missing = [part for part in parts if not (folder / part).exists()]
        if not folder.exists():
            yield Line(
                "data", name, "not there", NOTE, f"Link it (ln -s /path {folder}); the layout is in docs/data.md"
            )
        elif missing:
            value = f"lacks {', '.join(missing)}"
            yield Line("data", name, value, PROBLEM, "Complete it; the layout is in docs/data.md")
        else:
            yield Line("data", name, f"complete{f' (-> {folder.resolve()})' if folder.is_symlink() else ''}")


def weights(root: Path) -> Iterator[Line]:
    """The configs' teachers in timm's cache, and the runs that have a checkpoint."""
    home = Path(os.environ.get("HF_HOME", Path.home() / ".cache/huggingface"))
    hub = Path(os.environ.get("HF_HUB_CACHE", home / "hub"))
    for name in TEACHERS:
        there = any((hub / f"models--timm--{name}").glob("snapshots/*/*"))
        cure = "Fetched at first use where the network allows; else give a file with --teacher PATH"
        yield Line(
            "weights", f"timm:{name}", "in the cache" if there else "not in the cache", OK if there else NOTE, cure
        )
    runs = sorted(path.parent.name for path in (root / "work_dirs").glob("*/last_checkpoint"))
    if runs:
        yield Line("weights", "trained runs", ", ".join(runs))


def room(root: Path) -> Iterator[Line]:
    """Free space for checkpoints and for the loaders' shared memory."""
    free = shutil.disk_usage(root).free / 1e9
    cure = "Checkpoints of a dense Base run take about 5 GB; use --work-dir on a larger disk"
    yield Line("room", "disk", f"{free:.0f} GB free at {root.resolve()}", OK if free > LEAST_FREE else NOTE, cure)
    shared = Path("/dev/shm")
    if shared.is_dir():
        free = shutil.disk_usage(shared).free / 1e9
        cure = "In a container start it with --shm-size=8g, or set num_workers=0 of the data loaders"
        yield Line("room", "/dev/shm", f"{free:.1f} GB free", OK if free > LEAST_SHARED else PROBLEM, cure)


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _import_error(module: str) -> str | None:
    """Why a module cannot be imported; None when it can. The last line of a long error is its reason."""
    try:
        loaded: Any = importlib.import_module(module)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).strip().splitlines()[-1] if str(error).strip() else ''}"
    return None if loaded is not None else "nothing"
