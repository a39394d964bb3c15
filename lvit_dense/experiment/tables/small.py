"""The rows of Tables D and E at a laptop's scale: a tiny ViT on generated pictures, about half an hour on two cores."""

from pathlib import Path

from lvit_dense.datasets.demo import write_demo
from lvit_dense.experiment.cell import TEACHER, Cell
from lvit_dense.experiment.demo import BACKBONE, SOFTMAX, demo_options
from lvit_dense.experiment.paper import numbers
from lvit_dense.experiment.reproduction import DENSE, TABLES, Row, Table, chain_rows
from lvit_dense.experiment.small_data import Schedule
from lvit_dense.experiment.suite import Suite

SCHEDULES = {
    SOFTMAX.config_name: Schedule(16, 2, 1e-3, 32),
    "imagenet": Schedule(5, 1, 1e-3, 32),
    "maskrcnn": Schedule(3, 1, 1e-3, 8),
    "upernet": Schedule(120, 12, 1e-3, 8),
}


@TABLES.register("small")
def small() -> Table:
    """Seventeen rows; the paper's numbers stand beside ours for their order only."""
    softmax = (SOFTMAX, *(Cell(task, "softmax", "tiny", TEACHER) for task in DENSE))
    rows = [Row("Softmax", softmax, numbers("softmax")[TEACHER])]
    for operator in ("relu", "ttt"):
        rows += chain_rows(operator, "tiny", numbers(operator))
    return Table(
        title="Tables D and E at a small scale (tiny ViT, generated pictures)",
        source="Qin et al. 2026, Tables D and E (Base, full data: only the order compares)",
        columns=("top1", "APb", "APm", "mIoU", "mIoU_ms"),
        rows=rows,
        suite=_suite,
        prepare=lambda root: write_demo(_data(root)),
        comparable=False,
    )


def _suite(root: Path, cells: tuple[Cell, ...]) -> Suite:
    teacher = (SOFTMAX,) if SOFTMAX not in cells else ()
    return Suite(root, (*teacher, *cells), str(SOFTMAX.work_dir(root)), demo_options(_data(root), SCHEDULES), BACKBONE)


def _data(root: Path) -> Path:
    return root / "data"
