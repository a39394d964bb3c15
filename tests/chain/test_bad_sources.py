"""Weights that a run cannot start from: tools/train.py ends with one error and its counts before the first step."""

import pytest
import torch

from lvit_dense.experiment.cell import Cell
from lvit_dense.vit import ViT
from tests.chain.conftest import STUDENT, WIDTH


def without_mlp(state):
    return {name: value for name, value in state.items() if ".mlp." not in name}


def with_nan(state):
    return {name: value * float("nan") if name == "blocks.1.mlp.fc1.bias" else value for name, value in state.items()}


def with_more_rows(state):
    return state | {"pos_embed": torch.zeros(1, 201, WIDTH)}


@pytest.mark.parametrize(
    ("arch", "change", "arm", "message"),
    [
        ((48, 4, 3), dict, "mlpcopy", "width: embed_dim is 48 in the source, 32 in the student"),
        ((WIDTH, 3, 2), dict, "mlpcopy", "mlp: 4 of 16 tensors missing in the source, first blocks.3.mlp.fc1.weight"),
        ((WIDTH, 4, 2), without_mlp, "mlpcopy", "mlp: 16 of 16 tensors missing in the source"),
        ((WIDTH, 4, 2), with_nan, "mlpcopy", "NaN or Inf in 1 of 16 source tensors, first blocks.1.mlp.fc1.bias"),
        ((WIDTH, 4, 2), with_nan, "random+distill", "NaN or Inf in 1 of 54 tensors, first blocks.1.mlp.fc1.bias"),
        ((48, 4, 3), dict, "random+distill", "the student is 32x4, the teacher 48x4"),
        ((WIDTH, 4, 2), with_more_rows, "mlpcopy", "pos_embed has 201 rows; 201 less 1 class row leaves 200"),
    ],
)
def test_one_error(arch, change, arm, message, chain, tmp_path):
    file = tmp_path / "weights.pth"
    torch.save(change(ViT(arch, "softmax", img_size=64).state_dict()), file)
    cell = Cell.parse(f"{STUDENT.config_name}@{arm}")
    with pytest.raises(SystemExit) as end:
        chain.train(cell, "--teacher", str(file), "--work-dir", str(tmp_path / "run"))
    text = str(end.value)
    assert text.startswith("error: ") and message in text and str(file) in text
    assert not list(tmp_path.glob("run/*.pth"))


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("term=output_msse", "did you mean 'output_mse'"),
        ("wieght=3", "did you mean 'weight'"),
        ("blocks=[4]", "must name some of the blocks 0..3"),
        ("schedule=linear", "distill.schedule='linear'"),
    ],
)
def test_bad_options_of_the_distillation_are_one_line(option, message, chain, teacher, tmp_path):
    with pytest.raises(SystemExit) as end:
        chain.train(STUDENT, "--work-dir", str(tmp_path / "run"), "--cfg-options", f"model.distill.{option}")
    assert message in str(end.value) and "\n" not in str(end.value)


def test_a_term_of_the_command_line_is_trained(chain, teacher, tmp_path):
    options = ["term=map_ce", "block_reduction=sum", "weight=3.0", "blocks=[0,1,2]", "schedule=cosine", "tokens=patch"]
    chain.train(STUDENT, "--work-dir", str(tmp_path / "run"), "--cfg-options", *(f"model.distill.{o}" for o in options))
    assert "loss_distill" in next((tmp_path / "run").glob("*/vis_data/scalars.json")).read_text()
