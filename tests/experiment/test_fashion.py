"""The Fashion-MNIST comparisons: their data, their cells and their tables."""

import gzip
import struct

import numpy as np
import pytest
from mmengine.config import Config

from lvit_dense.datasets.imagenet import TimmDataset
from lvit_dense.experiment.fashion import FILES, SWEEPS, TEACHER, fashion_suite, prepare, sweep_suites
from lvit_dense.experiment.fashion_report import ARMS, grid_markdown
from lvit_dense.experiment.table import Row


@pytest.fixture
def packed(tmp_path):
    """The four files as the Debian package installs them, with 5 pictures each."""
    folder = tmp_path / "packed"
    folder.mkdir()
    pictures = np.random.default_rng(0).integers(0, 256, (5, 28, 28), dtype=np.uint8)
    for name in FILES:
        images = "images" in name
        head = struct.pack(">4I", 2051, 5, 28, 28) if images else struct.pack(">2I", 2049, 5)
        body = pictures.tobytes() if images else bytes(range(5))
        (folder / f"{name}.gz").write_bytes(gzip.compress(head + body))
    return folder


def test_the_packed_files_become_three_channel_pictures(packed, tmp_path):
    root = prepare(packed, tmp_path / "data")
    transform = {"input_size": 28, "crop_pct": 1.0, "mean": (0.0,) * 3, "std": (1.0,) * 3}
    data = TimmDataset(str(root), "val", transform, name="torch/fashion_mnist")
    item = data[3]
    assert item["targets"] == 3 and len(data) == 5
    assert item["inputs"].shape == (3, 28, 28)
    assert (item["inputs"][0] == item["inputs"][2]).all() and item["inputs"].std() > 0.2
    assert prepare(root, tmp_path / "elsewhere") == root


def test_missing_files_are_named(packed, tmp_path):
    (packed / f"{FILES[0]}.gz").unlink()
    with pytest.raises(FileNotFoundError, match=f"{FILES[0]}.gz: install the Debian package"):
        prepare(packed, tmp_path)


def test_the_grid_has_every_defined_arm(tmp_path):
    cells = fashion_suite(tmp_path, tmp_path).cells
    assert len(cells) == 1 + 2 * (4 * 5 + 4) * 2  # two seeds, four operators with five plans and ttt with four, twice
    assert len({cell.name for cell in cells}) == len(cells)
    assert not any(cell.operator == "ttt" and cell.init == "mimetic" for cell in cells)


def test_the_sweep_trains_with_its_term_and_weight(tmp_path):
    suites = sweep_suites(tmp_path, tmp_path, TEACHER.work_dir(tmp_path))
    assert len(suites) == sum(len(weights) for weights in SWEEPS.values())
    suite = suites["map_mse", 3e3]
    suite.write_configs()
    cfg = Config.fromfile(suite.config(suite.cells[0]))
    assert cfg.model.distill == {"term": "map_mse", "weight": 3000.0}


def test_the_grid_table_has_a_row_per_arm():
    cells = {("relu", "mlpcopy+distill"): Row("relu", "mlpcopy+distill", {"top-1": [80.0, 82.0]})}
    lines = grid_markdown(cells).splitlines()
    assert len(lines) == 2 + len(ARMS)
    assert "| mlpcopy+distill | 81.0 ± 1.4 | - | - | - | - |" in lines
