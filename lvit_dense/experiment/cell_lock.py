"""One process at a time runs a cell, also where two tables that share it are run at once."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOCK = "reproduce.lock"


@contextmanager
def alone(work_dir: Path) -> Iterator[int]:
    """Hold a work dir's lock; wait for whoever holds it.

    Yields the lock's file descriptor: a command that inherits it keeps the lock for as long as it lives, also where the
    process that started it was killed.
    """
    work_dir.mkdir(parents=True, exist_ok=True)
    with (work_dir / LOCK).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"{work_dir.name} is being run by another process: waiting for it", flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def is_running(work_dir: Path) -> bool:
    """Whether a process holds a work dir's lock."""
    path = work_dir / LOCK
    if not path.exists():
        return False
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
