"""A run that was stopped and resumed draws what the unbroken run draws."""

import pickle

import pytest
import torch
from mmengine.dataset import DefaultSampler, InfiniteSampler
from torch.utils.data import BatchSampler

from lvit_dense.engine.randomness import Draw, PlacedSampler, RandomnessHook, derive_seed
from tests.engine.noisy_run import Noisy, noisy_runner, start, wait


def final(folder):
    newest = max(folder.glob("*.pth"), key=lambda p: int(p.stem.split("_")[1]))
    state = torch.load(newest, weights_only=False)
    return {**state["state_dict"], **{f"ema {k}": v for k, v in state["ema_state_dict"].items()}}


def run(folder, **options):
    """In a process of its own, which ends with an error where ``stop`` is set."""
    assert wait(start(lambda: noisy_runner(folder, **options).train())) == int("stop" in options)


def stop_and_resume(folder, stop, **options):
    run(folder, stop=stop, **options)
    run(folder, resume=True, **options)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("by_epoch", [True, False], ids=["epochs", "iterations"])
def test_resumed_weights_are_those_of_the_unbroken_run(tmp_path, by_epoch, workers):
    options = dict(by_epoch=by_epoch, workers=workers)
    run(tmp_path / "whole", **options)
    stop_and_resume(tmp_path / "broken", 15, **options)
    whole, broken = final(tmp_path / "whole"), final(tmp_path / "broken")
    assert whole.keys() == broken.keys()
    for name, value in whole.items():
        assert torch.equal(value, broken[name]), name


def test_an_endless_sampler_in_grouped_batches(tmp_path):
    options = dict(by_epoch=False, length=12, grouped=True)
    run(tmp_path / "whole", **options)
    stop_and_resume(tmp_path / "broken", 7, **options)
    whole, broken = final(tmp_path / "whole"), final(tmp_path / "broken")
    assert all(torch.equal(value, broken[name]) for name, value in whole.items())


def test_with_accumulation_and_clipping_too(tmp_path):
    options = dict(by_epoch=True, wrapper=dict(accumulative_counts=2, clip_grad=dict(max_norm=0.5)))
    run(tmp_path / "whole", **options)
    stop_and_resume(tmp_path / "broken", 9, **options)
    whole, broken = final(tmp_path / "whole"), final(tmp_path / "broken")
    assert all(torch.equal(value, broken[name]) for name, value in whole.items())


def test_without_the_hook_they_differ(tmp_path, monkeypatch):
    """The test above can fail."""
    for name in ("before_train", "before_train_iter"):
        monkeypatch.setattr(RandomnessHook, name, lambda *args, **kwargs: None)
    run(tmp_path / "whole", by_epoch=True)
    stop_and_resume(tmp_path / "broken", 15, by_epoch=True)
    whole, broken = final(tmp_path / "whole"), final(tmp_path / "broken")
    assert any(not torch.equal(value, broken[name]) for name, value in whole.items())


def test_the_number_of_workers_changes_nothing(tmp_path):
    for workers in (0, 2):
        run(tmp_path / str(workers), by_epoch=False, workers=workers, length=5)
    one, two = final(tmp_path / "0"), final(tmp_path / "2")
    assert all(torch.equal(value, two[name]) for name, value in one.items())


def test_a_resumed_run_without_a_seed_keeps_the_order_of_pictures(tmp_path):
    run(tmp_path, by_epoch=False, stop=7, seeded=False)
    saved = torch.load(tmp_path / "iter_5.pth", weights_only=False)["meta"]["seed"]
    runner = noisy_runner(tmp_path, by_epoch=False, resume=True, seeded=False)
    runner.train()
    assert runner.train_dataloader.batch_sampler.sampler.seed == runner.seed == saved


def test_positions_count_through_epochs_or_the_whole_run():
    finite = PlacedSampler(DefaultSampler(Noisy(), seed=0), 5, 0)
    first = [(int(d), d.seed) for d in finite]
    finite.set_epoch(1)
    second = [(int(d), d.seed) for d in finite]
    assert len({seed for _, seed in first + second}) == 28
    assert sorted(i for i, _ in first) == list(range(14)) == sorted(i for i, _ in second)

    def infinite(skipped):
        sampler = InfiniteSampler(Noisy(), seed=0)
        sampler.skip(skipped)
        return iter(PlacedSampler(sampler, 5, skipped))

    whole, resumed = infinite(0), infinite(4)
    drawn = [next(whole) for _ in range(9)]
    assert [(int(d), d.seed) for d in drawn[4:]] == [(int(d), d.seed) for d in (next(resumed) for _ in range(5))]


def test_a_draw_is_its_index_and_survives_pickling():
    (batch,) = BatchSampler([Draw(4, 17)], 2, drop_last=False)
    assert batch == [4] and ["abcde"[i] for i in batch] == ["e"]
    (copy,) = pickle.loads(pickle.dumps(batch))
    assert (copy, copy.seed) == (4, 17)


def test_seeds_of_neighbouring_places_are_unrelated():
    seeds = {
        derive_seed(kind, rank, epoch, n) for kind in (0, 1) for rank in (0, 1) for epoch in (0, 1) for n in (0, 1)
    }
    assert len(seeds) == 16 and all(0 <= seed < 2**63 for seed in seeds)
    assert derive_seed(0, 1) != derive_seed(1, 0)
