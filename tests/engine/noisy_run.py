"""A small Runner in which everything that can draw random numbers does: for tests of resuming."""

import os
import random
import signal
import time
import traceback
import uuid

import matplotlib.backends.backend_agg  # of mmengine's visualizer: imported here, forked processes have it
import matplotlib.figure  # noqa: F401
import numpy as np
import torch
from mmengine.model import BaseModel
from mmengine.registry import DATA_SAMPLERS
from mmengine.runner import Runner
from torch import nn
from torch.utils.data import BatchSampler, Dataset

import lvit_dense.engine.register  # noqa: F401


class Noisy(Dataset):
    """Fourteen samples of random augmentation by torch, numpy and Python, each after ``pause`` seconds."""

    def __init__(self, pause=0.0):
        self.pause = pause

    def __len__(self):
        return 14

    def __getitem__(self, index):
        time.sleep(self.pause)
        noise = torch.rand(4) + np.random.rand() + random.random()
        return dict(inputs=noise + index, targets=torch.tensor(float(index)))


@DATA_SAMPLERS.register_module(force=True)
class GroupedBatches(BatchSampler):
    """A batch sampler that mmengine does not know, as mmdet's AspectRatioBatchSampler is."""


class Dropped(BaseModel):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 1))

    def forward(self, inputs, targets, mode="tensor"):
        out = self.layers(inputs).squeeze(1)
        if mode == "predict":
            return [dict(error=float((out - targets).abs().mean()))]
        return dict(loss=(out - targets).square().mean())


def start(function):
    """Fork a process that calls ``function`` and ends at once; its exit code is 1 if it raised.

    It computes on one thread, as torch's data workers do: a fork has none of its parent's OpenMP threads, and an
    operation that wants them waits for ever.
    """
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        torch.set_num_threads(1)
        function()
        code = 0
    except BaseException:
        traceback.print_exc()
    os._exit(code)  # neither pytest's exit handlers nor five seconds of waiting for each data worker


def wait(pid, seconds=120.0):
    """Exit code of a process of :func:`start`; negative: the signal that ended it, SIGKILL after ``seconds``."""
    end = time.time() + seconds
    while time.time() < end:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class StopAt:
    """Raise at an iteration, as an interruption would."""

    def __new__(cls, iteration):
        from mmengine.hooks import Hook

        class Stop(Hook):
            def before_train_iter(self, runner, batch_idx, data_batch=None):
                if runner.iter == iteration:
                    raise KeyboardInterrupt

        return Stop()


def noisy_runner(
    work_dir, by_epoch, workers=0, resume=False, stop=None, wrapper=None, batch=4, length=None, seeded=True, pause=0.0,
    end=None, grouped=False, **more,
):  # fmt: skip
    """EMA, AdamW, cosine, some checkpoints, and a validation that draws too; 4 epochs of 4 steps, or 24 steps."""
    length = length or (4 if by_epoch else 24)
    common = dict(num_workers=workers, persistent_workers=workers > 0, collate_fn=dict(type="default_collate"))
    groups = dict(batch_sampler=dict(type="GroupedBatches", drop_last=False)) if grouped else {}
    sampler = "DefaultSampler" if by_epoch else "InfiniteSampler"
    return Runner(
        model=Dropped(),
        work_dir=str(work_dir),
        train_dataloader=dict(
            batch_size=batch, sampler=dict(type=sampler, shuffle=True), dataset=Noisy(pause), **groups, **common
        ),
        val_dataloader=dict(
            batch_size=4, sampler=dict(type="DefaultSampler", shuffle=False), dataset=Noisy(), **common
        ),
        val_evaluator=dict(type="MeanError"),
        val_cfg={},
        train_cfg=dict(by_epoch=True, max_epochs=length, val_interval=1)
        if by_epoch
        else dict(by_epoch=False, max_iters=length, val_interval=6),
        optim_wrapper=dict(optimizer=dict(type="AdamW", lr=0.05), **(wrapper or {})),
        param_scheduler=dict(
            type="CosineAnnealingLR",
            T_max=end or length,
            end=end or length,
            by_epoch=by_epoch,
            convert_to_iter_based=by_epoch,
        ),
        default_hooks=dict(
            checkpoint=dict(type="AtomicCheckpointHook", by_epoch=by_epoch, interval=1 if by_epoch else 5)
        ),
        custom_hooks=[
            dict(type="RandomnessHook"),
            dict(type="ResumeHook"),
            dict(type="EMAHook", momentum=0.1),
            *([StopAt(stop)] if stop else []),
        ],
        resume=resume,
        randomness=dict(seed=3 if seeded else None),
        experiment_name=uuid.uuid4().hex,
        default_scope="mmengine",
        **{"log_level": "ERROR", **more},
    )


def register_mean_error():
    from mmengine.evaluator import BaseMetric
    from mmengine.registry import METRICS

    @METRICS.register_module(force=True)
    class MeanError(BaseMetric):
        def process(self, data_batch, data_samples):
            self.results += [sample["error"] for sample in data_samples]

        def compute_metrics(self, results):
            return dict(error=float(np.mean(results)))


register_mean_error()
