"""Random draws that follow from the seed and the place in training alone, so that a resumed run repeats them.

Saving the generators' states would not do: data workers run ahead of training, hold states of their own, and start anew
after a resume. So nothing is saved; each training step and each training sample gets a seed made from where it stands.
"""

import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from mmengine.dist import get_rank
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from torch.utils.data import BatchSampler, Dataset, IterableDataset, Sampler

from lvit_dense.engine.batch_norm import step_pictures

SAMPLE, STEP = 0, 1  # the first entry of a place: samples and steps never share a seed


def derive_seed(*place: int) -> int:
    """63-bit seed made from non-negative numbers; neighbouring places have unrelated seeds."""
    return int(np.random.SeedSequence(place).generate_state(1, np.uint64)[0] >> np.uint64(1))


def seed_generators(seed: int) -> None:
    """Seed Python's, numpy's and torch's generators of the CPU; 25 microseconds with :func:`derive_seed`."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.default_generator.manual_seed(seed)


@HOOKS.register_module()
class RandomnessHook(Hook):
    """Seed every training step by (seed, rank, iteration) and every training sample by (seed, rank, epoch, position).

    Drop path, dropout, mixup, mmdet's sampling of boxes and augmentation, in the main process or in workers, are then
    the same in an unbroken and in a resumed run, whatever was drawn in between (a validation draws too). A resumed run
    whose config names no seed continues the order of pictures of the run it resumes.

    Data sets without indices (``IterableDataset``) and loaders without batches are left as they are.
    """

    priority = "VERY_HIGH"

    def before_train(self, runner: Any) -> None:
        """Let the train loader hand out samples with seeds."""
        loader = runner.train_dataloader
        sampler: Any = getattr(loader.batch_sampler, "sampler", None)
        if sampler is None or isinstance(loader.dataset, IterableDataset):
            return
        if isinstance(sampler, PlacedSampler):  # a second call of runner.train()
            sampler = sampler.sampler
        same_everywhere = not runner._randomness_cfg.get("diff_rank_seed", False)
        if runner._resume and same_everywhere and getattr(sampler, "seed", runner.seed) != runner.seed:
            sampler.seed = runner.seed
        # An endless sampler counts positions through the whole run. mmengine takes a resumed one to its place by skip()
        # or, where batches are grouped, by drawing (and counting) once more all that was drawn before.
        skips = hasattr(sampler, "skip") and type(loader.batch_sampler) is BatchSampler
        start = runner.iter * step_pictures(loader) if skips else 0
        loader.batch_sampler.sampler = PlacedSampler(sampler, runner.seed, start)
        loader.dataset.__getitems__ = PlacedFetch(loader.dataset)

    def before_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:
        """Seed the step."""
        seed_step(runner)


def seed_step(runner: Any) -> None:
    """Seed what the step at ``runner.iter`` draws in this process."""
    seed = derive_seed(STEP, runner.seed, get_rank(), runner.iter)
    seed_generators(seed)
    torch.manual_seed(seed)  # GPUs too; ten times as slow as the CPU's, so not for every sample


class Draw(int):
    """Index of a sample with the seed of what is drawn for it; survives the way to a worker process."""

    seed: int

    def __new__(cls, index: int, seed: int) -> "Draw":
        draw = super().__new__(cls, index)
        draw.seed = seed
        return draw

    def __reduce__(self) -> tuple[Any, ...]:
        return Draw, (int(self), self.seed)


class PlacedSampler(Sampler[int]):
    """A sampler whose indices are :class:`Draw`; everything else is the wrapped sampler's.

    Args:
        sampler: yields indices.
        seed: of the run.
        start: position in the run of the first index.
    """

    def __init__(self, sampler: Any, seed: int, start: int) -> None:
        self.sampler, self.run_seed, self.start = sampler, seed, start

    def __iter__(self) -> Iterator[int]:
        place = (SAMPLE, self.run_seed, get_rank(), getattr(self.sampler, "epoch", 0))
        for position, index in enumerate(self.sampler, self.start):
            yield Draw(index, derive_seed(*place, position))

    def __len__(self) -> int:
        return len(self.sampler)

    def __getattr__(self, name: str) -> Any:
        if name == "sampler":  # not there yet while a worker unpickles it
            raise AttributeError(name)
        return getattr(self.sampler, name)


class PlacedFetch:
    """``dataset.__getitems__``, which torch's loader calls with a batch of indices, in a worker where it has some."""

    def __init__(self, dataset: Dataset[Any]) -> None:
        self.dataset = dataset

    def __call__(self, draws: Sequence[int]) -> list[Any]:
        samples = []
        for draw in draws:
            if isinstance(draw, Draw):
                seed_generators(draw.seed)
            samples.append(self.dataset[int(draw)])
        return samples
