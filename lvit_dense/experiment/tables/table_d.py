"""Table D: ReLU attention, Base, over ImageNet-1K, COCO and ADE20K."""

from lvit_dense.experiment.cell import TEACHER, Cell
from lvit_dense.experiment.paper import COLUMNS, numbers
from lvit_dense.experiment.reproduction import DENSE, TABLES, Row, Table, chain_rows


@TABLES.register("table_d")
def table_d() -> Table:
    """Nine rows; the Softmax row's top-1 is the teacher's own, so it has no ImageNet run."""
    softmax = Row(
        "Softmax", tuple(Cell(task, "softmax", "base", TEACHER) for task in DENSE), numbers("softmax")[TEACHER]
    )
    return Table(
        title="Table D: ReLU, Base",
        source="Qin et al. 2026, Table D",
        columns=COLUMNS,
        rows=[softmax, *chain_rows("relu", "base", numbers("relu"))],
    )
