"""What the Fashion-MNIST runs show: accuracy by plan and operator, and by the weight of the distillation term."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure
from rich.console import Console

from lvit_dense.experiment import table
from lvit_dense.experiment.fashion import INITS, OPERATORS, TEACHER
from lvit_dense.experiment.suite import Suite
from lvit_dense.experiment.table import Row

ARMS = [f"{init}{suffix}" for suffix in ("", "+distill") for init in INITS]
TOP1 = "top-1"


def write_grid(suite: Suite, folder: Path, console: Console) -> None:
    """Print and write ``grid.md`` and ``grid.png``: one row per arm, one column per operator."""
    rows = table.rows(suite)
    cells = {(row.operator, row.arm): row for row in rows}
    text = grid_markdown(cells)
    (folder / "grid.md").write_text(text)
    console.print(text)
    teacher = cells["softmax", TEACHER.arm].values[TOP1]
    _grid_picture(cells, teacher[0] if teacher else None, folder / "grid.png")


def grid_markdown(cells: Mapping[tuple[str, str], Row]) -> str:
    """``| mlpcopy+distill | 81.2 ± 0.3 | ...``, with ``-`` where a plan is undefined or nothing was run."""
    lines = ["| arm | " + " | ".join(OPERATORS) + " |", "|---|" + "---:|" * len(OPERATORS)]
    for arm in ARMS:
        texts = [cells[o, arm].text(TOP1) if (o, arm) in cells else "-" for o in OPERATORS]
        lines.append(f"| {arm} | " + " | ".join(texts) + " |")
    return "\n".join(lines) + "\n"


def write_sweep(root: Path, suites: Mapping[tuple[str, float], Suite], console: Console) -> None:
    """Print and write ``lambda.md`` and ``lambda.png``: accuracy against lambda for each term and operator."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for (term, weight), suite in suites.items():
        for row in table.rows(suite):
            found.setdefault((term, row.operator), []).extend((weight, value) for value in row.values[TOP1])
    lines = ["| term | operator | lambda: top-1 |", "|---|---|---|"]
    for (term, operator), points in found.items():
        lines.append(f"| {term} | {operator} | " + ", ".join(f"{w:g}: {value:.1f}" for w, value in points) + " |")
    text = "\n".join(lines) + "\n"
    (root / "lambda.md").write_text(text)
    console.print(text)
    _sweep_picture(found, root / "lambda.png")


def _grid_picture(cells: Mapping[tuple[str, str], Row], teacher: float | None, path: Path) -> None:
    figure = Figure(figsize=(2.6 * len(OPERATORS), 3.4), layout="constrained")
    axes = figure.subplots(1, len(OPERATORS), sharey=True)
    for axis, operator in zip(axes, OPERATORS, strict=True):
        for shift, suffix, colour in ((-0.2, "", "#b0b7c3"), (0.2, "+distill", "#2a6fdb")):
            groups = [_values(cells, operator, init + suffix) for init in INITS]
            means = [statistics.mean(values) if values else 0.0 for values in groups]
            spreads = [statistics.stdev(values) if len(values) > 1 else 0.0 for values in groups]
            places = [i + shift for i in range(len(INITS))]
            axis.bar(places, means, 0.4, yerr=spreads, color=colour, label=suffix.lstrip("+") or "plain")
        if teacher is not None:
            axis.axhline(teacher, color="#444444", linewidth=0.8, linestyle=":")
        axis.set_xticks(range(len(INITS)), INITS, rotation=45, ha="right")
        axis.set_title(operator)
        axis.spines[["top", "right"]].set_visible(False)
    measured = [v for row in cells.values() for v in row.values[TOP1]]
    axes[0].set_ylim(max(0.0, min(measured, default=0.0) - 5), 100 if not measured else max(measured) + 2)
    axes[0].set_ylabel("top-1, %")
    axes[0].legend(frameon=False, fontsize=8)
    figure.suptitle("Fashion-MNIST, equal short budget (dotted: the softmax teacher)")
    figure.savefig(path, dpi=110)


def _values(cells: Mapping[tuple[str, str], Row], operator: str, arm: str) -> Sequence[float]:
    return cells[operator, arm].values[TOP1] if (operator, arm) in cells else ()


def _sweep_picture(found: Mapping[tuple[str, str], Sequence[tuple[float, float]]], path: Path) -> None:
    terms = list(dict.fromkeys(term for term, _ in found))
    figure = Figure(figsize=(4.2 * len(terms), 3.2), layout="constrained")
    axes = figure.subplots(1, len(terms), sharey=True, squeeze=False)[0]
    for axis, term in zip(axes, terms, strict=True):
        for operator in dict.fromkeys(o for t, o in found if t == term):
            points = sorted(found[term, operator])
            axis.plot([w for w, _ in points], [v for _, v in points], marker="o", label=operator)
        axis.set(xscale="log", xlabel="lambda", title=term)
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.3)
        axis.legend(frameon=False)
    axes[0].set_ylabel("top-1, %")
    figure.suptitle("Fashion-MNIST, mlpcopy+distill")
    figure.savefig(path, dpi=110)
