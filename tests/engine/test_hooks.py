"""The hooks on a real mmengine Runner with a model of one weight."""

import errno
import os
from pathlib import Path

import pytest
import torch
from mmengine.model import BaseModel
from mmengine.runner import Runner
from torch import nn
from torch.utils.data import DataLoader, Dataset

import lvit_dense.engine.register  # noqa: F401
from lvit_dense.engine import atomic_checkpoint
from lvit_dense.engine.atomic_checkpoint import AtomicBackend, AtomicCheckpointHook
from lvit_dense.engine.batch_norm import norms_after_global_pooling, smallest_batch
from lvit_dense.engine.non_finite import newest_finite_checkpoint


class Numbers(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        return float(index)


class OneWeight(BaseModel):
    """loss = w * mean of the batch, infinite from ``bad`` on."""

    def __init__(self, bad=1e9):
        super().__init__()
        self.w = nn.Parameter(torch.ones(()))
        self.bad = bad
        self.steps = 0

    def forward(self, numbers, mode="tensor"):
        if mode == "predict":
            return [dict(score=float(self.w))]
        self.steps += 1
        return dict(loss=self.w * (float("inf") if self.steps >= self.bad else 1.0))

    def train_step(self, data, optim_wrapper):
        loss = self.forward(data, "loss")["loss"]
        optim_wrapper.update_params(loss)
        return dict(loss=loss.detach())


def run(work_dir, model=None, max_keep_ckpts=2, steps=6, resume=False, hooks=(), batch=2, n=100):
    loader = dict(
        batch_size=batch, num_workers=0, sampler=dict(type="DefaultSampler", shuffle=False), dataset=Numbers(n)
    )
    runner = Runner(
        model=model or OneWeight(),
        work_dir=str(work_dir),
        train_dataloader=loader,
        train_cfg=dict(type="IterBasedTrainLoop", max_iters=steps, val_interval=10**6),
        optim_wrapper=dict(optimizer=dict(type="SGD", lr=0.1)),
        default_hooks=dict(
            checkpoint=dict(type="AtomicCheckpointHook", by_epoch=False, interval=1, max_keep_ckpts=max_keep_ckpts)
        ),
        custom_hooks=[dict(type="NonFiniteLossHook"), *hooks],
        resume=resume,
        experiment_name=f"{work_dir.name}_{os.urandom(4).hex()}",
        default_scope="mmengine",
        log_level="ERROR",
    )
    runner.train()
    return runner


def names(folder):
    return sorted(p.name for p in folder.glob("*.pth"))


def test_checkpoints_are_kept_pruned_and_resumed(tmp_path):
    run(tmp_path, steps=4)
    assert names(tmp_path) == ["iter_3.pth", "iter_4.pth"]
    assert (tmp_path / "last_checkpoint").read_text() == str(tmp_path / "iter_4.pth")
    unbroken = run(tmp_path / "other", steps=6)
    resumed = run(tmp_path, steps=6, resume=True)
    assert names(tmp_path) == ["iter_5.pth", "iter_6.pth"]
    assert torch.equal(resumed.model.w, unbroken.model.w)
    assert not list(tmp_path.glob(f".*{atomic_checkpoint.SUFFIX}"))


def test_the_old_checkpoint_is_there_until_the_new_one_is(tmp_path, monkeypatch):
    """Also with max_keep_ckpts=1, where mmengine's hook removes the only checkpoint before it writes the next."""
    seen = []
    real = AtomicBackend.put

    def put(self, obj, filepath):
        if str(filepath).endswith(".pth"):
            seen.append(names(tmp_path))
        real(self, obj, filepath)

    monkeypatch.setattr(AtomicBackend, "put", put)
    run(tmp_path, steps=4, max_keep_ckpts=1)
    assert seen == [[], ["iter_1.pth"], ["iter_2.pth"], ["iter_3.pth"]]


def test_a_full_disk_leaves_the_last_checkpoint_intact(tmp_path, monkeypatch):
    def full(descriptor):
        if (tmp_path / f".iter_3.pth{atomic_checkpoint.SUFFIX}").exists():
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(atomic_checkpoint.os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: could not write [\d,]+ bytes to .*iter_3\.pth"):
        run(tmp_path, steps=6)
    assert names(tmp_path) == ["iter_1.pth", "iter_2.pth"]
    assert not list(tmp_path.glob(".*"))
    assert (tmp_path / "last_checkpoint").read_text().endswith("iter_2.pth")
    assert torch.load(tmp_path / "iter_2.pth", weights_only=False)["meta"]["iter"] == 2


def test_half_written_files_of_a_killed_run_are_swept_up(tmp_path):
    tmp_path.joinpath(f".iter_9.pth{atomic_checkpoint.SUFFIX}").write_bytes(b"half")
    run(tmp_path, steps=1)
    assert not list(tmp_path.glob(".*"))


def test_misspelt_checkpoint_argument():
    with pytest.raises(TypeError, match="did you mean 'max_keep_ckpts'"):
        AtomicCheckpointHook(max_keep_ckpt=2)


def test_best_checkpoint_is_removed_only_after_the_better_one_is_saved(tmp_path):
    hook = AtomicCheckpointHook(by_epoch=False, save_best="acc", interval=100)
    runner = run(tmp_path, steps=1)
    hook.before_train(runner)
    before = None
    for score in (0.5, 0.4, 0.9):
        runner.train_loop._iter += 1
        hook.after_val_epoch(runner, dict(acc=score))
        best = [n for n in names(tmp_path) if n.startswith("best")]
        assert len(best) == 1
        assert (best == before) == (score == 0.4)
        before = best


def test_non_finite_loss_stops_with_iteration_and_checkpoint(tmp_path):
    with pytest.raises(FloatingPointError, match=r"loss = inf at iteration 4 on rank 0.*iter_3\.pth"):
        run(tmp_path, model=OneWeight(bad=4))
    assert names(tmp_path) == ["iter_2.pth", "iter_3.pth"]


def test_last_good_checkpoint_has_finite_weights(tmp_path):
    run(tmp_path, steps=2)
    newest = tmp_path / "iter_2.pth"
    state = torch.load(newest, weights_only=False)
    state["state_dict"]["w"] = torch.tensor(float("nan"))
    torch.save(state, newest)
    assert newest_finite_checkpoint(tmp_path) == tmp_path / "iter_1.pth"
    assert newest_finite_checkpoint(tmp_path / "nowhere") is None


def test_non_finite_loss_names_the_pictures(tmp_path):
    from mmengine.structures import BaseDataElement

    from lvit_dense.engine.non_finite import NonFiniteLossHook

    runner = run(tmp_path, steps=1)
    batch = dict(data_samples=[BaseDataElement(metainfo=dict(img_path=f"{i}.jpg")) for i in (3, 8)])
    with pytest.raises(FloatingPointError, match=r"with the pictures 3\.jpg, 8\.jpg"):
        NonFiniteLossHook().after_train_iter(
            runner, 0, batch, dict(loss=torch.tensor(float("nan")), acc=torch.ones(()))
        )
    NonFiniteLossHook().after_train_iter(runner, 0, batch, dict(loss=torch.ones(()), lr=float("nan")))


def test_with_finite_weights_the_first_bad_operator_is_named(tmp_path):
    from lvit_dense.engine.non_finite import NonFiniteLossHook
    from lvit_dense.models.classifier import LinearViTClassifier

    model = LinearViTClassifier(dict(arch=(16, 3, 2), operator="relu", img_size=32), num_classes=2)
    runner = run(tmp_path, steps=1)
    runner.model = model
    batch = dict(inputs=torch.randn(2, 3, 32, 32), targets=torch.tensor([0, 1]))
    bad = dict(loss=torch.tensor(float("nan")))
    with pytest.raises(FloatingPointError, match="Every attention operator receives and makes finite numbers only"):
        NonFiniteLossHook().after_train_iter(runner, 0, batch, bad)
    with torch.no_grad():
        model.vit.blocks[1].attn.qkv.weight.fill_(3e38)
    with pytest.raises(FloatingPointError, match=r"q given to vit\.blocks\.1\.attn\.operator \(ReLU"):
        NonFiniteLossHook().after_train_iter(runner, 0, batch, bad)
    with torch.no_grad():
        model.head.bias.fill_(float("nan"))
    with pytest.raises(FloatingPointError) as error:
        NonFiniteLossHook().after_train_iter(runner, 0, batch, bad)
    assert "operator" not in str(error.value)  # all weights are suspect then


class Pooled(OneWeight):
    def __init__(self, norm):
        super().__init__()
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Sequential(nn.Conv2d(2, 2, 1), norm))


@pytest.mark.parametrize(
    ("norm", "batch", "fails"),
    [(nn.BatchNorm2d, 1, True), (nn.BatchNorm2d, 2, False), (nn.InstanceNorm2d, 1, False), (nn.SyncBatchNorm, 1, True)],
)
def test_batch_of_one_in_pyramid_pooling_is_refused(tmp_path, norm, batch, fails):
    if fails:
        with pytest.raises(ValueError, match=r"pool\.1\.1 normalises one value per picture .*has 1 picture"):
            run(tmp_path, model=Pooled(norm(2)), batch=batch, steps=1, hooks=[dict(type="BatchNormHook")])
    else:
        run(tmp_path, model=Pooled(norm(2)), batch=batch, steps=1, hooks=[dict(type="BatchNormHook")])


def test_the_last_smaller_batch_counts():
    assert smallest_batch(DataLoader(Numbers(9), batch_size=4)) == 1
    assert smallest_batch(DataLoader(Numbers(9), batch_size=4, drop_last=True)) == 4
    assert smallest_batch(DataLoader(Numbers(8), batch_size=4)) == 4
    assert norms_after_global_pooling(nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.BatchNorm2d(2))) == []


def test_put_replaces_whole_files(tmp_path):
    path = Path(tmp_path) / "deep" / "file"
    AtomicBackend().put(b"old", path)
    AtomicBackend().put_text("new", path)
    assert path.read_text() == "new" and os.listdir(path.parent) == ["file"]
