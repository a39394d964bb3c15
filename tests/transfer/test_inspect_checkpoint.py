"""The inspection tool: prints the file and the plans, stays light, fails clearly."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from lvit_dense.transfer import PLANS
from tests.transfer.conftest import native_vit, save

TOOL = Path(__file__).resolve().parents[2] / "tools" / "inspect_checkpoint.py"


def run(capsys, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", [str(TOOL), *arguments])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(TOOL), run_name="__main__")
    return end.value.code, *capsys.readouterr()


def test_file_and_plans(write, capsys, monkeypatch):
    path = write("dinov2", native_vit("dinov2"))
    code, out, err = run(capsys, monkeypatch, path, "--operator", "ttt", "--img-size", "48")
    assert code == 0 and not err
    assert "family    dinov2" in out and "grid 5x5, class token yes, registers 4" in out
    assert "not read: 1 tensors, masked-image modelling, such as mask_token" in out
    rows = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert set(PLANS.names()) <= set(rows)
    assert "qkv 6/6 in part, ls1 3/3" in rows["copy"] and "mlp 12/12, ls2 3/3" in rows["mlpcopy"]
    assert "impossible: operator: 'softmax' in the source, 'ttt' in the student" in rows["pretrained"]


def test_facts_and_grid_from_the_command_line(tmp_path, capsys, monkeypatch):
    from tests.transfer.conftest import tiny_vit

    path = save(tiny_vit(img_size=(24, 64)).state_dict(), tmp_path / "a.pth")
    code, _, err = run(capsys, monkeypatch, path)
    assert code == 1 and "pass grid=(height, width)" in err
    code, out, _ = run(capsys, monkeypatch, path, "--grid", "3", "8", "--facts", "num_heads=6", "act_layer=quick_gelu")
    assert code == 0 and "num_heads 6, mlp_ratio 4" in out and "grid 3x8" in out and "'quick_gelu'" in out
    code, out, _ = run(capsys, monkeypatch, path, "--facts", "grid=(3,8)")
    assert code == 0 and "grid 3x8" in out


def test_a_file_that_cannot_be_read(tmp_path, capsys, monkeypatch):
    code, out, err = run(capsys, monkeypatch, str(tmp_path / "none.pth"))
    assert code == 1 and not out and "no checkpoint at" in err


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        (["--facts", "foo=1"], 1, "read_source's facts has no argument 'foo'"),
        (["--facts", "num_heads=7"], 1, "the width must be a multiple of the number of heads, got 192 and 7"),
        (["--facts", "grid=5"], 1, "grid must be (height, width), got 5"),
        (["--operator", "rleu"], 1, "did you mean 'relu'"),
        (["--facts", "num_heads"], 2, "argument --facts: 'num_heads' is not NAME=VALUE"),
        (["--img-size", "0"], 2, "argument --img-size: '0' is not a positive number"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_flags_end_in_one_line(flags, code, message, write, capsys, monkeypatch):
    found, out, err = run(capsys, monkeypatch, write("timm", native_vit("timm")), *flags)
    *usage, line = err.splitlines()
    assert found == code and not out and message in line
    assert all(text.startswith(("usage: ", " ")) for text in usage)


def test_help_teaches_and_imports_stay_light(write):
    path = write("timm", native_vit("timm"))
    script = (
        f"import runpy, sys; sys.argv = ['inspect', {path!r}]\n"
        f"try: runpy.run_path({str(TOOL)!r}, run_name='__main__')\n"
        "except SystemExit as end: assert end.code == 0\n"
        "assert not {'mmdet', 'mmseg', 'mmcv', 'mmengine'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=TOOL.parents[1], capture_output=True)
    text = subprocess.run([sys.executable, str(TOOL), "--help"], check=True, capture_output=True, text=True).stdout
    assert "timm:deit_base_patch16_224" in text and "told by the keys" in text
