"""Every checkpoint family: a file in its layout gives our model back, and exactly one family claims it."""

from pathlib import Path

import numpy as np
import pytest
import torch

import lvit_dense.transfer.readers as package
from lvit_dense.transfer import READERS, SourceError, build_teacher, read_source
from lvit_dense.transfer.loading import load_file_tensors
from lvit_dense.transfer.reader import open_view
from tests.transfer.conftest import ARCH, PATCH, SIDE, native_vit, tiny_vit

FAMILIES = READERS.names()


def test_one_file_a_family():
    files = {p.stem for p in Path(package.__path__[0]).glob("*.py")} - {"__init__"}
    assert len(files) == len(FAMILIES) >= 11


@pytest.mark.parametrize("family", FAMILIES)
def test_reads_to_the_same_model(family, write, images):
    vit = native_vit(family)
    source = read_source(write(family, vit))
    assert source.family == family
    expected = vit.state_dict()
    assert {n for n in source.state if not n.startswith("head.")} == set(expected)
    for name, value in expected.items():
        assert torch.equal(source.state[name], value), name
    facts = source.facts
    assert (facts.embed_dim, facts.depth, facts.num_heads) == vit.arch[:3]
    assert (facts.patch_size, tuple(facts.grid)) == (PATCH, (SIDE // PATCH,) * 2)
    teacher = build_teacher(source)
    assert not teacher.training and not any(p.requires_grad for p in teacher.parameters())
    with torch.no_grad():
        assert torch.equal(teacher(images).tokens, vit(images).tokens)


def test_families_say_which_pictures_they_were_trained_on(write):
    known = {family: read_source(write(family, native_vit(family))).facts.pixel_mean for family in FAMILIES}
    assert known.pop("augreg") == (0.5, 0.5, 0.5)
    assert known.pop("clip") == (0.48145466, 0.4578275, 0.40821073)
    assert known.pop("lvit_dense") is None  # our checkpoints do not say
    assert set(known.values()) == {(0.485, 0.456, 0.406)}


@pytest.fixture
def images():
    return torch.randn(2, 3, SIDE, SIDE)


@pytest.mark.parametrize("family", FAMILIES)
def test_no_other_family_claims_it(family, write):
    raw = load_file_tensors(write(family, native_vit(family)))
    claims = []
    for name in FAMILIES:
        view = open_view(READERS.get(name), raw)
        if not isinstance(view, str) and READERS.get(name)().why_not(view) is None:
            claims.append(name)
    assert claims == [family]


@pytest.mark.parametrize("prefix", ["", "module.", "backbone.", "model.", "encoder.", "state_dict.module.backbone."])
def test_known_prefixes_load_the_same_bits(prefix, tmp_path):
    vit = tiny_vit()
    torch.save({prefix + name: value for name, value in vit.state_dict().items()}, tmp_path / "a.pth")
    source = read_source(str(tmp_path / "a.pth"))
    assert source.family == "timm"
    assert all(torch.equal(source.state[name], value) for name, value in vit.state_dict().items())


@pytest.mark.parametrize("family", ["dino", "ibot", "mocov3", "mae", "timm"])
def test_five_kinds_of_training_file_give_equal_tensors(family, write):
    vit = tiny_vit(num_heads=12)
    state = read_source(write(family, vit)).state
    assert all(torch.equal(state[name], value) for name, value in vit.state_dict().items())


def test_grid_that_is_not_square(tmp_path):
    vit = tiny_vit(img_size=(24, 64))
    torch.save(vit.state_dict(), tmp_path / "a.pth")
    with pytest.raises(SourceError, match=r"25 rows.*leaves 24.*pass grid"):
        read_source(str(tmp_path / "a.pth"))
    with pytest.raises(SourceError, match=r"24 of them for patches, but grid=\(2, 11\) needs 22"):
        read_source(str(tmp_path / "a.pth"), grid=(2, 11))
    assert read_source(str(tmp_path / "a.pth"), grid=(3, 8)).facts.grid == (3, 8)
    assert read_source(str(tmp_path / "a.pth"), facts={"grid": [3, 8]}).facts.grid == (3, 8)  # as configs give it


def test_facts_that_no_key_tells(tmp_path):
    torch.save(tiny_vit(num_heads=6).state_dict(), tmp_path / "a.pth")
    assert read_source(str(tmp_path / "a.pth")).facts.heads_assumed
    facts = read_source(str(tmp_path / "a.pth"), facts={"num_heads": 6}).facts
    assert facts.num_heads == 6 and not facts.heads_assumed
    with pytest.raises(TypeError, match="did you mean 'num_heads'"):
        read_source(str(tmp_path / "a.pth"), facts={"num_head": 6})


def test_teacher_at_another_size_equals_resampled_positions(tmp_path):
    from timm.layers import resample_abs_pos_embed

    vit = tiny_vit()
    torch.save(vit.state_dict(), tmp_path / "a.pth")
    teacher = build_teacher(read_source(str(tmp_path / "a.pth")), img_size=(24, 56))
    assert teacher.grid == (3, 7)
    assert torch.equal(teacher.pos_embed, resample_abs_pos_embed(vit.pos_embed, [3, 7], [5, 5]))


def test_class_row_is_added_where_positions_are_for_patches_only(tmp_path, images):
    vit = tiny_vit(init_values=1.0)
    with torch.no_grad():
        vit.pos_embed[:, :1] = 0
    state = {**vit.state_dict(), "pos_embed": vit.pos_embed[:, 1:]}  # DeiT III in timm
    torch.save(state, tmp_path / "a.pth")
    source = read_source(str(tmp_path / "a.pth"))
    assert source.family == "timm" and torch.equal(source.state["pos_embed"], vit.pos_embed)

    original = {name.replace("ls1.gamma", "gamma_1").replace("ls2.gamma", "gamma_2"): v for name, v in state.items()}
    torch.save({"model": original}, tmp_path / "a.pth")  # DeiT III's own repository
    source = read_source(str(tmp_path / "a.pth"))
    expected = vit.state_dict()
    assert source.family == "timm" and source.state.keys() == expected.keys()
    assert all(torch.equal(source.state[name], value) for name, value in expected.items())


def test_original_and_shared_forms(tmp_path, images):
    """BEiT's pre-training files share one bias table; DINOv2's released files are flat."""
    vit = native_vit("beit")
    tree = READERS.get("beit")().lay_out(vit)["module"]
    table = tree["blocks.0.attn.relative_position_bias_table"]
    shared = {n: v for n, v in tree.items() if "relative_position" not in n}
    torch.save({"model": {**shared, "rel_pos_bias.relative_position_bias_table": table}}, tmp_path / "a.pth")
    state = read_source(str(tmp_path / "a.pth")).state
    assert all(torch.equal(state[f"blocks.{i}.attn.operator.bias.table"], table) for i in range(ARCH["depth"]))

    vit = tiny_vit(init_values=1.0)
    torch.save({**vit.state_dict(), "mask_token": torch.zeros(1, ARCH["embed_dim"])}, tmp_path / "a.pth")
    source = read_source(str(tmp_path / "a.pth"))
    assert source.family == "dinov2" and source.dropped == {"mask_token": "masked-image modelling"}


def test_mae_fine_tuned_has_no_final_norm(tmp_path):
    vit = tiny_vit(final_norm=False)
    extra = {"fc_norm.weight": torch.ones(192), "fc_norm.bias": torch.ones(192), "head.bias": torch.ones(3)}
    torch.save({"model": {**vit.state_dict(), **extra}}, tmp_path / "a.pth")
    source = read_source(str(tmp_path / "a.pth"))
    assert source.family == "mae" and not source.facts.final_norm
    build_teacher(source)


def test_openclip_is_told_its_activation(tmp_path):
    tree = READERS.get("clip")().lay_out(native_vit("clip"))
    torch.save({n: v for n, v in tree.items() if n.startswith("visual.")}, tmp_path / "a.bin")
    assert read_source(str(tmp_path / "a.bin")).facts.act_layer == "gelu"
    assert read_source(str(tmp_path / "a.bin"), facts={"act_layer": "quick_gelu"}).facts.act_layer == "quick_gelu"


def test_big_vision_prefixes(tmp_path):
    vit = tiny_vit()
    arrays = READERS.get("augreg")().lay_out(vit)
    np.savez(tmp_path / "a.npz", **{f"opt/target/{name}": value.numpy() for name, value in arrays.items()})
    assert torch.equal(read_source(str(tmp_path / "a.npz")).state["pos_embed"], vit.pos_embed)
