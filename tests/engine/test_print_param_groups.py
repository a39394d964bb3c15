"""tools/print_param_groups.py on shipped configs."""

import runpy
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


def table(monkeypatch, capsys, config, *flags):
    """Rows of the printed table by parameter name, and the last line."""
    monkeypatch.setattr(sys, "argv", ["print_param_groups.py", str(REPOSITORY / "configs" / config), *flags])
    runpy.run_path(str(REPOSITORY / "tools" / "print_param_groups.py"), run_name="__main__")
    *rows, last = capsys.readouterr().out.strip().splitlines()
    start = next(i for i, row in enumerate(rows) if row.startswith("parameter "))
    return {row.split()[0]: row.split()[1:] for row in rows[start + 1 :]}, last


def test_rates_and_decay_of_upernet(monkeypatch, capsys):
    rows, last = table(monkeypatch, capsys, "upernet_mhla_tiny.py")
    # depth 12: block 3 is layer 4 of 14, .95 ** (13 - 4); 6e-5 * .6302 = 3.78e-5
    assert rows["backbone.vit.blocks.3.mlp.fc1.weight"] == ["768x192", "4", "0.6302", "3.78e-05", "0.01"]
    assert rows["backbone.vit.blocks.3.mlp.fc1.bias"][-1] == "0"
    assert rows["decode_head.conv_seg.weight"][1:] == ["13", "1.0000", "6e-05", "0.01"]
    assert f"{len(rows)} tensors" in last and last.endswith("0 parameters are frozen")


def test_frozen_parameters_are_counted_and_not_listed(monkeypatch, capsys):
    rows, last = table(
        monkeypatch,
        capsys,
        "maskrcnn_relu_tiny.py",
        "--cfg-options",
        "model.backbone.frozen_stages=2",
        "--grep",
        "vit.",
    )
    assert not any("blocks.0." in name or "blocks.1." in name or "pos_embed" in name for name in rows)
    assert rows["backbone.vit.blocks.2.attn.qkv.weight"] == ["576x192", "-", "1.0000", "0.0001", "0.05"]
    assert not last.endswith(" 0 parameters are frozen")


def test_a_wrong_switch_is_one_line(monkeypatch, capsys):
    with pytest.raises(SystemExit, match="did you mean 'layer_decay_rate'"):
        table(
            monkeypatch, capsys, "upernet_relu_tiny.py",
            "--cfg-options", "optim_wrapper.paramwise_cfg.layer_decay_rat=.9",
        )  # fmt: skip
