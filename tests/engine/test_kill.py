"""Runs that are killed and resumed end with the weights of the unbroken run, bit for bit; ten kills in tests/chain."""

import random
import time

import pytest

from tests.engine.kill import differing, kill_at_random, state
from tests.engine.noisy_run import noisy_runner, start, wait


@pytest.mark.parametrize("by_epoch", [True, False], ids=["epochs", "iterations"])
def test_one_kill_at_a_random_moment(tmp_path, by_epoch):
    def train(folder, resume):
        noisy_runner(folder, by_epoch, workers=2, resume=resume, pause=0.03).train()

    began = time.time()
    assert wait(start(lambda: train(tmp_path / "whole", False))) == 0
    folders, _ = kill_at_random(train, tmp_path / "broken", time.time() - began, kills=1, draw=random.Random())
    for folder in folders:
        assert differing(state(tmp_path / "whole"), state(folder)) == []
