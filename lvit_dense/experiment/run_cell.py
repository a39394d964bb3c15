"""Run one cell completely (training, evaluations) and put it into the ledger; every launcher ends here."""

import datetime
import json
import platform
import signal
import subprocess
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from lvit_dense.engine.results import read_results
from lvit_dense.experiment.cell import Cell
from lvit_dense.experiment.cell_lock import alone
from lvit_dense.experiment.ledger import Ledger, checkpoint_problem, file_sha256
from lvit_dense.experiment.schedule import Step
from lvit_dense.experiment.suite import REPOSITORY, Suite
from lvit_dense.transfer import newest_checkpoint

PACKAGES = (
    "lvit-dense", "torch", "torchvision", "timm", "onedl-mmengine", "onedl-mmcv", "onedl-mmdetection",
    "onedl-mmsegmentation",
)  # fmt: skip


def is_finished(suite: Suite, cell: Cell, ledger: Ledger) -> bool:
    """Whether the ledger has the cell as finished and its checkpoint is there, unchanged."""
    line = ledger.newest().get(cell.name)
    return line is not None and line["state"] == "finished" and checkpoint_problem(line, suite.root) is None


def run_cell(suite: Suite, cell: Cell, ledger: Ledger, gpus: int = 1) -> bool:
    """Train, evaluate and record; return whether all succeeded. What has been done before is not done again.

    An interruption (Ctrl-C, SIGTERM) ends the running command and records nothing: the next call continues. Where
    another process runs the cell, it is waited for.

    Raises:
        ValueError: the run is complete, but its checkpoint is not the one that the ledger has.
    """
    with alone(suite.work_dir(cell)) as lock:
        if is_finished(suite, cell, ledger):
            return True
        _check_recorded(suite, cell, ledger)
        began = time.time()
        failed = None
        for step in suite.steps_of(cell, gpus):
            if not step.done() and (_call(step, lock) != 0 or not step.done()):
                failed = step
                break
        line = record(suite, cell, time.time() - began)
        if failed is not None:
            text = failed.log.read_text(errors="replace").strip().splitlines()
            line |= {"state": "failed", "step": failed.name, "error": text[-1] if text else "no output"}
            line["log"] = str(failed.log.relative_to(suite.root))
        ledger.append(line)
    return failed is None


def _check_recorded(suite: Suite, cell: Cell, ledger: Ledger) -> None:
    """Refuse to record a changed checkpoint as if this run had made it."""
    training = suite.steps_of(cell)[0]
    of_trained = [
        line
        for line in ledger.lines()
        if line["cell"] == cell.name and "checkpoint" in line and line.get("step") != training.name
    ]
    problem = checkpoint_problem(of_trained[-1], suite.root) if of_trained and training.done() else None
    if problem:
        line = of_trained[-1]
        raise ValueError(
            f"{suite.root / line['checkpoint']} is {problem}: the ledger has a file with SHA-256 "
            f"{line['checkpoint_sha256'][:8]}... Put that file back, or remove {suite.work_dir(cell)} to train again"
        )


def record(suite: Suite, cell: Cell, seconds: float) -> dict[str, Any]:
    """The ledger line of a finished run."""
    work_dir = suite.work_dir(cell)
    results = read_results(work_dir)
    line: dict[str, Any] = {
        "cell": cell.name,
        "seed": cell.seed,
        "state": "finished",
        "metrics": {kind: result["metrics"] for kind, result in results.items() if result["metrics"]},
        "seconds": round(seconds, 1),
        "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "device": _device(),
        "commit": _git("rev-parse", "HEAD"),
        "dirty": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "versions": _versions(),
        "teacher_sha256" if cell.task == "imagenet" else "source_sha256": _weights(suite, work_dir),
        "log": str((work_dir / "train.log").relative_to(suite.root)),
    }
    config = work_dir / f"{cell.config_name}.py"
    line["config_sha256"] = file_sha256(config) if config.exists() else None
    if (work_dir / "last_checkpoint").exists():
        checkpoint = newest_checkpoint(work_dir)
        line |= {
            "checkpoint": str(checkpoint.resolve().relative_to(suite.root.resolve())),
            "checkpoint_sha256": file_sha256(checkpoint),
        }
    return line


def _call(step: Step, lock: int) -> int:
    step.log.parent.mkdir(parents=True, exist_ok=True)
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    with step.log.open("ab") as log:
        process = subprocess.Popen(step.command(), stdout=log, stderr=subprocess.STDOUT, pass_fds=(lock,))
    try:
        return process.wait()
    finally:
        signal.signal(signal.SIGTERM, previous)
        process.terminate()
        process.wait()


def _weights(suite: Suite, work_dir: Path) -> str | None:
    """Checksum of the weights copied from, else of the file distilled from; None where neither is a file."""
    report = work_dir / "transfer.json"
    copied: str | None = json.loads(report.read_text()).get("sha256") if report.exists() else None
    if copied is not None:
        return copied
    teacher = Path(suite.teacher or "-")
    if teacher == work_dir:
        return None
    if teacher.is_dir():
        teacher = newest_checkpoint(teacher)
    return file_sha256(teacher) if teacher.is_file() else None


def _device() -> str:
    if torch.cuda.is_available():
        return f"{torch.cuda.device_count()} x {torch.cuda.get_device_name()}"
    return f"CPU {platform.machine()}, {torch.get_num_threads()} threads"


def _git(*arguments: str) -> str | None:
    """Output of git in the clone; None where the code was installed from a wheel."""
    if not (REPOSITORY / ".git").exists():
        return None
    done = subprocess.run(["git", "-C", str(REPOSITORY), *arguments], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
