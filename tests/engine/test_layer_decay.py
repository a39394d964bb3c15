import pytest
import torch
from mmengine.model import MMDistributedDataParallel
from mmengine.optim import build_optim_wrapper
from torch import nn

from lvit_dense.engine.layer_decay import place_parameters, placement_table
from lvit_dense.models.backbone import LinearViT
from lvit_dense.operators import OPERATORS


class Detector(nn.Module):
    """Backbone under the name that mmdet and mmseg give it, and a head."""

    def __init__(self, operator="relu", **kwargs):
        super().__init__()
        arch = dict(embed_dim=32, depth=4, num_heads=2)
        self.backbone = LinearViT(arch=arch, operator=operator, **kwargs)
        self.head = nn.Conv2d(32, 3, 1)


def build(model, rate=0.5, **switches):
    cfg = dict(
        type="OptimWrapper",
        optimizer=dict(type="AdamW", lr=1.0, weight_decay=0.05),
        constructor="LayerDecayOptimWrapperConstructor",
        paramwise_cfg=dict(layer_decay_rate=rate, **switches),
    )
    import lvit_dense.engine.register  # noqa: F401

    return build_optim_wrapper(model, cfg)


def by_name(wrapper):
    return {name: group for group in wrapper.optimizer.param_groups for name in group["param_names"]}


@pytest.mark.parametrize("operator", OPERATORS.names())
def test_every_parameter_of_every_operator_is_placed_once(operator):
    model = Detector(operator)
    groups = build(model).optimizer.param_groups
    names = [name for group in groups for name in group["param_names"]]
    assert sorted(names) == sorted(name for name, _ in model.named_parameters())
    assert sum(len(group["params"]) for group in groups) == len(list(model.parameters()))


def test_rates_follow_the_layers():
    """Depth 4: embedding id 0, block i -> i + 1, pyramid and head 5; lr = .5 ** (5 - id)."""
    group = by_name(build(Detector(pos_embed="learned")))
    lr = {name: group[name]["lr"] for name in group}
    assert lr["backbone.vit.pos_embed"] == lr["backbone.vit.patch_embed.proj.weight"] == 0.5**5
    assert lr["backbone.vit.blocks.0.attn.qkv.weight"] == 0.5**4
    assert lr["backbone.vit.blocks.3.ls1.gamma"] == 0.5
    assert lr["backbone.pyramid.up2.weight"] == lr["backbone.pyramid.norms.0.weight"] == lr["head.weight"] == 1.0


def test_what_decays():
    group = by_name(build(Detector(pos_embed="learned", registers=2)))
    spared = {name for name in group if group[name]["weight_decay"] == 0}
    assert {"backbone.vit.pos_embed", "backbone.vit.reg_token", "head.bias"} <= spared
    assert all(name in spared for name in group if ".norm" in name or name.endswith((".bias", ".gamma")))
    assert {"backbone.vit.blocks.0.attn.qkv.weight", "head.weight", "backbone.pyramid.up2.weight"}.isdisjoint(spared)


def test_decay_pos_embed_switch_changes_only_it():
    model = Detector(pos_embed="learned")
    ours, theirs = ({p.name for p in place_parameters(model, 0.9, switch) if p.decays} for switch in (False, True))
    assert theirs - ours == {"backbone.vit.pos_embed"}


def test_rate_one_needs_no_backbone_and_merges_to_two_groups():
    assert len(build(nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4)), rate=1.0).optimizer.param_groups) == 2


def test_frozen_parameters_are_left_out():
    names = by_name(build(Detector(frozen_stages=2)))
    assert not any(name.startswith(("backbone.vit.patch_embed", "backbone.vit.blocks.1.")) for name in names)
    assert any(name.startswith("backbone.vit.blocks.2.") for name in names)


def test_wrapped_and_bare_models_agree(tmp_path):
    model = Detector()
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        wrapped = MMDistributedDataParallel(model, device_ids=None, broadcast_buffers=False)
        for one, other in zip(place_parameters(model, 0.9), place_parameters(wrapped, 0.9), strict=True):
            assert one.name == other.name and one[2:] == other[2:] and one.parameter is other.parameter
    finally:
        torch.distributed.destroy_process_group()


def test_an_optimiser_step_moves_each_group_by_its_rate():
    model = Detector()
    wrapper = build(model)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    wrapper.step()
    group = by_name(wrapper)
    for name in ("head.bias", "backbone.vit.blocks.0.norm1.bias", "backbone.vit.patch_embed.proj.bias"):
        moved = before[name] - dict(model.named_parameters())[name].detach()
        torch.testing.assert_close(moved, torch.full_like(moved, group[name]["lr"]))


@pytest.mark.parametrize(
    ("model", "rate", "message"),
    [
        (nn.Linear(2, 2), 0.9, "exactly one submodule with get_layer_depth .*Linear has none"),
        (nn.ModuleList([Detector(), Detector()]), 0.9, "'0.backbone', '1.backbone'"),
        (nn.Linear(2, 2), 95.0, r"must be in \(0, 1\].*got 95"),
    ],
)
def test_errors(model, rate, message):
    with pytest.raises(ValueError, match=message):
        build(model, rate)


def test_unplaced_parameter_is_an_error():
    model = Detector()
    model.backbone.vit.register_parameter("adapter", nn.Parameter(torch.zeros(2)))
    with pytest.raises(KeyError, match=r"backbone\.vit\.adapter.*has no place"):
        build(model)


def test_misspelt_switch():
    with pytest.raises(TypeError, match="did you mean 'layer_decay_rate'"):
        build(Detector(), layer_decay=0.9)


def test_table_has_one_line_per_parameter():
    placements = place_parameters(Detector(), 0.5)
    lines = placement_table(placements, lr=1e-3, weight_decay=0.05).splitlines()
    assert len(lines) == 1 + len(placements)
    (line,) = [line for line in lines if line.startswith("head.weight")]
    assert line.split() == ["head.weight", "3x32x1x1", "5", "1.0000", "0.001", "0.05"]
