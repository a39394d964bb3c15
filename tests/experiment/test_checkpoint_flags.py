"""Checkpoints that the command line names: train.py --resume, and what a resumed run's own config does to test.py."""

import argparse
from pathlib import Path

import pytest
import torch
from mmengine.config import Config

from lvit_dense.experiment.configure import set_resume
from lvit_dense.experiment.launch import configure_testing
from lvit_dense.vit import ViT

CONFIGS = Path(__file__).resolve().parents[2] / "configs"


def resumed(checkpoint):
    cfg = Config({"load_from": "before.pth"})
    set_resume(cfg, str(checkpoint))
    assert cfg.resume is True
    return cfg.load_from


def test_resume_takes_a_file_a_folder_or_looks_in_the_work_dir(tmp_path):
    newest = tmp_path / "epoch_2.pth"
    for name in ("epoch_1.pth", newest.name):
        (tmp_path / name).touch()
    (tmp_path / "last_checkpoint").write_text(str(newest))
    assert resumed("auto") is None
    assert resumed(tmp_path / "epoch_1.pth") == str(tmp_path / "epoch_1.pth")
    assert resumed(tmp_path) == str(newest)


def test_resume_refuses_what_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no checkpoint .*gone\.pth.*--resume"):
        resumed(tmp_path / "gone.pth")
    with pytest.raises(FileNotFoundError, match="holds no last_checkpoint file"):
        resumed(tmp_path)
    (tmp_path / "last_checkpoint").write_text("epoch_9.pth")
    with pytest.raises(FileNotFoundError, match=r"no checkpoint .*epoch_9\.pth"):
        resumed(tmp_path)


def test_the_config_of_a_resumed_run_is_tested_without_resuming(tmp_path):
    torch.save(ViT((192, 12, 3), "relu").state_dict(), tmp_path / "weights.pth")
    config = tmp_path / "imagenet_relu_tiny.py"
    config.write_text(f"_base_ = {str(CONFIGS / 'imagenet_relu_tiny.py')!r}\nresume = True\n")
    given = dict.fromkeys(("cfg_options", "recipe", "data", "work_dir", "out", "show_dir", "show"))
    given |= {"config": str(config), "checkpoint": str(tmp_path / "weights.pth"), "launcher": "none"}
    cfg = configure_testing(argparse.Namespace(**given))
    assert cfg.resume is False and cfg.load_from == str(tmp_path / "weights.pth")
