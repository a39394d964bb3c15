"""Table G: what FullCopy copies beside the blocks, ReLU Base on ImageNet-1K."""

from lvit_dense.experiment.cell import Cell
from lvit_dense.experiment.reproduction import TABLES, Row, Table, arm_label

# plan -> top-1 plain and distilled
TOP1 = {
    "fullcopy": (80.8, 82.0),
    "variant1": (80.7, 81.8),
    "variant2": (80.6, 81.9),
    "variant3": (80.7, 81.9),
    "mlpcopy": (80.2, 81.4),
    "copy": (75.6, 79.9),
    "random": (76.5, 79.4),
}


@TABLES.register("table_g")
def table_g() -> Table:
    """Fourteen runs."""
    rows = [
        Row(
            arm_label("relu", plan, distill),
            (Cell("imagenet", "relu", "base", plan, distill),),
            {"top1": values[distill]},
        )
        for distill in (False, True)
        for plan, values in TOP1.items()
    ]
    return Table("Table G: variants of FullCopy, ReLU Base", "Qin et al. 2026, Table G", ("top1",), rows)
