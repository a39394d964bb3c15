"""``timm:NAME``: what timm's modules tell, and models of another function under the same keys."""

import pytest
import timm
import torch

from lvit_dense.transfer import SourceError, read_source
from tests.transfer.conftest import save


def test_timm_names(monkeypatch):
    def offline(name, pretrained):
        raise OSError("no route to host\nsecond line")

    monkeypatch.setattr(timm, "create_model", offline)
    with pytest.raises(
        SourceError, match=r"cannot get 'timm:deit_tiny'.*\(OSError: no route to host\)\. Cure"
    ) as error:
        read_source("timm:deit_tiny")
    assert "\n" not in str(error.value)


def test_timm_models_tell_what_files_do_not(monkeypatch):
    create = timm.create_model

    def fresh(name, pretrained):
        torch.randn(3)  # a model's random initialisation
        return create(name, pretrained=False, img_size=(32, 64), embed_dim=96, depth=2, num_heads=4)

    monkeypatch.setattr(timm, "create_model", fresh)
    torch.manual_seed(3)
    expected = torch.randn(2)
    torch.manual_seed(3)
    source = read_source("timm:vit_base_patch16_clip_quickgelu_224")
    assert torch.equal(torch.randn(2), expected)  # the user's seed goes on undisturbed
    facts = source.facts
    assert (facts.num_heads, facts.heads_assumed, facts.grid) == (4, False, (2, 4))
    assert (facts.pre_norm, facts.act_layer, facts.norm_eps) == (True, "quick_gelu", 1e-5)
    assert facts.pixel_mean == (0.48145466, 0.4578275, 0.40821073)  # of timm's own configuration of this model
    assert source.family == "timm" and len(source.sha256) == 64


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("vit_base_patch16_rpn_224", r"its class VisionTransformer, of ResPostBlock,.*accepted are VisionTransformer"),
        ("vit_medium_patch16_rope_reg1_gap_256", r"its class Eva, of EvaBlock,.*each with timm's standard Block"),
        ("vit_small_patch16_dinov3_qkvb", "its class Eva, of EvaBlock,"),
        ("resnet18", "its class ResNet, of no blocks,"),
        ("vit_base_patch16_siglip_gap_224", None),
        ("vit_base_patch32_siglip_gap_256", r"activation is GELUTanh, expected one of gelu, quick_gelu"),
    ],
)
def test_timm_models_of_another_function_are_refused(name, message, monkeypatch):
    create, arch = timm.create_model, {} if name == "resnet18" else {"embed_dim": 96, "depth": 2, "num_heads": 4}
    monkeypatch.setattr(timm, "create_model", lambda name, pretrained: create(name, pretrained=False, **arch))
    if message is None:
        assert read_source(f"timm:{name}").facts.act_layer == "gelu"
        return
    with pytest.raises(SourceError, match=rf"timm:{name}: .*{message}"):
        read_source(f"timm:{name}")
    if "activation" in message:
        assert read_source(f"timm:{name}", facts={"act_layer": "gelu"}).facts.act_layer == "gelu"


@pytest.mark.parametrize("name", ["vit_medium_patch16_rope_reg1_gap_256", "vit_mediumd_patch16_rope_reg1_gap_256"])
@pytest.mark.parametrize("registers", [True, False])
def test_files_of_rotary_models_are_refused(name, registers, tmp_path):
    model = timm.create_model(name, embed_dim=96, depth=2, num_heads=4)
    state = {name: value for name, value in model.state_dict().items() if registers or name != "reg_token"}
    with pytest.raises(SourceError, match="no family matches its"):
        read_source(save(state, tmp_path / "a.pth"))
