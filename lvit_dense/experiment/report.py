"""What a suite leaves behind: its table (terminal, Markdown, PNG) and sheets of predictions beside the truth."""

from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.image import imread
from rich.console import Console

from lvit_dense.experiment import table
from lvit_dense.experiment.suite import Suite

PICTURES = 3  # per sheet


def write(suite: Suite, folder: Path, title: str, console: Console) -> None:
    """Print the table; write ``table.md``, ``table.png`` and ``maskrcnn.png`` / ``upernet.png`` into ``folder``."""
    rows = table.rows(suite)
    if not table.used_columns(rows):
        console.print("no results yet")
        return
    console.print(table.to_rich(rows, title))
    (folder / "table.md").write_text(table.to_markdown(rows))
    table.to_png(rows, folder / "table.png", title)
    written = [folder / "table.md", folder / "table.png"]
    for task in ("maskrcnn", "upernet"):
        sheet = folder / f"{task}.png"
        if _sheet(suite, task, sheet):
            written.append(sheet)
    console.print("written  " + "  ".join(str(path) for path in written))


def _sheet(suite: Suite, task: str, path: Path) -> bool:
    """The same validation pictures for every arm, truth beside prediction, as mmdet and mmseg drew them."""
    arms = {f"{cell.operator} {cell.arm}": _drawn(suite.work_dir(cell)) for cell in suite.cells if cell.task == task}
    common = set.intersection(*(set(drawn) for drawn in arms.values())) if arms else set()
    names = sorted(common)[:PICTURES]
    if not names:
        return False
    figure = Figure(figsize=(4.4 * len(names), 2.2 * len(arms)), layout="constrained")
    axes = figure.subplots(len(arms), len(names), squeeze=False)
    for row, (arm, drawn) in zip(axes, arms.items(), strict=True):
        for axis, name in zip(row, names, strict=True):
            axis.imshow(imread(drawn[name]))
            axis.set(xticks=[], yticks=[])
        row[0].set_ylabel(arm, fontsize=9)
    figure.suptitle(f"{task}: truth | prediction")
    figure.savefig(path, dpi=110)
    return True


def _drawn(work_dir: Path) -> dict[str, Path]:
    """Pictures that the last validation drew, by the name of the picture file."""
    newest: dict[str, Path] = {}
    for path in sorted(work_dir.glob("*/vis_data/vis_image/*.png")):
        newest["_".join(path.stem.split("_")[:-1])] = path  # the last part is the iteration
    return newest
