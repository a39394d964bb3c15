"""Table E: TTT, Base, over ImageNet-1K, COCO and ADE20K."""

from lvit_dense.experiment.paper import COLUMNS, numbers
from lvit_dense.experiment.reproduction import TABLES, Table, chain_rows


@TABLES.register("table_e")
def table_e() -> Table:
    """Eight rows."""
    return Table(
        title="Table E: TTT, Base",
        source="Qin et al. 2026, Table E",
        columns=COLUMNS,
        rows=chain_rows("ttt", "base", numbers("ttt")),
    )
