"""Files: safe, complete, and refused with one clear error otherwise."""

import argparse
import os
import pickle

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from lvit_dense.experiment.teachers import TEACHERS
from lvit_dense.transfer import READERS, SourceError, build_teacher, read_source
from lvit_dense.transfer.loading import tensors_sha256
from tests.transfer.conftest import native_vit, save, tiny_vit


class Payload:
    """Creates a file when it is unpickled."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return os.mkdir, (str(self.target),)


@pytest.mark.parametrize("suffix", [".pth", ".pt", ".bin", ".safetensors"])
def test_kinds_of_file_give_the_same_tensors(suffix, tmp_path):
    vit, path = tiny_vit(), tmp_path / f"a{suffix}"
    state = {name: value.half() for name, value in vit.state_dict().items()}
    save_file(state, path) if suffix == ".safetensors" else torch.save(state, path)
    source = read_source(str(path))
    assert all(v.dtype == torch.float32 and torch.equal(v, state[n].float()) for n, v in source.state.items())
    assert len(source.sha256) == 64


@pytest.mark.parametrize(
    ("family", "name"),
    [(family, TEACHERS[family]) for family in ("mocov3", "ibot")]
    + [("mocov3", "vit-s-300ep.pth.tar"), ("timm", "model_best.pt.tar")],
)
def test_names_of_official_files(family, name, write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.makedirs("weights")
    os.replace(write(family, native_vit(family)), name)
    assert read_source(name).family == family
    with open(name, "r+b") as file:
        file.truncate(100)
    with pytest.raises(SourceError, match=rf"not a complete {name[name.index('.p') :]} file"):
        read_source(name)


def test_legacy_torch_file(tmp_path):
    torch.save({"model": tiny_vit().state_dict()}, tmp_path / "a.pth", _use_new_zipfile_serialization=False)
    assert read_source(str(tmp_path / "a.pth")).family == "timm"


def test_sha256_is_that_of_the_file(tmp_path):
    import hashlib

    path = save(tiny_vit().state_dict(), tmp_path / "a.pth")
    assert read_source(path).sha256 == hashlib.sha256((tmp_path / "a.pth").read_bytes()).hexdigest()


def test_missing_file():
    with pytest.raises(FileNotFoundError, match=r"no checkpoint at 'nowhere/a\.pth'.*timm:MODEL_NAME"):
        read_source("nowhere/a.pth")


def test_unknown_suffix(tmp_path):
    (tmp_path / "a.h5").write_bytes(b"x")
    with pytest.raises(SourceError, match=r"unknown suffix '\.h5', expected one of \.pth"):
        read_source(str(tmp_path / "a.h5"))


@pytest.mark.parametrize("suffix", [".pth", ".safetensors", ".npz"])
def test_truncated_file(suffix, tmp_path):
    whole, cut = tmp_path / f"whole{suffix}", tmp_path / f"cut{suffix}"
    state = dict(tiny_vit().state_dict())
    if suffix == ".safetensors":
        save_file(state, whole)
    else:
        save(state, whole)
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    with pytest.raises(SourceError, match=rf"cut\{suffix}: not a complete \{suffix} file; it has {cut.stat().st_size}"):
        read_source(str(cut))
    cut.write_bytes(b"")
    with pytest.raises(SourceError, match="not a complete"):
        read_source(str(cut))


@pytest.mark.parametrize("legacy", [False, True])
def test_pickled_code_is_refused_and_never_executed(legacy, tmp_path):
    target, path = tmp_path / "executed", tmp_path / "a.pth"
    tree = {"state_dict": tiny_vit().state_dict(), "extra": Payload(target)}
    torch.save(tree, path, _use_new_zipfile_serialization=not legacy)
    with pytest.raises(SourceError, match=r"refused, nothing was executed.*mkdir") as caught:
        read_source(str(path))
    assert not target.exists()
    assert "model.state_dict()" in str(caught.value)
    path.write_bytes(pickle.dumps(Payload(target)))
    with pytest.raises(SourceError):
        read_source(str(path))
    assert not target.exists()


def test_whole_modules_and_torchscript_are_refused(tmp_path):
    torch.save(torch.nn.Linear(2, 2), tmp_path / "a.pth")
    with pytest.raises(SourceError, match=r"refused.*torch\.nn\.modules\.linear\.Linear"):
        read_source(str(tmp_path / "a.pth"))
    torch.jit.save(torch.jit.trace(torch.nn.Linear(2, 2), torch.ones(1, 2)), tmp_path / "b.pt")
    with pytest.raises(SourceError, match="a TorchScript archive carries code"):
        read_source(str(tmp_path / "b.pt"))


def test_getattr_of_a_file_does_nothing(tmp_path):
    """mmengine's logs are pickled through getattr; here that name leads nowhere."""

    class Reach:
        def __reduce__(self):
            return getattr, (np.ndarray, "tofile")

    torch.save({"model": tiny_vit().state_dict(), "x": Reach()}, tmp_path / "a.pth")
    assert read_source(str(tmp_path / "a.pth")).family == "timm"


def test_training_arguments_beside_the_weights_are_ignored(tmp_path):
    tree = {"model": tiny_vit().state_dict(), "args": argparse.Namespace(lr=1e-3), "optimizer": {"state": {}}}
    assert read_source(save(tree, tmp_path / "a.pth")).family == "timm"


def test_object_arrays_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", **{"embedding/kernel": np.array([Payload(tmp_path / "executed")], dtype=object)})
    with pytest.raises(SourceError, match="not a complete"):
        read_source(str(tmp_path / "a.npz"))
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({}, "no tensors found"),
        ([1, 2], "no tensors found; the file holds a list"),
        ({"epoch": 3, "optimizer": {"x": torch.ones(1)}}, r"no tensors found.*\['epoch', 'optimizer'\]"),
        ({"layer1.0.conv1.weight": torch.ones(1)}, r"no family matches its 1 keys, first \['layer1"),
    ],
)
def test_foreign_checkpoints(tree, message, tmp_path):
    with pytest.raises(SourceError, match=message):
        read_source(save(tree, tmp_path / "a.pth"))


def test_unknown_prefix_is_named(tmp_path):
    state = {f"student_net.{name}": value for name, value in tiny_vit().state_dict().items()}
    with pytest.raises(SourceError, match=r"timm: unknown prefix 'student_net\.' \(known: model\., module\."):
        read_source(save(state, tmp_path / "a.pth"))


def test_third_party_names_are_listed(tmp_path):
    """A file whose MLP names differ must not read as one whose MLPs are absent."""
    state = {name.replace(".mlp.", "."): value for name, value in tiny_vit().state_dict().items()}
    with pytest.raises(SourceError, match=r"timm: 12 unexpected keys, first \['blocks\.0\.fc1\.weight'"):
        read_source(save(state, tmp_path / "a.pth"))


def test_two_models_in_one_file(tmp_path):
    state = tiny_vit().state_dict()
    tree = {"model": state, "backbone": state}
    with pytest.raises(SourceError, match=r"holds several ViTs, under 'backbone\.', 'model\.'"):
        read_source(save(tree, tmp_path / "a.pth"))


def test_201_position_rows(tmp_path):
    state = {**tiny_vit().state_dict(), "pos_embed": torch.zeros(1, 201, 192)}
    with pytest.raises(SourceError, match="pos_embed has 201 rows; 201 less 1 class row leaves 200"):
        read_source(save(state, tmp_path / "a.pth"))


def test_a_teacher_must_be_complete(tmp_path):
    state = {name: value for name, value in tiny_vit().state_dict().items() if "blocks.1.mlp" not in name}
    with pytest.raises(SourceError, match=r"does not fill[\s\S]*blocks\.1\.mlp\.fc1\.weight"):
        build_teacher(read_source(save(state, tmp_path / "a.pth")))


def test_a_teacher_of_nan_is_refused_and_none_shifts_the_seed(tmp_path):
    state = tiny_vit().state_dict()
    torch.manual_seed(1)
    expected = torch.randn(3)
    torch.manual_seed(1)
    build_teacher(read_source(save(state, tmp_path / "a.pth")))
    assert torch.equal(torch.randn(3), expected)
    state["norm.bias"] = state["norm.bias"] / 0
    with pytest.raises(SourceError, match=r"NaN or Inf in 1 of 42 tensors, first norm\.bias"):
        build_teacher(read_source(save(state, tmp_path / "b.pth")))


def test_a_file_that_two_families_claim_is_refused(tmp_path, monkeypatch):
    other = type("Other", (READERS.get("timm"),), {})
    monkeypatch.setitem(READERS._entries, "other", other)
    with pytest.raises(SourceError, match="several families match its keys: other, timm; at most one may"):
        read_source(save(tiny_vit().state_dict(), tmp_path / "a.pth"))


def test_own_checkpoint_without_our_facts(tmp_path):
    vit = tiny_vit()
    tree = {
        "meta": {"lvit_dense": {"arch": "base"}},
        "state_dict": {f"vit.{n}": v for n, v in vit.state_dict().items()},
    }
    with pytest.raises(
        SourceError, match=r"meta\['lvit_dense'\] is not what ViT\.facts gives \(KeyError: 'patch_size'"
    ):
        read_source(save(tree, tmp_path / "a.pth"))


def test_checkpoint_of_a_real_runner(tmp_path):
    """What mmengine saves (message hub, optimiser, meta) is read without mmengine's classes."""
    from mmengine.hooks import Hook
    from mmengine.model import BaseModel
    from mmengine.runner import Runner

    class Model(BaseModel):
        def __init__(self):
            super().__init__()
            self.vit = tiny_vit(depth=1)

        def forward(self, inputs, mode="tensor"):
            return {"loss": self.vit(inputs).tokens.mean()}

        def train_step(self, data, optim_wrapper):
            loss = self(data)["loss"]
            optim_wrapper.update_params(loss)
            return {"loss": loss.detach()}

    class Facts(Hook):
        def before_save_checkpoint(self, runner, checkpoint):
            checkpoint["meta"]["lvit_dense"] = runner.model.vit.facts

    model = Model()
    runner = Runner(
        model,
        str(tmp_path),
        train_dataloader=torch.utils.data.DataLoader(torch.randn(2, 3, 40, 40)),
        train_cfg={"by_epoch": True, "max_epochs": 1},
        optim_wrapper={"optimizer": {"type": "AdamW", "lr": 0.1}},
        custom_hooks=[Facts()],
        experiment_name=tmp_path.name,
        log_level="ERROR",
    )
    runner.train()
    with pytest.raises(pickle.UnpicklingError, match="HistoryBuffer"):
        torch.load(tmp_path / "epoch_1.pth", weights_only=True)
    source = read_source(str(tmp_path / "epoch_1.pth"))
    assert source.family == "lvit_dense" and source.facts.num_heads == 3
    assert all(torch.equal(source.state[n], v) for n, v in model.vit.state_dict().items())
    assert read_source(str(tmp_path)).sha256 == source.sha256  # the run's folder


def test_tensor_checksum_tells_names_shapes_and_bits():
    a = {"x": torch.arange(6.0)}
    assert tensors_sha256(a) == tensors_sha256({"x": torch.arange(6.0)})
    for other in ({"y": a["x"]}, {"x": a["x"].reshape(2, 3)}, {"x": a["x"] + 1e-6}, {"x": a["x"].double()}):
        assert tensors_sha256(other) != tensors_sha256(a)
