"""The doctor names each problem with a cure and survives whatever is broken."""

import importlib.metadata
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from lvit_dense.experiment import doctor

TOOL = Path(__file__).resolve().parents[2] / "tools/doctor.py"


def lines_of(part) -> dict[str, doctor.Line]:
    return {line.name: line for line in part}


def test_sound_installation_has_no_problem(tmp_path):
    lines = doctor.examine(tmp_path)
    assert {line.group for line in lines} == {"python", "packages", "ops", "devices", "data", "weights", "room"}
    assert [line for line in lines if line.state == doctor.PROBLEM and line.group != "room"] == []
    assert all(line.cure for line in lines if line.state != doctor.OK)


def test_requirements_are_pyprojects():
    wanted = doctor.requirements()
    assert wanted["torch"].startswith("==") and "pytest" not in wanted and len(wanted) > 8


def test_missing_old_and_broken_packages(monkeypatch):
    rules = {"torch": "==9.9", "no-such-thing": ">=1", "onedl-mmcv": "==2.3.6"}
    monkeypatch.setattr(doctor, "requirements", lambda: rules)
    real = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: {"onedl-mmcv": None, "mmcv": "2.1.0"}.get(name, real(name)))
    monkeypatch.setattr(doctor, "_import_error", lambda module: "OSError: libcudart.so" if module == "torch" else None)
    found = lines_of(doctor.packages())
    assert found["torch"].state == doctor.NOTE and "tried: 9.9" in found["torch"].value
    assert found["import torch"].state == doctor.PROBLEM and "libcudart" in found["import torch"].value
    assert found["no-such-thing"].cure == "pip install 'no-such-thing>=1'"
    assert found["onedl-mmcv"].value == "mmcv 2.1.0 in place of onedl-mmcv ==2.3.6"


def test_one_broken_part_does_not_end_the_examination(tmp_path, monkeypatch):
    def broken():
        raise ImportError("no torch here")

    monkeypatch.setattr(doctor, "devices", broken)
    lines = doctor.examine(tmp_path)
    (line,) = [line for line in lines if line.group == "devices"]
    assert line.state == doctor.PROBLEM and line.value == "ImportError: no torch here"
    assert lines[-1].group == "room"


def test_gpu_lines(monkeypatch):
    card = type("Card", (), {"name": "X", "total_memory": 80 * 2**30, "major": 12, "minor": 0})
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: card)
    monkeypatch.setattr(torch.cuda, "get_arch_list", lambda: ["sm_80", "sm_90"])
    line = lines_of(doctor.devices())["gpu 0"]
    assert line.state == doctor.PROBLEM and "install one for sm_120" in line.cure and "80 GB" in line.value
    monkeypatch.setattr(torch.cuda, "get_arch_list", lambda: ["sm_120"])
    assert lines_of(doctor.devices())["gpu 0"].state == doctor.OK


def test_data_weights_and_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    (tmp_path / "data/coco/train2017").mkdir(parents=True)
    for part in ("train", "val"):
        (tmp_path / "data/imagenet" / part).mkdir(parents=True)
    found = lines_of(doctor.data(tmp_path))
    assert found["data/imagenet"].value == "complete"
    assert (
        found["data/coco"].state == doctor.PROBLEM
        and "annotations/instances_train2017.json" in found["data/coco"].value
    )
    assert found["data/ade/ADEChallengeData2016"].state == doctor.NOTE
    snapshot = tmp_path / "hub/models--timm--deit_tiny_patch16_224.fb_in1k/snapshots/abc"
    snapshot.mkdir(parents=True)
    (snapshot / "model.safetensors").write_bytes(b"x")
    (tmp_path / "work_dirs/imagenet_relu_tiny@copy").mkdir(parents=True)
    (tmp_path / "work_dirs/imagenet_relu_tiny@copy/last_checkpoint").write_text("x")
    found = lines_of(doctor.weights(tmp_path))
    assert found["timm:deit_tiny_patch16_224.fb_in1k"].state == doctor.OK
    assert found["timm:deit_base_patch16_224.fb_in1k"].state == doctor.NOTE
    assert found["trained runs"].value == "imagenet_relu_tiny@copy"


def test_little_room_is_said(tmp_path, monkeypatch):
    usage = type("Usage", (), {"free": 64e6})
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: usage)
    found = lines_of(doctor.room(tmp_path))
    assert found["disk"].state == doctor.NOTE
    assert "/dev/shm" not in found or found["/dev/shm"].state == doctor.PROBLEM


def test_tool_prints_a_table_and_json(tmp_path, monkeypatch, capsys):
    for flags in (["--json"], []):
        monkeypatch.setattr(sys, "argv", ["doctor.py", "--root", str(tmp_path), *flags])
        with pytest.raises(SystemExit):
            runpy.run_path(str(TOOL), run_name="__main__")
        printed = capsys.readouterr().out
        if flags:
            assert {line["group"] for line in json.loads(printed)} >= {"packages", "data"}
        else:
            assert "problems, " in printed and "-> Link it (ln -s /path" in printed


def test_tool_speaks_without_the_package(tmp_path):
    # -S: no site-packages, hence no lvit_dense
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    run = subprocess.run([sys.executable, "-S", TOOL], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert run.returncode == 1 and run.stderr.startswith("PROBLEM lvit_dense cannot be imported")


def test_version_of_nothing():
    assert doctor._version("no-such-thing") is None
    assert doctor._import_error("no_such_module").startswith("ModuleNotFoundError: No module named")
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.version("no-such-thing")
