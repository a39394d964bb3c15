"""What a table is: rows of cells with the values expected of them, and the runs that fill it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lvit_dense.catalog import Catalog, suggest
from lvit_dense.experiment.cell import Cell
from lvit_dense.experiment.metrics import METRICS
from lvit_dense.experiment.suite import Suite


@dataclass(frozen=True)
class Row:
    """One row.

    Attributes:
        label: as the paper prints it, such as ``"ReLU MLPCopy + distillation"``; unique in the table.
        cells: the runs, of seed 0, that fill it; at most one per task. A column without a run shows the paper's number.
        expected: column -> the paper's number.
    """

    label: str
    cells: tuple[Cell, ...]
    expected: Mapping[str, float]

    def cell(self, task: str, seed: int = 0) -> Cell | None:
        """The run of a task, None where the row has none."""
        return next((replace(cell, seed=seed) for cell in self.cells if cell.task == task), None)


@dataclass(frozen=True)
class Table:
    """A table of the paper, or one of ours.

    Attributes:
        title, source: what it shows, and where the expected numbers stand.
        columns: names in ``METRICS``.
        suite: (root, cells) -> how the cells are run.
        prepare: called with the root before a run; writes data that the table brings along.
        comparable: whether a difference to the expected numbers is a miss; False where another scale is run.
    """

    title: str
    source: str
    columns: Sequence[str]
    rows: Sequence[Row]
    suite: Callable[[Path, tuple[Cell, ...]], Suite] = Suite
    prepare: Callable[[Path], None] = lambda root: None
    comparable: bool = True

    def select(self, labels: Sequence[str] | None) -> list[Row]:
        """The rows whose labels contain one of the given texts, ignoring case; all for None.

        Raises:
            ValueError: a text that no label contains.
        """
        chosen = list(self.rows)
        if labels is not None:
            chosen = [row for row in self.rows if any(text.lower() in row.label.lower() for text in labels)]
            for text in labels:
                if not any(text.lower() in row.label.lower() for row in self.rows):
                    raise ValueError(f"no row {text!r}: {suggest(text, [row.label for row in self.rows])}")
        return chosen

    def cells(self, rows: Sequence[Row], seeds: Sequence[int]) -> tuple[Cell, ...]:
        """Every run that these rows need, once, each after the one it starts from."""
        found: dict[str, Cell] = {}
        for seed in seeds:
            for row in rows:
                for cell in row.cells:
                    mine = replace(cell, seed=seed)
                    for needed in (mine.upstream, mine):
                        if needed is not None:
                            found.setdefault(needed.name, needed)
        return tuple(sorted(found.values(), key=lambda cell: cell.task != "imagenet"))

    def tolerance(self, column: str) -> float:
        """Points by which a column may differ from the expected number."""
        return METRICS[column].tolerance


TABLES: Catalog[Callable[[], Table]] = Catalog("table", "lvit_dense.experiment.tables")


def expectations(config_name: str) -> dict[Cell, dict[str, tuple[float, str]]]:
    """What the tables expect of a config's runs: cell of seed 0 -> column -> (number, source)."""
    found: dict[Cell, dict[str, tuple[float, str]]] = {}
    for table in (TABLES.get(name)() for name in TABLES.names()):
        for row in table.rows if table.comparable else ():
            for cell in (cell for cell in row.cells if cell.config_name == config_name):
                for column in table.columns:
                    if METRICS[column].task == cell.task and column in row.expected:
                        found.setdefault(cell, {}).setdefault(column, (row.expected[column], table.source))
    return found


INITS = {"random": "Random", "copy": "Copy", "mlpcopy": "MLPCopy", "fullcopy": "FullCopy"}
OPERATOR_NAMES = {
    "softmax": "Softmax", "elu": "ELU", "relu": "ReLU", "inline": "InLine", "mhla": "MHLA", "ttt": "TTT"
}  # fmt: skip
DENSE = ("maskrcnn", "upernet")


def arm_label(operator: str, init: str, distill: bool = False) -> str:
    """``ReLU MLPCopy + distillation``."""
    named = INITS.get(init, init.capitalize())
    return f"{OPERATOR_NAMES[operator]} {named}" + (" + distillation" if distill else "")


def chain_rows(operator: str, size: str, expected: Mapping[str, Mapping[str, float]]) -> list[Row]:
    """The eight rows of an operator: every initialisation, plain and distilled, over the three tasks.

    Args:
        expected: arm -> column -> value.
    """
    rows = []
    for distill in (False, True):
        for init in INITS:
            cells = tuple(Cell(task, operator, size, init, distill) for task in ("imagenet", *DENSE))
            rows.append(Row(arm_label(operator, init, distill), cells, expected[cells[0].arm]))
    return rows
