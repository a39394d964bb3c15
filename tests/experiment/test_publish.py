"""Published files: what is kept, what is left out, and the metafile's rows."""

import hashlib
import json

import pytest
import torch
import yaml

from lvit_dense.experiment.leaves import leaves
from lvit_dense.experiment.model_index import COLLECTIONS, metafile
from lvit_dense.experiment.publish import add_row, find_checkpoint, metafile_row, publish
from lvit_dense.experiment.suite import CONFIGS
from lvit_dense.transfer import read_source
from lvit_dense.vit import ViT

RUN = "upernet_relu_tiny@mlpcopy+distill@seed3"


@pytest.fixture
def vit():
    torch.manual_seed(0)
    return ViT(dict(embed_dim=16, depth=2, num_heads=2), "relu", img_size=32)


@pytest.fixture
def checkpoint(vit, tmp_path):
    """A segmentor's checkpoint after iteration 20 in its work dir, with all that mmengine and an EMA add."""
    state = {f"backbone.vit.{name}": value for name, value in vit.state_dict().items()}
    state["decode_head.conv_seg.weight"] = torch.randn(4, 600)[:, :8]  # a view of a larger storage
    meta = {
        "lvit_dense": vit.facts,
        "dataset_meta": {"classes": tuple("abcd"), "palette": [[0, 0, 0]] * 4},
        "experiment_name": "upernet_relu_tiny_20261201_000510",
        "iter": 20,
        "epoch": 0,
        "seed": 3,
        "time": "now",
    }
    other = {name: value + 1 for name, value in state.items()}
    folder = tmp_path / RUN
    folder.mkdir()
    parts = dict(meta=meta, state_dict=state, ema_state_dict=other, optimizer={"state": other}, message_hub={"x": 1})
    torch.save(parts, folder / "iter_20.pth")
    (folder / "last_checkpoint").write_text(str(folder / "iter_20.pth"))
    lines = [
        {"kind": "val", "iter": 20, "metrics": {"mIoU": 41.234, "aAcc": 80.0}},
        {"kind": "tta", "iter": 0, "metrics": {"mIoU": 42.5}},
    ]
    (folder / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder / "iter_20.pth"


def test_weights_and_facts_are_kept_and_the_rest_is_not(checkpoint, vit, tmp_path):
    done = publish(checkpoint, tmp_path / "zoo" / "name.pth")
    digest = hashlib.sha256(done.path.read_bytes()).hexdigest()
    assert done.path.name == f"name-{digest[:8]}.pth" and done.sha256 == digest
    assert [file.name for file in done.path.parent.iterdir()] == [done.path.name]
    content = torch.load(done.path, weights_only=True)
    assert content.keys() == {"meta", "state_dict"}
    before = torch.load(checkpoint, weights_only=True)
    assert content["state_dict"].keys() == before["state_dict"].keys()
    assert all(torch.equal(content["state_dict"][name], value) for name, value in before["state_dict"].items())
    assert content["meta"]["dataset_meta"] == before["meta"]["dataset_meta"]
    assert done.left_out == ["meta.time"] and "time" not in content["meta"]
    assert content["state_dict"]["decode_head.conv_seg.weight"].untyped_storage().nbytes() == 4 * 8 * 4
    source = read_source(str(done.path))
    assert source.family == "lvit_dense" and source.facts.num_heads == 2
    assert all(torch.equal(source.state[name], value) for name, value in vit.state_dict().items())


def test_the_same_checkpoint_gives_the_same_file(checkpoint, tmp_path):
    first = publish(checkpoint, tmp_path / "a" / "name.pth")
    second = publish(find_checkpoint(checkpoint.parent), tmp_path / "b" / "name.pth")
    assert (first.path.name, first.path.read_bytes()) == (second.path.name, second.path.read_bytes())


def test_a_row_has_the_runs_name_config_and_results(checkpoint, tmp_path):
    done = publish(checkpoint, tmp_path / "name.pth")
    row = metafile_row(checkpoint, done)
    assert (row["Name"], row["Config"]) == (RUN, "configs/upernet_relu_tiny.py")
    assert (row["Weights"], row["SHA256"]) == (done.path.name, done.sha256)
    assert (row["Metadata"]["Iter"], row["Metadata"]["Seed"]) == (20, 3)
    (result,) = row["Results"]
    assert result["Metrics"] == {"mIoU": 41.23, "mIoU(ms+flip)": 42.5}
    assert result["Dataset"] == row["Metadata"]["Training Data"] == "own data, 4 classes"


def test_results_of_another_checkpoint_are_not_taken(checkpoint, tmp_path):
    older = checkpoint.with_name("iter_10.pth")
    content = torch.load(checkpoint, weights_only=True)
    content["meta"]["iter"] = 10
    torch.save(content, older)
    assert metafile_row(older, publish(older, tmp_path / "name.pth"))["Results"] == []


def test_rows_are_added_and_replaced_in_an_existing_metafile(checkpoint, tmp_path):
    row = metafile_row(checkpoint, publish(checkpoint, tmp_path / "name.pth"))
    file = tmp_path / "metafile.yml"
    add_row(file, {**row, "Name": "other"})
    add_row(file, {**row, "SHA256": "old"})
    add_row(file, row)
    assert yaml.safe_load(file.read_text())["Models"] == [{**row, "Name": "other"}, row]


@pytest.mark.parametrize("text", ["- a list", "Models: 3", "{"])
def test_a_file_that_is_no_metafile_is_left_alone(text, tmp_path):
    file = tmp_path / "metafile.yml"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"metafile\.yml.*nothing was changed"):
        add_row(file, {"Name": "x"})
    assert file.read_text() == text


def test_what_cannot_be_published_is_said_and_nothing_is_written(checkpoint, tmp_path):
    content = torch.load(checkpoint, weights_only=True)
    bad, foreign, out = tmp_path / "nan.pth", tmp_path / "foreign.pth", tmp_path / "zoo" / "name.pth"
    content["state_dict"]["decode_head.conv_seg.weight"][1, 2] = float("nan")
    torch.save(content, bad)
    with pytest.raises(ValueError, match=r"NaN or Inf in 1 of .* decode_head\.conv_seg\.weight"):
        publish(bad, out)
    torch.save({"state_dict": content["state_dict"], "meta": {"epoch": 1}}, foreign)
    with pytest.raises(ValueError, match=r"foreign\.pth: not a checkpoint .*lvit_dense.*epoch"):
        publish(foreign, out)
    with pytest.raises(ValueError, match=r"ends in \.pth"):
        publish(checkpoint, tmp_path / "zoo")
    with pytest.raises(FileNotFoundError, match="no checkpoint"):
        find_checkpoint(tmp_path / "absent.pth")
    assert not out.parent.exists()


def test_a_config_of_ones_own_has_no_row(checkpoint, tmp_path):
    done = publish(checkpoint, tmp_path / "name.pth")
    foreign = done._replace(meta={**done.meta, "experiment_name": "mine_20261201_000510"})
    with pytest.raises(ValueError, match="called 'mine', expected TASK_OPERATOR_SIZE"):
        metafile_row(checkpoint, foreign)


def test_the_model_index_lists_every_config_once():
    index = yaml.safe_load((CONFIGS.parent / "model-index.yml").read_text())
    assert index == {"Import": ["configs/metafile.yml"]}
    text = (CONFIGS / "metafile.yml").read_text()
    assert text == metafile(), "run tools/write_configs.py"
    content = yaml.safe_load(text)
    assert sorted(model["Config"] for model in content["Models"]) == sorted(f"configs/{name}" for name in leaves())
    names = {collection["Name"] for collection in content["Collections"]}
    assert (
        names == {model["In Collection"] for model in content["Models"]} == {name for name, _ in COLLECTIONS.values()}
    )
