"""Ten kills of Mask R-CNN and UperNet at random moments, through tools/train.py; final weights bit for bit."""

import random
import time

import pytest

from tests.chain.conftest import DETECTOR, SEGMENTOR
from tests.engine.kill import differing, kill_at_random, state
from tests.engine.noisy_run import start, wait

# Drop path, dropout, augmentation in two workers, averaged weights, and a checkpoint every epoch or second iteration.
EXTRA = """
_base_ = {base!r}
model = dict(backbone=dict(drop_path_rate=0.2))
train_dataloader = dict(num_workers=2, persistent_workers=True)
train_cfg = dict({length}={steps}, val_interval=8)
default_hooks = dict(checkpoint=dict(interval={interval}, max_keep_ckpts=2))
custom_hooks = [*_base_.custom_hooks, dict(type="EMAHook", momentum=0.1)]
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cell", "length", "steps", "interval"),
    [(DETECTOR, "max_epochs", 16, 1), (SEGMENTOR, "max_iters", 60, 2)],
    ids=["maskrcnn", "upernet"],
)
def test_five_kills(chain, student, tmp_path, cell, length, steps, interval):
    config = tmp_path / chain.config(cell).name
    config.write_text(EXTRA.format(base=str(chain.config(cell)), length=length, steps=steps, interval=interval))

    def train(folder, resume):
        command = chain.train_command(cell)
        command[2] = config
        chain.run([*command, "--work-dir", folder, *(["--resume"] if resume else [])])

    assert wait(start(lambda: train(tmp_path / "first", False))) == 0  # what is imported and cached first
    began = time.time()
    assert wait(start(lambda: train(tmp_path / "whole", False))) == 0
    seconds = time.time() - began
    assert differing(state(tmp_path / "first"), state(tmp_path / "whole")) == []
    folders, log = kill_at_random(train, tmp_path / "broken", seconds, kills=5, draw=random.Random())
    print(f"{cell.name}: {seconds:.1f} s unbroken; kills (signal, seconds after start, newest checkpoint): {log}")
    for folder in folders:
        assert differing(state(tmp_path / "whole"), state(folder)) == []
