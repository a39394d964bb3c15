"""Table 2: accuracy out of distribution of ImageNet-1K students, Base."""

from pathlib import Path

from lvit_dense.experiment.cell import Cell
from lvit_dense.experiment.metrics import METRICS
from lvit_dense.experiment.reproduction import TABLES, Row, Table, arm_label
from lvit_dense.experiment.suite import Suite

COLUMNS = ("IN-A", "IN-R", "IN-S", "IN-V2")
NUMBERS = {
    ("elu", "random"): (18.1, 38.9, 27.2, 66.8),
    ("elu", "copy"): (19.1, 39.6, 27.8, 67.2),
    ("ttt", "random"): (24.1, 42.3, 30.0, 69.3),
    ("ttt", "copy"): (23.7, 42.2, 29.9, 69.1),
}
SOFTMAX = (29.2, 45.8, 33.4, 72.4)


@TABLES.register("table_2")
def table_2() -> Table:
    """Four runs, each tested on four data sets; the Softmax row is quoted."""
    rows = [Row("Softmax", (), dict(zip(COLUMNS, SOFTMAX, strict=True)))]
    for (operator, init), values in NUMBERS.items():
        cell = Cell("imagenet", operator, "base", init)
        rows.append(Row(arm_label(operator, init), (cell,), dict(zip(COLUMNS, values, strict=True))))
    return Table("Table 2: out of distribution, Base", "Qin et al. 2026, Table 2", COLUMNS, rows, suite=_suite)


def _suite(root: Path, cells: tuple[Cell, ...]) -> Suite:
    kinds = {METRICS[column].kind: ("--data", METRICS[column].kind.removeprefix("test@")) for column in COLUMNS}
    return Suite(root, cells, evaluations={"imagenet": kinds})
