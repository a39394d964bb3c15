"""What a run reached, in one small file that scripts can read while it runs and afterwards."""

import json
import time
from numbers import Real
from pathlib import Path
from typing import Any

from mmengine.dist import is_main_process
from mmengine.hooks import Hook
from mmengine.registry import HOOKS

RESULTS = "results.jsonl"
PROGRESS = "progress.json"


@HOOKS.register_module()
class ResultsHook(Hook):
    """Append every evaluation to ``work_dir/results.jsonl`` and keep ``work_dir/progress.json`` up to date.

    A line holds ``kind`` (``val``, ``test``, ``tta`` or ``trained``), ``iter``, ``seconds`` since the process began to
    train or test, and ``metrics`` under the names that the log uses. Runs with ``--data NAME`` add ``data``: the name.

    Args:
        interval: training iterations between two updates of the progress file.
    """

    priority = "VERY_LOW"

    def __init__(self, interval: int = 10) -> None:
        self.interval = interval
        self._start = time.time()

    def before_run(self, runner: Any) -> None:
        """Start the clock."""
        self._start = time.time()

    def after_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:
        """Write the progress file now and then."""
        if self.every_n_train_iters(runner, self.interval) or runner.iter + 1 == runner.max_iters:
            self._write_progress(runner, runner.iter + 1)

    def after_val_epoch(self, runner: Any, metrics: dict[str, float] | None = None) -> None:
        """Add a ``val`` line."""
        self._append(runner, "val", metrics)

    def after_test_epoch(self, runner: Any, metrics: dict[str, float] | None = None) -> None:
        """Add a ``test`` or ``tta`` line."""
        tta = "tta_model" in runner.cfg and runner.cfg.model.get("type") == runner.cfg.tta_model.type
        self._append(runner, "tta" if tta else "test", metrics)

    def after_train(self, runner: Any) -> None:
        """Add the ``trained`` line, which says that the run is complete."""
        self._append(runner, "trained", None)

    def _append(self, runner: Any, kind: str, metrics: dict[str, float] | None) -> None:
        if not is_main_process():
            return
        numbers = {k: float(v) for k, v in (metrics or {}).items() if isinstance(v, Real)}
        line = {"kind": kind, "iter": runner.iter, "seconds": round(time.time() - self._start, 1), "metrics": numbers}
        if runner.cfg.get("data_set"):
            line["data"] = runner.cfg.data_set
        with (Path(runner.work_dir) / RESULTS).open("a") as file:
            file.write(json.dumps(line) + "\n")

    def _write_progress(self, runner: Any, done: int) -> None:
        if is_main_process():
            path = Path(runner.work_dir) / PROGRESS
            temporary = path.with_suffix(".tmp")
            temporary.write_text(json.dumps({"iter": done, "max_iters": runner.max_iters}))
            temporary.replace(path)


def read_results(work_dir: Path) -> dict[str, dict[str, Any]]:
    """The newest line of every kind in a work dir; empty where nothing ran.

    A test on a data set of ``--data NAME`` has a place of its own, ``test@NAME``. A last line that an interruption cut
    off is left out.
    """
    path = work_dir / RESULTS
    newest: dict[str, dict[str, Any]] = {}
    for text in path.read_text().splitlines() if path.exists() else []:
        try:
            line = json.loads(text)
        except json.JSONDecodeError:
            continue
        named = line["kind"] == "test" and "data" in line
        newest[f"test@{line['data']}" if named else line["kind"]] = line
    return newest


def read_progress(work_dir: Path) -> tuple[int, int]:
    """(iterations done, iterations in all) of a run; (0, 0) where it has not begun."""
    try:
        state = json.loads((work_dir / PROGRESS).read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return 0, 0
    return state["iter"], state["max_iters"]
