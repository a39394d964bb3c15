"""Table 1: Copy from five teachers, Base, on ImageNet-1K."""

from lvit_dense.experiment.cell import Cell
from lvit_dense.experiment.reproduction import OPERATOR_NAMES, TABLES, Row, Table

TEACHERS = {"": "DeiT", "dino": "DINO", "mocov3": "MoCov3", "ibot": "iBOT", "mae": "MAE"}
# operator -> top-1 of Random, then of Copy in the order of TEACHERS
TOP1 = {
    "elu": (79.6, 79.8, 80.2, 79.9, 80.3, 80.4),
    "relu": (76.5, 75.6, 75.2, 75.7, 75.3, 76.0),
    "mhla": (81.8, 81.7, 81.6, 81.7, 81.8, 82.0),
    "ttt": (82.2, 81.0, 80.6, 81.1, 80.7, 81.4),
}


@TABLES.register("table_1")
def table_1() -> Table:
    """Twenty-four runs."""
    rows = []
    for operator, (random, *copied) in TOP1.items():
        name = OPERATOR_NAMES[operator]
        rows.append(Row(f"{name} Random", (Cell("imagenet", operator, "base"),), {"top1": random}))
        for (teacher, shown), value in zip(TEACHERS.items(), copied, strict=True):
            cell = Cell("imagenet", operator, "base", "copy", teacher=teacher)
            rows.append(Row(f"{name} Copy from {shown}", (cell,), {"top1": value}))
    return Table("Table 1: Copy by teacher, Base", "Qin et al. 2026, Table 1", ("top1",), rows)
