"""The table of a suite: one row per operator and arm, mean and spread over seeds, as text, Markdown and picture."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from lvit_dense.engine.results import read_results
from lvit_dense.experiment.cell import Cell
from lvit_dense.experiment.metrics import METRICS
from lvit_dense.experiment.suite import Suite

# heading -> column
COLUMNS = {
    "top-1": "top1", "APb": "APb", "APm": "APm", "APb ms": "APb_ms", "APm ms": "APm_ms", "mIoU": "mIoU",
    "mIoU ms": "mIoU_ms",
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """Values of each column over seeds, in percent."""

    operator: str
    arm: str
    values: Mapping[str, Sequence[float]]

    def text(self, column: str) -> str:
        """``41.2``, ``41.2 ± 0.3`` for several seeds, ``-`` where nothing was run."""
        values = self.values[column]
        if not values:
            return "-"
        mean = f"{statistics.mean(values):.1f}"
        return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.1f}"


def rows(suite: Suite) -> list[Row]:
    """One row per (operator, arm) in the order of the suite's cells."""
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in suite.cells:
        groups.setdefault((cell.operator, cell.arm), []).append(cell)
    return [
        Row(operator, arm, {column: _values(suite, cells, column) for column in COLUMNS})
        for (operator, arm), cells in groups.items()
    ]


def used_columns(table: Sequence[Row]) -> list[str]:
    """Columns in which some row has a value."""
    return [column for column in COLUMNS if any(row.values[column] for row in table)]


def to_rich(table: Sequence[Row], title: str) -> Table:
    """For the terminal."""
    columns = used_columns(table)
    view = Table(title=title)
    for name in ("operator", "arm", *columns):
        view.add_column(name, justify="left" if name in ("operator", "arm") else "right")
    for row in table:
        view.add_row(row.operator, row.arm, *(row.text(column) for column in columns))
    return view


def to_markdown(table: Sequence[Row]) -> str:
    """For a document."""
    columns = used_columns(table)
    lines = ["| operator | arm | " + " | ".join(columns) + " |", "|---|---|" + "---:|" * len(columns)]
    lines += [f"| {r.operator} | {r.arm} | " + " | ".join(r.text(c) for c in columns) + " |" for r in table]
    return "\n".join(lines) + "\n"


def to_png(table: Sequence[Row], path: Path, title: str) -> None:
    """One bar chart per column, one bar per row, with the spread over seeds."""
    from matplotlib.figure import Figure

    columns = used_columns(table)
    figure = Figure(figsize=(3.0 * len(columns), 0.45 * len(table) + 1.4), layout="constrained")
    axes = figure.subplots(1, len(columns), sharey=True, squeeze=False)[0]
    names = [f"{row.operator} {row.arm}" for row in table]
    colours = ["#b0b7c3" if row.arm in ("random", "scratch") else "#2a6fdb" for row in table]
    for axis, column in zip(axes, columns, strict=True):
        means = [statistics.mean(row.values[column]) if row.values[column] else 0.0 for row in table]
        spreads = [statistics.stdev(v) if len(v := row.values[column]) > 1 else 0.0 for row in table]
        bars = axis.barh(names, means, xerr=spreads if any(spreads) else None, color=colours)
        axis.bar_label(bars, [row.text(column) for row in table], padding=3, fontsize=8)
        axis.set_title(column)
        axis.spines[["top", "right"]].set_visible(False)
        axis.margins(x=0.3)
    axes[0].invert_yaxis()
    figure.suptitle(title)
    figure.savefig(path, dpi=120)


def _values(suite: Suite, cells: Sequence[Cell], column: str) -> list[float]:
    metric = METRICS[COLUMNS[column]]
    found = (
        read_results(suite.work_dir(cell)).get(metric.kind, {}).get("metrics", {}).get(metric.name)
        for cell in cells
        if cell.task == metric.task
    )
    return [metric.factor * value for value in found if value is not None]
