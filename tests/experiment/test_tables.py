"""Tables as data: their rows, their runs, and that every run's config and command exist."""

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope

from lvit_dense.experiment import results_table, table_report
from lvit_dense.experiment.cell import Cell
from lvit_dense.experiment.cost import expected_cost
from lvit_dense.experiment.launchers import Run
from lvit_dense.experiment.ledger import Ledger
from lvit_dense.experiment.metrics import METRICS
from lvit_dense.experiment.reproduction import TABLES
from lvit_dense.experiment.suite import CONFIGS

ROWS = {"table_1": 24, "table_2": 5, "table_d": 9, "table_e": 8, "table_g": 14, "small": 17}


def all_cells(name):
    table = TABLES.get(name)()
    return table.cells(table.rows, [0])


def test_every_table_is_known():
    assert {name: len(TABLES.get(name)().rows) for name in TABLES.names()} == ROWS


@pytest.mark.parametrize("name", ROWS)
def test_rows_have_unique_labels_and_known_columns(name):
    table = TABLES.get(name)()
    assert len({row.label for row in table.rows}) == len(table.rows)
    for row in table.rows:
        assert set(table.columns) <= set(METRICS)
        assert set(table.columns) <= set(row.expected)
        assert len({cell.task for cell in row.cells}) == len(row.cells)


def test_tables_d_and_e_need_sixteen_imagenet_runs_and_their_dense_runs():
    cells = {cell.name: cell for name in ("table_d", "table_e") for cell in all_cells(name)}
    tasks = [cell.task for cell in cells.values() if cell.operator != "softmax"]
    assert [tasks.count(task) for task in ("imagenet", "maskrcnn", "upernet")] == [16, 16, 16]
    assert [c.name for c in cells.values() if c.operator == "softmax"] == [
        "maskrcnn_softmax_base@teacher", "upernet_softmax_base@teacher"
    ]  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_what_a_run_starts_from_comes_before_it(name, tmp_path):
    table = TABLES.get(name)()
    suite = table.suite(tmp_path, table.cells(table.rows, [0, 1]))
    seen = set()
    for cell in suite.cells:
        assert {needed.name for needed in suite.needs(cell)} <= seen
        assert cell.upstream is None or cell.upstream in suite.needs(cell)
        seen.add(cell.name)


@pytest.mark.parametrize("config", sorted({cell.config_name for n in ("table_d", "table_e") for cell in all_cells(n)}))
def test_every_config_of_the_tables_builds_at_full_size(config):
    cfg = Config.fromfile(CONFIGS / f"{config}.py")
    init_default_scope(cfg.default_scope)
    with torch.device("meta"):
        model = MODELS.build(cfg.model)
    assert sum(p.numel() for p in model.parameters()) > 80e6


@pytest.mark.parametrize("name", ["table_1", "table_2", "table_d", "table_e", "table_g"])
def test_every_command_parses(name, tmp_path, monkeypatch):
    """Each command's flags are those of tools/train.py or tools/test.py."""
    import runpy
    import sys

    table = TABLES.get(name)()
    suite = table.suite(tmp_path, table.cells(table.rows, [2]))
    parsers = {
        tool: runpy.run_path(str(CONFIGS.parent / "tools" / tool))["parse_args"] for tool in ("train.py", "test.py")
    }
    for cell in suite.cells:
        train, *tests = (step.command() for step in suite.steps_of(cell))
        monkeypatch.setattr(sys, "argv", train[1:])
        args = parsers["train.py"]()
        assert (args.init, args.distill, args.seed, args.teacher) == (cell.init, cell.distill, 2, cell.teacher or None)
        assert args.keep_batch == (name != "small")  # the paper's tables keep the recipe's batch on any number of GPUs
        for command in tests:
            monkeypatch.setattr(sys, "argv", command[1:])
            assert parsers["test.py"]().checkpoint == str(suite.work_dir(cell))


def test_teachers_have_names_of_their_own():
    cell = Cell("imagenet", "relu", "base", "copy", teacher="dino", seed=1)
    assert cell.name == "imagenet_relu_base@copy~dino@seed1"
    assert Cell.parse(cell.name) == cell
    with pytest.raises(ValueError, match="unknown teacher 'dyno': did you mean 'dino'"):
        Cell.parse("imagenet_relu_base@copy~dyno")


def test_a_row_that_does_not_exist_is_named():
    with pytest.raises(ValueError, match="no row 'mlp kopie'"):
        TABLES.get("table_d")().select(["mlp kopie"])
    assert len(TABLES.get("table_d")().select(["mlpcopy"])) == 2


def test_distillation_costs_a_third_more_and_dense_runs_do_not_distil():
    plain, distilled = (expected_cost(Cell("imagenet", "relu", "base", "copy", d)) for d in (False, True))
    assert distilled.hours == pytest.approx(plain.hours * 4 / 3)
    assert expected_cost(Cell("upernet", "relu", "base", "copy", True)) == expected_cost(
        Cell("upernet", "relu", "base", "copy")
    )


@pytest.fixture
def filled(tmp_path):
    """table_g with three seeds of one run inside and one of another run beyond its tolerance."""
    table = TABLES.get("table_g")()
    ledger = Ledger(tmp_path / "ledger.jsonl")
    for name, value in (
        ("imagenet_relu_base@fullcopy", 80.7), ("imagenet_relu_base@fullcopy@seed1", 80.9),
        ("imagenet_relu_base@copy", 77.0),
    ):  # fmt: skip
        line = {"cell": name, "state": "finished", "metrics": {"val": {"accuracy/top1": value}}, "seconds": 60.0}
        ledger.append({**line, "log": "train.log", "commit": "abcdef0123", "dirty": False})
    ledger.append({"cell": "imagenet_relu_base@mlpcopy", "state": "failed", "metrics": {"val": {"accuracy/top1": 1.0}}})
    suite = table.suite(tmp_path, table.cells(table.rows[:1], [0, 1]))
    return table, results_table.collect(table, table.rows, ledger, [0, 1]), Run("table_g", suite, ledger)


def test_the_report_takes_finished_runs_over_seeds(filled):
    table, rows, _ = filled
    numbers = {row.row.label: row.entries["top1"] for row in rows}
    assert numbers["ReLU FullCopy"].ours == "80.8 ± 0.1"
    assert numbers["ReLU MLPCopy"].ours == "-"
    assert results_table.misses(table, rows) == ["ReLU Copy, top1: 77.0 instead of 75.6 ± 0.4"]


def test_the_report_says_the_same_in_every_form(filled, tmp_path):
    table, rows, run = filled
    assert "| ReLU FullCopy | 80.8 / 80.8 ± 0.1 |" in table_report.to_markdown(table, rows)
    assert "ReLU Copy,top1,75.60,77.00,1.40,0.4,1" in table_report.to_csv(table, rows)
    assert [line["cell"] for line in table_report.to_json(table, rows, run)["runs"]] == [
        "imagenet_relu_base@fullcopy", "imagenet_relu_base@fullcopy@seed1"
    ]  # fmt: skip
    picture = table_report.to_png(table, rows)
    page = table_report.to_html(table, rows, run, picture, tmp_path)
    assert picture.startswith(b"\x89PNG")
    assert '<td class="miss">77.0<small>75.6 (+1.4)' in page and 'class="hit">80.8' in page
    assert "http" not in page.replace("http-equiv", "")
