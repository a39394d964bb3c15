"""Files -> flat named tensors, without ever running code that a file carries."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from pickle import UnpicklingError
from typing import Any
from zipfile import BadZipFile

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from lvit_dense.transfer.canonical import SourceError

# MoCo's .pth.tar is what torch.save wrote, no archive.
SUFFIXES = (".pth", ".pt", ".bin", ".ckpt", ".pth.tar", ".pt.tar", ".safetensors", ".npz")
# Parts of a training checkpoint that are no weights of the model.
_NOT_WEIGHTS = ("optimizer", "optimizers", "scaler", "lr_scheduler", "param_schedulers", "message_hub", "meta")


@dataclass(frozen=True)
class RawCheckpoint:
    """A file's tensors under dotted names (containers such as ``model`` become a prefix), and its ``meta``."""

    spec: str
    sha256: str
    tensors: dict[str, Tensor]
    meta: Mapping[str, Any] = field(default_factory=dict)


class _Inert:
    """Stands for what training frameworks store beside weights; it accepts any state and does nothing with it."""

    def __init__(self, *args: object) -> None: ...

    def __setstate__(self, state: object) -> None: ...

    def __hash__(self) -> int:
        return id(self)


# mmengine's message hub (its logs are numpy arrays and HistoryBuffers, pickled through getattr) and the argparse
# namespaces of MAE, DINO and iBOT training files. Each name is bound to the inert class, so nothing of them is
# imported or called, which mmengine's own list (with the real getattr) does not guarantee.
_IGNORED_GLOBALS = (
    "mmengine.logging.history_buffer.HistoryBuffer",
    "builtins.getattr",
    "builtins.slice",
    "argparse.Namespace",
    "numpy.dtype",
    "numpy.ndarray",
    "numpy._core.multiarray._reconstruct",
    "numpy._core.multiarray.scalar",
    "numpy.core.multiarray._reconstruct",
    "numpy.core.multiarray.scalar",
)


def newest_checkpoint(work_dir: Path) -> Path:
    """The last complete checkpoint of a training run's folder, also after the folder was moved.

    Raises:
        FileNotFoundError: the folder is not there, or nothing was saved in it yet.
    """
    marker = work_dir / "last_checkpoint"
    if not marker.is_file():
        raise FileNotFoundError(f"{work_dir} holds no last_checkpoint file: its run has not saved a checkpoint yet")
    recorded = Path(marker.read_text().strip())
    beside = work_dir / recorded.name
    return beside if beside.is_file() else recorded


def load_file_tensors(spec: str) -> RawCheckpoint:
    """Read a checkpoint file, or the newest one of a run's folder.

    Raises:
        FileNotFoundError: no such file.
        SourceError: unknown suffix, damaged file, pickled code, or no tensors.
    """
    path = Path(spec)
    if path.is_dir():
        path = newest_checkpoint(path)
    if not path.is_file():
        raise FileNotFoundError(f"no checkpoint at {spec!r}; give a file ({', '.join(SUFFIXES)}) or 'timm:MODEL_NAME'")
    if not path.name.endswith(SUFFIXES):
        raise SourceError(f"{spec}: unknown suffix {path.suffix!r}, expected one of {', '.join(SUFFIXES)}")
    tree = _load(path)
    tensors = {name: value for name, value in _flatten(tree) if name.split(".")[0] not in _NOT_WEIGHTS}
    if not tensors:
        kind = f"a mapping with keys {list(tree)[:8]}" if isinstance(tree, Mapping) else f"a {type(tree).__name__}"
        raise SourceError(f"{spec}: no tensors found; the file holds {kind}, expected a state dict")
    meta = tree.get("meta")
    return RawCheckpoint(spec, _sha256(path), tensors, meta if isinstance(meta, Mapping) else {})


def tensors_sha256(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 over names, shapes and bytes, in the order of the names."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        value = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name} {tuple(value.shape)} {value.dtype}".encode())
        digest.update(value.flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _load(path: Path) -> Any:
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as arrays:
                return {name.replace("/", "."): torch.from_numpy(arrays[name]) for name in arrays.files}
        ignored: list[Any] = [(_Inert, name) for name in _IGNORED_GLOBALS]
        with torch.serialization.safe_globals(ignored):
            return torch.load(path, map_location="cpu", weights_only=True)
    except UnpicklingError as error:
        found = re.search(r"GLOBAL ([\w.]+)|global ([\w.]+)|class ([\w.]+)", str(error))
        wanted = next(filter(None, found.groups()), "?") if found else _first_line(error)
        raise SourceError(
            f"{path}: refused, nothing was executed: the file's pickle is damaged or asks for {wanted!r}, and only "
            f"tensors in plain containers are read. Cure: save the state dict alone with "
            f"torch.save(model.state_dict(), ...), in an environment you trust"
        ) from None
    except RuntimeError as error:
        if "TorchScript" in str(error):
            raise SourceError(
                f"{path}: refused, nothing was executed: a TorchScript archive carries code. Cure: where you trust it, "
                f"torch.save(torch.jit.load(FILE).state_dict(), ...)"
            ) from None
        raise _damaged(path, error) from error
    except (SafetensorError, BadZipFile, EOFError, OSError, ValueError, KeyError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> SourceError:
    kind = next(suffix for suffix in SUFFIXES if path.name.endswith(suffix))
    return SourceError(
        f"{path}: not a complete {kind} file; it has {path.stat().st_size} bytes ({_first_line(error)}). "
        f"Cure: fetch or save it again"
    )


def _flatten(tree: Any, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of nested mappings under dotted names."""
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from _flatten(value, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(tree, Tensor) and prefix:
        yield prefix, tree


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for chunk in iter(lambda: file.read(1 << 20), b""):
            digest.update(chunk)
    return digest.hexdigest()


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
