"""tools/benchmark.py end to end on tiny grids, and its figures' arithmetic."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*arguments):
    return subprocess.run(
        [sys.executable, "tools/benchmark.py", *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_table_picture_and_figures(tmp_path):
    result = run(
        *("--operators", "relu", "--arch", "tiny", "--depth", 1, "--grids", "3x5", "32x32", "32x64"),
        *("--rounds", 1, "--threads", 1, "--out", tmp_path),
    )
    assert result.returncode == 0, result.stderr
    assert "| 32x64 = 2048 | softmax |" in result.stdout
    assert "exponent" in result.stdout
    assert (tmp_path / "benchmark.png").stat().st_size > 10_000
    data = json.loads((tmp_path / "benchmark.json").read_text())
    rows = {(row["operator"], row["tokens"]): row for row in data["rows"]}
    n, c, d = 2048, 192, 64
    layers = n * 12 * c * c
    assert rows["softmax", n]["macs"] == layers + 2 * n * n * c
    assert rows["relu", n]["macs"] == layers + n * c * (2 * d + 1)
    row = rows["relu", n]
    assert row["train_faster"] == pytest.approx(rows["softmax", n]["train"] / row["train"])
    # A block keeps at least its inputs, qkv and the two MLP activations: 2 + 3 + 8 numbers per token and channel.
    assert row["memory"] > 13 * 4 * n * c
    assert row["parameters"] == 12 * c * c + 13 * c


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--operators", "rellu"), "did you mean 'relu'"),
        (("--grids", "32"), "HEIGHTxWIDTH in tokens"),
        (("--grids", "0x4"), "at least 1"),
        (("--rounds", "0"), "must be at least 1"),
        (("--clock", "cpu", "--device", "cuda"), "only waits"),
    ],
)
def test_mistakes(arguments, message):
    result = run(*arguments)
    assert result.returncode != 0
    assert message in result.stderr
