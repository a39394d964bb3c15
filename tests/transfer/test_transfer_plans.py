"""Every plan: what it copies, bit for bit; what it leaves; the one error when it cannot be carried out."""

import json

import pytest
import torch
from timm.layers import resample_abs_pos_embed, resample_patch_embed

from lvit_dense.operators import OPERATORS
from lvit_dense.transfer import GROUPS, PLANS, TransferError, group_of, read_source, transfer
from lvit_dense.transfer.plan import TransferPlan
from lvit_dense.vit import ViT
from tests.transfer.conftest import ARCH, PATCH, SIDE, tiny_vit

NAMES = PLANS.names()
GROUPS_OF = {
    "random": set(),
    "copy": {"qkv", "proj", "ls1"},
    "mlpcopy": {"mlp", "ls2"},
    "fullcopy": set(GROUPS) - {"head"},
    "pretrained": set(GROUPS) - {"head"},
    "variant1": set(GROUPS) - {"head", "class_token"},
    "variant2": set(GROUPS) - {"head", "class_token", "positions"},
    "variant3": set(GROUPS) - {"head", "class_token", "positions", "patch_embed"},
    "mimetic": {"qkv", "proj"},
    "impulse": {"qkv", "proj", "positions"},
}


def student(operator="relu", **changes):
    return ViT(**{"arch": ARCH, "operator": operator, "img_size": SIDE, "patch_size": PATCH, **changes})


@pytest.fixture
def read(tmp_path):
    """``read(vit) -> Source`` through a file in timm's layout; ``drop`` removes keys, ``change`` alters tensors."""

    def source(vit, drop="", change=None):
        state = {n: v.clone() for n, v in vit.state_dict().items() if not drop or drop not in n}
        for name, value in (change or {}).items():
            state[name] = value
        torch.save(state, tmp_path / "source.pth")
        return read_source(str(tmp_path / "source.pth"))

    return source


def same(model, source, name):
    return torch.equal(model.state_dict()[name], source.state[name])


def test_groups_of_the_paper_s_plans():
    assert len(NAMES) >= len(GROUPS_OF) == 10
    assert all(issubclass(PLANS.get(name), TransferPlan) for name in NAMES)
    for name, groups in GROUPS_OF.items():
        assert set(PLANS.build(name).groups) == groups, name


@pytest.mark.parametrize("plan", NAMES)
def test_exactly_the_groups_of_the_plan_change(plan, read):
    source = read(tiny_vit(init_values=1.0))
    model, groups = student("softmax", init_values=0.5), PLANS.build(plan).groups
    before = {name: value.clone() for name, value in model.state_dict().items()}
    report = transfer(plan, source, model)
    for name, value in model.state_dict().items():
        if group_of(name) not in groups:
            assert torch.equal(value, before[name]), name
        elif PLANS.get(plan).needs_source:
            assert same(model, source, name), name
        elif not name.endswith("bias"):
            assert not torch.equal(value, before[name]), name
    for group in report.groups:
        written = group.copied + group.computed
        assert written == (group.total if group.group in groups else 0), group
        assert bool(group.random) == (written < group.total)
    assert report.random == sum(group_of(name) not in groups for name in before)
    assert (report.sha256 == source.sha256) == PLANS.get(plan).needs_source
    assert json.loads(json.dumps(report.to_dict()))["plan"] == plan
    assert f"transfer {plan}" in report.table()


def test_switches_of_the_copies(read):
    source = read(tiny_vit())
    groups = {}
    for plan in (
        {"type": "copy", "copy_proj": False, "copy_norms": True},
        {"type": "mlpcopy", "copy_norms": True},
    ):
        model = student()
        transfer(plan, source, model)
        groups[plan["type"]] = {group_of(n) for n in source.state if n in model.state_dict() and same(model, source, n)}
    assert groups["copy"] >= {"qkv", "norm1"} and not groups["copy"] & {"proj", "mlp", "norm2"}
    assert groups["mlpcopy"] >= {"mlp", "norm2"} and not groups["mlpcopy"] & {"proj", "qkv", "norm1"}
    with pytest.raises(TypeError, match="did you mean 'copy_norms'"):
        transfer({"type": "copy", "copy_norm": True}, source, student())
    with pytest.raises(KeyError, match="did you mean 'mlpcopy'"):
        transfer("mlp_copy", source, student())


@pytest.mark.parametrize("operator", OPERATORS.names())
def test_fullcopy_into_every_operator(operator, read):
    source = read(tiny_vit())
    model = student(operator, final_norm=False)
    report = transfer("fullcopy", source, model)
    assert report.group("mlp").copied == report.group("mlp").total == 4 * ARCH["depth"]
    assert report.group("mlp").blocks == (ARCH["depth"], ARCH["depth"])
    assert report.group("qkv").copied == 2 * ARCH["depth"]
    width = ARCH["embed_dim"]
    for block in range(ARCH["depth"]):
        for part in ("weight", "bias"):
            name = f"blocks.{block}.attn.qkv.{part}"
            assert torch.equal(model.state_dict()[name][: 3 * width], source.state[name])
    assert "final_norm" in {g.group for g in report.groups if g.dropped}
    if model.cls_token is None:
        assert report.group("class_token").dropped
        assert not report.group("class_token").total
    if not model.learned_positions:
        assert "stores no positions" in report.group("positions").dropped["pos_embed"]


def test_ttt_keeps_its_further_rows_and_its_projection(read):
    source, model = read(tiny_vit()), student("ttt")
    before = {name: value.clone() for name, value in model.state_dict().items()}
    report = transfer("copy", source, model)
    width, head_dim = ARCH["embed_dim"], ARCH["embed_dim"] // ARCH["num_heads"]
    for name, value in model.state_dict().items():
        if ".qkv." in name:
            assert value.shape[0] == 3 * width + 3 * head_dim
            assert torch.equal(value[3 * width :], before[name][3 * width :])
        elif ".proj." in name:
            assert torch.equal(value, before[name])
    assert report.group("proj").copied == 0
    assert "64 columns wider" in report.group("proj").random["blocks.*.attn.proj.weight"]
    assert "192 further rows; the first 576 are copied" in report.group("qkv").random["blocks.*.attn.qkv.weight"]


def test_positions_and_patch_kernel_are_resampled_by_timm(read):
    vit = tiny_vit()
    source, model = read(vit), student(img_size=(48, 96), patch_size=12)
    report = transfer("fullcopy", source, model)
    assert torch.equal(model.pos_embed, resample_abs_pos_embed(vit.pos_embed, [4, 8], [5, 5]))
    assert torch.equal(model.patch_embed.proj.weight, resample_patch_embed(vit.patch_embed.proj.weight, [12, 12]))
    assert report.group("positions").resized == "5x5->4x8"
    assert report.group("patch_embed").resized == "8x8->12x12 kernel"


def test_a_grid_with_as_many_tokens_but_another_shape_is_resampled(tmp_path):
    vit = tiny_vit(img_size=(32, 128))  # 4x16
    torch.save(vit.state_dict(), tmp_path / "a.pth")
    model = student(img_size=64)  # 8x8
    transfer("fullcopy", read_source(str(tmp_path / "a.pth"), grid=(4, 16)), model)
    assert not torch.equal(model.pos_embed, vit.pos_embed)
    assert torch.equal(model.pos_embed, resample_abs_pos_embed(vit.pos_embed, [8, 8], [4, 16]))


def test_class_rows_where_only_one_side_has_a_class_token(read):
    model = student(class_token=False, final_norm=False)
    source = read(tiny_vit())
    report = transfer("fullcopy", source, model)
    assert torch.equal(model.pos_embed, source.state["pos_embed"][:, 1:])
    assert "pos_embed[:, :1]" in report.group("positions").dropped
    source, model = read(tiny_vit(class_token=False)), student()
    first = model.pos_embed[:, :1].clone()
    report = transfer("fullcopy", source, model)
    assert torch.equal(model.pos_embed[:, 1:], source.state["pos_embed"]) and torch.equal(model.pos_embed[:, :1], first)
    assert report.group("class_token").random == {"cls_token": "the source has no class token"}


def test_layer_scale_goes_with_its_branch_or_is_folded(read):
    vit = tiny_vit(init_values=1.0)
    source = read(vit)
    with pytest.raises(TransferError, match=r"mlpcopy .*1 problem;.*\n  - ls2: .*3 tensors.*init_values"):
        transfer("mlpcopy", source, student())
    with pytest.raises(TransferError, match=r"2 problems;.*nothing was written"):
        transfer("fullcopy", source, student())
    model = student("softmax")
    report = transfer({"type": "fullcopy", "fold_layer_scale": True}, source, model)
    images = torch.randn(2, 3, SIDE, SIDE)
    with torch.no_grad():
        torch.testing.assert_close(model(images).tokens, vit(images).tokens, atol=1e-4, rtol=1e-4)
    assert report.options == {"fold_layer_scale": True}


@pytest.mark.parametrize("plan", ["mlpcopy", "fullcopy", "pretrained"])
def test_layer_scale_over_weights_that_had_none_starts_from_one(plan, read):
    source = read(tiny_vit())
    with pytest.raises(TransferError, match=r"ls2: the source has no LayerScale and the student's starts from 1e-05"):
        transfer(plan, source, student("softmax", init_values=1e-5))
    model = student("softmax", init_values=1.0)
    report = transfer(plan, source, model)
    assert "starts from 1" in report.group("ls2").random["blocks.*.ls2.gamma"]
    assert (model.blocks[1].ls2.gamma == 1).all()


def test_pretrained_takes_everything_and_refuses_another_operator(tmp_path):
    model = tiny_vit(operator="mhla")
    own = {"meta": {"lvit_dense": model.facts}, "state_dict": {f"vit.{n}": v for n, v in model.state_dict().items()}}
    torch.save(own, tmp_path / "own.pth")
    source = read_source(str(tmp_path / "own.pth"))
    assert source.facts.operator == "mhla" and source.facts.pos_embed == "sincos"
    dense = student({"type": "mhla"}, img_size=(24, 56), final_norm=False)
    report = transfer("pretrained", source, dense)
    assert report.random == 0
    for name, value in dense.state_dict().items():
        assert torch.equal(value, source.state[name])
    assert report.group("operator").copied == len([n for n in source.state if ".operator." in n]) > 0
    with pytest.raises(TransferError, match=r"operator: 'mhla' in the source, 'relu' in the student"):
        transfer("pretrained", source, student("relu", class_token=False, pos_embed="sincos"))
    del own["state_dict"]["vit.blocks.1.attn.operator.mix"]
    torch.save(own, tmp_path / "own.pth")
    with pytest.raises(
        TransferError, match=r"operator: 1 of .* missing in the source, first blocks.1.attn.operator.mix"
    ):
        transfer("pretrained", read_source(str(tmp_path / "own.pth")), student("mhla"))


def test_pretrained_ttt_copies_its_own_rows(tmp_path):
    model = tiny_vit(operator="ttt")
    own = {"meta": {"lvit_dense": model.facts}, "state_dict": {f"vit.{n}": v for n, v in model.state_dict().items()}}
    torch.save(own, tmp_path / "own.pth")
    copy = student("ttt")
    transfer("pretrained", read_source(str(tmp_path / "own.pth")), copy)
    assert all(torch.equal(value, model.state_dict()[name]) for name, value in copy.state_dict().items())


@pytest.mark.parametrize(
    ("changes", "plan", "message"),
    [
        ({"depth": 5}, "mlpcopy", "depth: 5 blocks in the source, 3 in the student"),
        ({"depth": 2}, "copy", r"qkv: 2 of 6 tensors missing in the source, first blocks.2.attn.qkv"),
        (
            {"embed_dim": 128, "num_heads": 2},
            "copy",
            r"qkv: 6 of 6 tensors do not fit.*\(384, 128\) in the source, \(576, 192\)",
        ),
        ({"mlp_ratio": 2.0}, "mlpcopy", r"mlp: 9 of 12 tensors do not fit, first blocks.0.mlp.fc1"),
        ({"drop": ".mlp."}, "mlpcopy", r"mlp: 12 of 12 tensors missing in the source, first blocks.0.mlp.fc1.weight"),
        ({"drop": ".attn."}, "fullcopy", r"qkv: 6 of 6 tensors missing in the source[\s\S]*proj: 6 of 6"),
        ({"drop": "blocks.1.attn.qkv.bias"}, "copy", r"qkv: 1 of 6 tensors missing in the source"),
        ({"in_chans": 4}, "fullcopy", r"patch_embed: 1 of 2 tensors do not fit.*\(192, 4, 8, 8\)"),
    ],
)
def test_one_error_with_counts_and_nothing_written(changes, plan, message, read):
    changes = dict(changes)
    drop = changes.pop("drop", "")
    model = student()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(TransferError, match=message):
        transfer(plan, read(tiny_vit(**changes), drop=drop), model)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_nan_is_named(read):
    vit = tiny_vit()
    bad = vit.state_dict()["blocks.1.mlp.fc1.weight"].clone()
    bad[3, 5] = float("nan")
    source = read(vit, change={"blocks.1.mlp.fc1.weight": bad})
    with pytest.raises(TransferError, match=r"NaN or Inf in 1 of 12 source tensors, first blocks.1.mlp.fc1.weight"):
        transfer("mlpcopy", source, student())
    transfer("copy", source, student())


def test_heads_must_agree_where_the_source_tells_them(tmp_path):
    vit = tiny_vit(num_heads=6)
    own = {"meta": {"lvit_dense": vit.facts}, "state_dict": {f"vit.{n}": v for n, v in vit.state_dict().items()}}
    torch.save(own, tmp_path / "own.pth")
    source = read_source(str(tmp_path / "own.pth"))
    with pytest.raises(TransferError, match="heads: num_heads is 6 in the source, 3 in the student"):
        transfer("copy", source, student())
    transfer("mlpcopy", source, student())


def test_a_plan_without_its_source():
    with pytest.raises(TransferError, match="'mlpcopy' needs a source"):
        transfer("mlpcopy", None, student())
    assert transfer("random", None, student()).source is None


def test_checksum_tells_the_values_that_were_written(read):
    vit = tiny_vit()
    first = transfer("mlpcopy", read(vit), student()).checksum
    assert transfer("mlpcopy", read(vit), student("elu")).checksum == first
    changed = {"blocks.0.mlp.fc1.bias": vit.blocks[0].mlp.fc1.bias.detach() + 1e-6}
    assert transfer("mlpcopy", read(vit, change=changed), student()).checksum != first


@pytest.mark.parametrize(("plan", "named"), [("fullcopy", True), ("variant3", False), ("mlpcopy", False)])
def test_a_patch_embedding_of_other_pixel_statistics_is_reported(plan, named, write):
    source = read_source(write("augreg", tiny_vit()))
    report = transfer(plan, source, tiny_vit(operator="relu"))
    assert (report.pixels == {"mean": (0.5,) * 3, "std": (0.5,) * 3}) == named
    assert ("trained on pictures of mean (0.5, 0.5, 0.5)" in report.table()) == named
    assert transfer(plan, read_source(write("timm", tiny_vit())), tiny_vit(operator="relu")).pixels is None
