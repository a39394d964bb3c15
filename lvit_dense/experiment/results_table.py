"""A table filled from the ledger: the paper's number, ours over seeds, and the difference."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lvit_dense.experiment.ledger import Ledger
from lvit_dense.experiment.metrics import METRICS
from lvit_dense.experiment.reproduction import Row, Table


@dataclass(frozen=True)
class Entry:
    """One number of a table.

    Attributes:
        expected: the paper's, None where it has none.
        values: ours, one per finished seed.
    """

    expected: float | None
    values: tuple[float, ...]

    @property
    def mean(self) -> float | None:
        """Over seeds; None where nothing finished."""
        return statistics.mean(self.values) if self.values else None

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.mean is None or self.expected is None else self.mean - self.expected

    @property
    def ours(self) -> str:
        """``81.2``, ``81.2 ± 0.1`` for several seeds, ``-`` for none."""
        if self.mean is None:
            return "-"
        spread = f" ± {statistics.stdev(self.values):.1f}" if len(self.values) > 1 else ""
        return f"{self.mean:.1f}{spread}"


@dataclass(frozen=True)
class Filled:
    """One row with its numbers by column."""

    row: Row
    entries: Mapping[str, Entry]


def collect(table: Table, rows: Sequence[Row], ledger: Ledger, seeds: Sequence[int]) -> list[Filled]:
    """Look every number up in the newest finished ledger line of its run."""
    newest = ledger.newest()
    return [
        Filled(
            row,
            {column: Entry(row.expected.get(column), _values(row, column, newest, seeds)) for column in table.columns},
        )
        for row in rows
    ]


def misses(table: Table, rows: Sequence[Filled]) -> list[str]:
    """Every number of ours that differs by more than its tolerance; none where the table does not compare."""
    return [
        f"{filled.row.label}, {column}: {entry.mean:.1f} instead of {entry.expected:.1f} ± {table.tolerance(column)}"
        for filled in rows
        for column, entry in filled.entries.items()
        if table.comparable and entry.difference is not None and abs(entry.difference) > table.tolerance(column)
    ]


def _values(row: Row, column: str, newest: Mapping[str, dict[str, Any]], seeds: Sequence[int]) -> tuple[float, ...]:
    metric = METRICS[column]
    values = []
    for seed in seeds:
        cell = row.cell(metric.task, seed)
        line = newest.get(cell.name) if cell is not None else None
        if line is not None and line["state"] == "finished":
            value = line["metrics"].get(metric.kind, {}).get(metric.name)
            values += [] if value is None else [metric.factor * value]
    return tuple(values)
