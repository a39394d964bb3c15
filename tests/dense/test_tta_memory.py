"""tools/tta_memory.py: the views of the config, and one line."""

import re
import runpy
import sys
from pathlib import Path

import pytest
from mmengine.config import Config

TOOL = str(Path(__file__).parents[2] / "tools" / "tta_memory.py")
CONFIGS = Path(__file__).parents[2] / "configs"


@pytest.mark.parametrize(("task", "scales"), [("maskrcnn", 3), ("upernet", 6)])
def test_views_are_the_configs(task, scales):
    views_pipeline = runpy.run_path(TOOL)["views_pipeline"]

    def counts(views):
        transforms = views_pipeline(Config.fromfile(CONFIGS / f"{task}_relu_tiny.py"), views)[0]["transforms"]
        return [len(steps) for steps in transforms[:2]], transforms

    assert counts(1)[0] == [1, 1] and counts(scales)[0] == [scales, 1] and counts(2 * scales)[0] == [scales, 2]
    assert counts(1)[1][0][0].scale == ((1333, 800) if task == "maskrcnn" else (2048, 512))
    assert not any(step.type.startswith("Load") for steps in counts(1)[1] for step in steps)
    with pytest.raises(ValueError, match=f"--views 5: this config has 1, {scales}, {2 * scales}"):
        counts(5)


def test_one_line_with_the_peak(monkeypatch, capsys):
    narrow = "model.backbone.arch=(32,4,2) model.decode_head.channels=32 model.decode_head.in_channels=[32,32,32,32]"
    auxiliary = "model.auxiliary_head.in_channels=32 model.auxiliary_head.channels=16 model.decode_head.num_classes=5"
    flags = ["--shape", "64", "80", "--cfg-options", *narrow.split(), *auxiliary.split(), "tta_model.max_bytes=9999"]
    monkeypatch.setattr(sys, "argv", [TOOL, str(CONFIGS / "upernet_relu_tiny.py"), *flags])
    runpy.run_path(TOOL, run_name="__main__")
    line = capsys.readouterr().out.strip().splitlines()[-1]
    match = re.search(r"64x80, 1 views, StreamingSegTTA, on cpu: [\d.]+ s, peak ([\d.]+) GiB \(([\d.]+) before\)", line)
    assert match and float(match[1]) >= float(match[2]) > 0
