"""Checkpoints that are complete or absent, whatever kills the run: temporary file, fsync, rename."""

import os
from collections import deque
from pathlib import Path
from typing import Any

from mmengine.dist import is_main_process
from mmengine.fileio import LocalBackend, register_backend
from mmengine.hooks import CheckpointHook
from mmengine.registry import HOOKS

from lvit_dense.catalog import check_arguments
from lvit_dense.engine.metric_names import check_save_best

SUFFIX = ".partial"


@register_backend("atomic")
class AtomicBackend(LocalBackend):
    """mmengine's local file backend whose files appear under their name only when they are on the disk."""

    def put(self, obj: bytes, filepath: str | Path) -> None:
        """Write ``obj``; a reader sees the old file or the whole new one.

        Raises:
            OSError: the disk is full or cannot be written; the old file, where there was one, is intact.
        """
        path = Path(filepath)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}{SUFFIX}")
        try:
            with open(partial, "wb") as file:
                file.write(obj)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, path)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise OSError(
                error.errno,
                f"{error.strerror or error}: could not write {len(obj):,} bytes to {path}; earlier files are intact, "
                "make room and continue with --resume",
            ) from error
        _sync_folder(path.parent)

    def put_text(self, obj: str, filepath: str | Path, encoding: str = "utf-8") -> None:
        """Write a text as :meth:`put` does."""
        self.put(obj.encode(encoding), filepath)


@HOOKS.register_module()
class AtomicCheckpointHook(CheckpointHook):
    """:class:`mmengine.hooks.CheckpointHook` that never leaves the run without a complete checkpoint.

    Files are written atomically, ``last_checkpoint`` names a file only after it exists, and older checkpoints are
    removed after the new one is there, where mmengine removes them before.

    Args:
        kwargs: arguments of ``CheckpointHook``; ``backend_args`` other than the default give up atomic writing.
    """

    def __init__(self, **kwargs: Any) -> None:
        check_arguments(type(self).__name__, CheckpointHook.__init__, kwargs)
        super().__init__(**{"backend_args": {"backend": "atomic"}, **kwargs})
        self.file_backend: Any = None  # set by before_train
        self.keep_ckpt_ids: deque[int] = deque()

    def before_train(self, runner: Any) -> None:
        """Refuse a ``save_best`` that never comes, prepare the folder, sweep up what a killed run left half-written.

        Raises:
            ValueError: the validation reports nothing of that name.
        """
        check_save_best(self.save_best, runner)
        super().before_train(runner)
        if is_main_process() and Path(self.out_dir).is_dir():
            for partial in Path(self.out_dir).glob(f".*{SUFFIX}"):
                partial.unlink()

    def _save_checkpoint_with_step(self, runner: Any, step: int, meta: dict[str, Any]) -> None:
        outdated = self._steps_to_drop(step)
        if self.max_keep_ckpts > 0:
            runner.message_hub.update_info("keep_ckpt_ids", list(self.keep_ckpt_ids))
        name = self.filename_tmpl.format(step)
        self.last_ckpt = self.file_backend.join_path(self.out_dir, name)
        runner.message_hub.update_info("last_ckpt", self.last_ckpt)
        runner.save_checkpoint(
            self.out_dir,
            name,
            save_optimizer=self.save_optimizer,
            save_param_scheduler=self.save_param_scheduler,
            meta=meta,
            by_epoch=self.by_epoch,
            backend_args=self.backend_args,
        )
        if not is_main_process():
            return
        AtomicBackend().put_text(self.last_ckpt, Path(runner.work_dir) / "last_checkpoint")
        for old in outdated:
            self._remove(self.file_backend.join_path(self.out_dir, self.filename_tmpl.format(old)))

    def _steps_to_drop(self, step: int) -> list[int]:
        """Remember ``step`` and return the steps whose files are over ``max_keep_ckpts`` once it is saved."""
        if self.max_keep_ckpts <= 0 or (self.keep_ckpt_ids and self.keep_ckpt_ids[-1] == step):
            return []
        full = len(self.keep_ckpt_ids) == self.max_keep_ckpts
        outdated = [self.keep_ckpt_ids.popleft()] if full else []
        self.keep_ckpt_ids.append(step)
        return [old for old in outdated if old != step]

    def _save_best_checkpoint(self, runner: Any, metrics: dict[str, Any]) -> None:
        backend = self.file_backend
        self.file_backend = later = _RemoveLater(backend)
        try:
            super()._save_best_checkpoint(runner, metrics)
        finally:
            self.file_backend = backend
        kept = {getattr(self, "best_ckpt_path", None), *getattr(self, "best_ckpt_path_dict", {}).values()}
        for path in later.removed:
            if path not in kept:
                self._remove(path)

    def _remove(self, path: str) -> None:
        if self.file_backend.isfile(path):
            self.file_backend.remove(path)


class _RemoveLater:
    """A file backend that only notes what to remove."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.removed: list[str] = []

    def remove(self, path: str) -> None:
        self.removed.append(path)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)


def _sync_folder(folder: Path) -> None:
    """Make a rename survive a power cut; some file systems cannot, and say so with an OSError that changes nothing."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)
