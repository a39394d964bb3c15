"""The report of a table: Markdown, CSV, JSON, a picture, and one page that holds all of it."""

import base64
import csv
import html
import io
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table as View

from lvit_dense.experiment.launchers import Run
from lvit_dense.experiment.reproduction import Table
from lvit_dense.experiment.results_table import Entry, Filled

STYLE = """
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:80rem;padding:0 1rem;color:#1c2430}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}th,td{padding:.3rem .6rem;text-align:right}
th:first-child,td:first-child{text-align:left}thead th{border-bottom:2px solid #1c2430}
tbody tr{border-bottom:1px solid #e3e7ee}
small{color:#68758a;display:block}.hit{background:#d9f2e0}.miss{background:#fbdcdc}img{max-width:100%}
a{color:#2a6fdb}
"""


def write_report(table: Table, name: str, rows: Sequence[Filled], run: Run, console: Console) -> None:
    """Print the table; write ``ROOT/report_NAME/{report.md,report.csv,report.json,report.html,report.png}``."""
    folder = run.suite.root / f"report_{name}"
    folder.mkdir(parents=True, exist_ok=True)
    console.print(_view(table, rows))
    (folder / "report.md").write_text(to_markdown(table, rows))
    (folder / "report.csv").write_text(to_csv(table, rows))
    (folder / "report.json").write_text(json.dumps(to_json(table, rows, run), indent=1))
    picture = to_png(table, rows)
    (folder / "report.png").write_bytes(picture)
    (folder / "report.html").write_text(to_html(table, rows, run, picture, folder))
    console.print(f"written  {folder}/report.md .csv .json .png .html")


def to_markdown(table: Table, rows: Sequence[Filled]) -> str:
    """``paper / ours`` in every column."""
    lines = ["| row | " + " | ".join(table.columns) + " |", "|---|" + "---:|" * len(table.columns)]
    for filled in rows:
        texts = [f"{_number(entry.expected)} / {entry.ours}" for entry in filled.entries.values()]
        lines.append(f"| {filled.row.label} | " + " | ".join(texts) + " |")
    return f"{table.title}: paper / ours. Paper: {table.source}.\n\n" + "\n".join(lines) + "\n"


def to_csv(table: Table, rows: Sequence[Filled]) -> str:
    """One line per number: row, column, paper, ours, difference, tolerance, seeds."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["row", "column", "paper", "ours", "difference", "tolerance", "seeds"])
    for filled in rows:
        for column, entry in filled.entries.items():
            numbers = [entry.expected, entry.mean, entry.difference]
            shown = ["" if n is None else f"{n:.2f}" for n in numbers]
            writer.writerow([filled.row.label, column, *shown, table.tolerance(column), len(entry.values)])
    return text.getvalue()


def to_json(table: Table, rows: Sequence[Filled], run: Run) -> dict[str, Any]:
    """Everything, with the ledger lines that the numbers come from."""
    newest = run.ledger.newest()
    return {
        "title": table.title,
        "source": table.source,
        "rows": [
            {
                "row": filled.row.label,
                "columns": {
                    column: {"paper": entry.expected, "ours": list(entry.values), "difference": entry.difference}
                    for column, entry in filled.entries.items()
                },
            }
            for filled in rows
        ],
        "runs": [newest[cell.name] for cell in run.suite.cells if cell.name in newest],
    }


def to_png(table: Table, rows: Sequence[Filled]) -> bytes:
    """One chart per column in the manner of the paper's Figures 3 and 4: paper beside ours for every row."""
    columns = list(table.columns)
    figure = Figure(figsize=(2.6 * len(columns) + 2, 0.34 * len(rows) + 1.3), layout="constrained")
    axes = figure.subplots(1, len(columns), sharey=True, squeeze=False)[0]
    for axis, column in zip(axes, columns, strict=True):
        entries = [filled.entries[column] for filled in rows]
        places = range(len(rows))
        axis.barh([p - 0.2 for p in places], [e.expected or 0 for e in entries], 0.38, color="#c3cad6", label="paper")
        axis.barh([p + 0.2 for p in places], [e.mean or 0 for e in entries], 0.38, color="#2a6fdb", label="ours")
        axis.set_title(column)
        axis.set_yticks(list(places), [filled.row.label for filled in rows], fontsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].invert_yaxis()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower right", ncols=2, frameon=False, fontsize=8)
    figure.suptitle(table.title)
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=110)
    return buffer.getvalue()


def to_html(table: Table, rows: Sequence[Filled], run: Run, picture: bytes, folder: Path) -> str:
    """A page without outside parts; the links to logs and configs are relative to ``folder``."""
    head = "".join(f"<th>{html.escape(column)}</th>" for column in table.columns)
    body = "".join(
        f"<tr><td>{html.escape(filled.row.label)}</td>"
        + "".join(_html_entry(table, column, entry) for column, entry in filled.entries.items())
        + "</tr>\n"
        for filled in rows
    )
    colours = (
        "Green: within the tolerance. Red: beyond it."
        if table.comparable
        else "The paper's numbers are of another scale: only the order compares."
    )
    image = base64.b64encode(picture).decode()
    return f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(table.title)}</title>
<style>{STYLE}</style><h1>{html.escape(table.title)}</h1>
<p>Ours (mean ± standard deviation over seeds), the paper's number and the difference, in percent.
Paper: {html.escape(table.source)}. {colours}</p>
<table><thead><tr><th>row</th>{head}</tr></thead><tbody>
{body}</tbody></table>
<p><img alt="the table as bars" src="data:image/png;base64,{image}"></p>
<h2>Runs</h2><table><thead><tr><th>run</th><th>state</th><th>minutes</th><th>commit</th><th></th></tr></thead><tbody>
{_html_runs(run, folder)}</tbody></table></html>
"""


def _html_entry(table: Table, column: str, entry: Entry) -> str:
    colour = ""
    if table.comparable and entry.difference is not None:
        colour = ' class="hit"' if abs(entry.difference) <= table.tolerance(column) else ' class="miss"'
    difference = "" if entry.difference is None or not table.comparable else f" ({entry.difference:+.1f})"
    return f"<td{colour}>{entry.ours}<small>{_number(entry.expected)}{difference}</small></td>"


def _html_runs(run: Run, folder: Path) -> str:
    lines = []
    newest = run.ledger.newest()
    for cell in run.suite.cells:
        line = newest.get(cell.name)
        if line is None:
            continue
        links = " ".join(
            f'<a href="{html.escape(os.path.relpath(path, folder))}">{text}</a>'
            for text, path in (
                ("log", run.suite.root / line["log"]),
                ("config", run.suite.work_dir(cell) / f"{cell.config_name}.py"),
            )
        )
        commit = f"{(line['commit'] or '')[:8]}{'+' if line['dirty'] else ''}"
        lines.append(
            f"<tr><td>{html.escape(cell.name)}</td><td>{line['state']}</td><td>{line['seconds'] / 60:.1f}</td>"
            f"<td>{commit}</td><td>{links}</td></tr>\n"
        )
    return "".join(lines)


def _view(table: Table, rows: Sequence[Filled]) -> View:
    view = View(title=f"{table.title}: paper / ours")
    view.add_column("row")
    for column in table.columns:
        view.add_column(column, justify="right")
    for filled in rows:
        texts = [f"{_number(entry.expected)} / {entry.ours}" for entry in filled.entries.values()]
        view.add_row(filled.row.label, *texts)
    return view


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
