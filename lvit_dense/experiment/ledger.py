"""The record of all runs of a table: one JSON line per run that ended, appended by whichever process ended it."""

import fcntl
import functools
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LEDGER = "ledger.jsonl"


@dataclass(frozen=True)
class Ledger:
    """A file of JSON lines that several processes append to.

    A line is written whole under a file lock and reaches the disk before ``append`` returns; what an interruption left
    half-written is closed off by the next writer and skipped by readers.
    """

    path: Path

    def append(self, line: dict[str, Any]) -> None:
        """Add one line."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            text = json.dumps(line, sort_keys=True).encode() + b"\n"
            file.write(text if _ends_whole(file) else b"\n" + text)
            file.flush()
            os.fsync(file.fileno())

    def lines(self) -> list[dict[str, Any]]:
        """All whole lines, oldest first."""
        found = []
        for text in self.path.read_text(errors="replace").splitlines() if self.path.exists() else []:
            try:
                line = json.loads(text)
            except json.JSONDecodeError:
                continue
            if isinstance(line, dict) and "cell" in line:
                found.append(line)
        return found

    def newest(self) -> dict[str, dict[str, Any]]:
        """Cell name -> its newest line."""
        return {line["cell"]: line for line in self.lines()}


def checkpoint_problem(line: dict[str, Any], root: Path) -> str | None:
    """What is wrong with the checkpoint that a finished run's line names: ``missing``, ``tampered`` or None.

    Args:
        root: the folder that the line's path is relative to.
    """
    path = root / line["checkpoint"]
    if not path.exists():
        return "missing"
    return None if file_sha256(path) == line["checkpoint_sha256"] else "tampered"


def file_sha256(path: Path) -> str:
    """Checksum of a file's content; read again only where its size or time of change is another."""
    found = path.stat()
    return _sha256(path, found.st_size, found.st_mtime_ns)


@functools.lru_cache(maxsize=1024)
def _sha256(path: Path, size: int, changed: int) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def _ends_whole(file: Any) -> bool:
    size = file.seek(0, os.SEEK_END)
    if size == 0:
        return True
    file.seek(size - 1)
    whole: bool = file.read(1) == b"\n"
    file.seek(0, os.SEEK_END)
    return whole
