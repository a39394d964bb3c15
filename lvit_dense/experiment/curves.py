"""What runs logged, as curves and as one line per run: reads ``WORK_DIR/TIMESTAMP/vis_data/scalars.json``."""

import fnmatch
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Logged beside the losses and metrics; never a curve unless asked for by name.
BOOKKEEPING = frozenset({"lr", "base_lr", "data_time", "time", "memory", "epoch", "iter", "step", "grad_norm"})
MAIN_METRICS = ("accuracy/top1", "coco/bbox_mAP", "coco/segm_mAP", "mIoU")


@dataclass
class Curve:
    """Values over training iterations."""

    steps: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def add(self, step: int, value: float) -> None:
        """Append a point."""
        self.steps.append(step)
        self.values.append(value)

    def best(self) -> tuple[int, float]:
        """Step and value of the highest point."""
        index = max(range(len(self.values)), key=self.values.__getitem__)
        return self.steps[index], self.values[index]


@dataclass
class Log:
    """Everything one run logged, by key; validation metrics too are placed at training iterations."""

    name: str
    train: dict[str, Curve] = field(default_factory=dict)
    val: dict[str, Curve] = field(default_factory=dict)

    def seconds_per_iteration(self) -> float | None:
        """Mean over the logged windows; None when nothing was trained."""
        times = self.train.get("time", Curve()).values
        return sum(times) / len(times) if times else None


def find_logs(path: Path) -> list[Path]:
    """The scalars files of a run, oldest first: a run that was resumed has one per start.

    Args:
        path: a work dir, one of its time-stamped folders, or a scalars file.

    Raises:
        FileNotFoundError: there is none.
    """
    if path.is_file() and path.name == "scalars.json":
        return [path]
    found = sorted([*path.glob("vis_data/scalars.json"), *path.glob("*/vis_data/scalars.json")])
    if not found:
        raise FileNotFoundError(
            f"{path} holds no TIMESTAMP/vis_data/scalars.json; give the work dir of a run, such as work_dirs/NAME"
        )
    return found


def read_log(path: Path) -> Log:
    """Read a run; where a resumed start repeats iterations, the later start's values count.

    Raises:
        FileNotFoundError: no log there.
    """
    train: dict[int, Mapping[str, Any]] = {}
    val: dict[int, Mapping[str, Any]] = {}
    for file in find_logs(path):
        started_train, started_val = _read_lines(file)
        if started_train:
            train = {step: line for step, line in train.items() if step < min(started_train)}
        train |= started_train
        val |= started_val
    log = Log(_name(path))
    _collect(log.train, train.items())
    places = _iterations_of_epochs(train.values())
    # mmengine counts validation by epochs in epoch-based runs and by iterations in others
    by_epoch = bool(places) and bool(val) and max(val) <= max(places)
    _collect(log.val, ((places.get(step, step) if by_epoch else step, line) for step, line in val.items()))
    return log


def _name(path: Path) -> str:
    """The work dir's name, with the time stamp where only one start was asked for."""
    parts = path.resolve().parts
    if path.is_file():
        parts = parts[:-2]
    return "/".join(parts[-2:]) if path.is_file() or (path / "vis_data").is_dir() else parts[-1]


def _read_lines(file: Path) -> tuple[dict[int, Mapping[str, Any]], dict[int, Mapping[str, Any]]]:
    """Training and validation lines by step; an unfinished last line of a killed run is left out."""
    train: dict[int, Mapping[str, Any]] = {}
    val: dict[int, Mapping[str, Any]] = {}
    for text in file.read_text().splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if not isinstance(line, dict) or "step" not in line:
            continue
        (train if "lr" in line or "loss" in line else val)[int(line["step"])] = line
    return train, val


def _iterations_of_epochs(lines: Iterable[Mapping[str, Any]]) -> dict[int, int]:
    """The last logged iteration of each epoch."""
    found: dict[int, int] = {}
    for line in lines:
        if "epoch" in line and "iter" in line:
            epoch = int(line["epoch"])
            found[epoch] = max(found.get(epoch, 0), int(line["iter"]))
    return found


def _collect(curves: dict[str, Curve], lines: Iterable[tuple[int, Mapping[str, Any]]]) -> None:
    for step, line in sorted(lines, key=lambda item: item[0]):
        for key, value in line.items():
            if isinstance(value, (int, float)) and key not in ("step", "epoch", "iter"):
                curves.setdefault(key, Curve()).add(step, float(value))


def choose(logs: Sequence[Log], patterns: Sequence[str]) -> tuple[list[str], list[str]]:
    """Training and validation keys to draw: those that match a pattern, by default ``loss`` and the main metrics.

    Raises:
        KeyError: nothing matches; the message lists what was logged.
    """
    train = sorted({key for log in logs for key in log.train})
    val = sorted({key for log in logs for key in log.val})
    if not patterns:
        main = [key for key in MAIN_METRICS if key in val]
        return [key for key in ("loss",) if key in train], main or [key for key in val if key not in BOOKKEEPING]
    chosen = [
        [key for key in keys if any(fnmatch.fnmatchcase(key, pattern) for pattern in patterns)]
        for keys in (train, [key for key in val if key not in train])
    ]
    if not any(chosen):
        raise KeyError(f"no key matches {' '.join(patterns)}; logged: {', '.join(sorted({*train, *val}))}")
    return chosen[0], chosen[1]


def smooth(values: Sequence[float], share: float) -> list[float]:
    """Exponential moving average with ``share`` of the old value, corrected for its start; 0 changes nothing."""
    mean, weight, result = 0.0, 0.0, []
    for value in values:
        mean, weight = share * mean + (1 - share) * value, share * weight + (1 - share)
        result.append(mean / weight)
    return result


def summary(logs: Sequence[Log]) -> list[dict[str, str]]:
    """One row per run: iterations, seconds per iteration, last loss, best and last value of each main metric."""
    rows = []
    for log in logs:
        loss, pace = log.train.get("loss"), log.seconds_per_iteration()
        row = {
            "run": log.name,
            "iterations": str(loss.steps[-1]) if loss else "-",
            "s/iteration": f"{pace:.3f}" if pace is not None else "-",
            "last loss": f"{loss.values[-1]:.4f}" if loss else "-",
        }
        for key in choose([log], ())[1]:
            step, value = log.val[key].best()
            row[key] = f"{log.val[key].values[-1]:.4g} (best {value:.4g} at {step})"
        rows.append(row)
    return rows


def draw(logs: Sequence[Log], keys: tuple[list[str], list[str]], file: Path, share: float = 0.0) -> None:
    """Draw one panel per key, one line per run; validation points are marked, as they may be few.

    Args:
        keys: training keys and validation keys.
        share: smoothing of the training curves, see :func:`smooth`.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = [(key, False) for key in keys[0]] + [(key, True) for key in keys[1]]
    colours = [plt.colormaps["tab10"](index % 10) for index in range(len(logs))]
    columns = 2 if len(panels) == 4 else min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(5.2 * columns, 3.6 * rows), squeeze=False)
    for axis, (key, validation) in zip(axes.flat, panels):
        for log, colour in zip(logs, colours):
            curve = (log.val if validation else log.train).get(key)
            if curve is not None:
                values = curve.values if validation else smooth(curve.values, share)
                few = validation or len(values) < 3
                axis.plot(curve.steps, values, color=colour, marker="o" if few else None, markersize=4, linewidth=1.4)
        axis.set(title=key, xlabel="iteration")
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in list(axes.flat)[len(panels) :]:
        axis.remove()
    handles = [plt.Line2D([], [], color=colour) for colour in colours]
    figure.legend(handles, [log.name for log in logs], loc="outside upper left", ncols=2, fontsize=8, frameon=False)
    figure.set_layout_engine("constrained")
    figure.savefig(file, dpi=120)
    plt.close(figure)
