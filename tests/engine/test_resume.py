"""Resuming with another batch: iterations, schedules and learning rates follow, and a line says so."""

import math

import pytest
import torch

from tests.engine.noisy_run import noisy_runner


def log_of(folder):
    return "".join(path.read_text() for path in folder.rglob("*.log"))


def resumed(tmp_path, **options):
    """Two epochs (or ten steps) at batch 4, then the run's end at batch 2; the optimiser's last rate, and the log."""
    noisy_runner(tmp_path, length=2 if options["by_epoch"] else 10, end=options.pop("end"), **options).train()
    runner = noisy_runner(tmp_path, resume=True, batch=2, log_level="WARNING", **options)
    rates = []
    runner.register_hook(Rates(rates))
    runner.train()
    return runner, rates, log_of(tmp_path)


class Rates:
    def __new__(cls, rates):
        from mmengine.hooks import Hook

        class Record(Hook):
            def before_train_iter(self, runner, batch_idx, data_batch=None):
                rates.append(runner.optim_wrapper.get_lr()["lr"][0])

        return Record()


def test_epochs_keep_their_number_and_the_schedule_its_place(tmp_path):
    runner, rates, log = resumed(tmp_path, by_epoch=True, end=4)
    assert "resuming on 1 processes with 2 pictures a step; saved on 1 with 4" in log
    assert "epoch 2 ends at iteration 14 now, was 8" in log
    assert "the learning rate stays as it was saved" in log
    assert (runner.epoch, runner.iter) == (4, 28)
    whole = torch.optim.lr_scheduler.CosineAnnealingLR(torch.optim.SGD([torch.zeros(1)], lr=0.05), 28)
    expected = [whole.get_last_lr()[0]]
    for _ in range(27):
        whole.optimizer.step()
        whole.step()
        expected.append(whole.get_last_lr()[0])
    assert rates == pytest.approx(expected[14:], rel=1e-6)


def test_auto_scale_lr_scales_what_was_saved(tmp_path):
    _, rates, log = resumed(tmp_path, by_epoch=True, end=4, auto_scale_lr=dict(enable=True, base_batch_size=4))
    assert "learning rates scaled by 0.5" in log
    assert rates[0] == pytest.approx(0.05 / 2 / 2, rel=1e-6)  # half of the cosine, half of the batch


def test_a_run_counted_in_iterations_keeps_its_iteration(tmp_path):
    runner, rates, log = resumed(tmp_path, by_epoch=False, end=24)
    assert "resuming on" in log and "ends at iteration" not in log
    assert len(rates) == 14 and runner.iter == 24


def test_a_run_counted_in_iterations_that_accumulates_twice_as_many_has_done_twice_as_many(tmp_path):
    noisy_runner(tmp_path, by_epoch=False, length=10, end=24).train()
    again = dict(by_epoch=False, length=48, end=48, batch=2, wrapper=dict(accumulative_counts=2))
    runner = noisy_runner(tmp_path, resume=True, log_level="WARNING", **again)
    rates = []
    runner.register_hook(Rates(rates))
    runner.train()
    assert "iteration 20 is reached now, was 10" in log_of(tmp_path)
    assert runner.iter == 48 and len(rates) == 28
    assert rates[0] == pytest.approx(0.05 * (1 + math.cos(math.pi * 20 / 48)) / 2, rel=1e-6)


def test_the_same_batch_says_nothing(tmp_path):
    noisy_runner(tmp_path, by_epoch=True, length=1).train()
    noisy_runner(tmp_path, by_epoch=True, length=2, resume=True, log_level="WARNING").train()
    assert "resuming on" not in log_of(tmp_path)
