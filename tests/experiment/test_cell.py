"""Names of runs, the configs they belong to, and what the generator writes for them."""

from pathlib import Path

import pytest
from mmengine.config import Config

from lvit_dense.experiment.cell import Cell
from lvit_dense.experiment.leaves import OPERATORS, SIZES, leaves
from lvit_dense.experiment.paper import COLUMNS, PAPER, numbers

CONFIGS = Path(__file__).resolve().parents[2] / "configs"


@pytest.mark.parametrize(
    "name",
    [
        "imagenet_relu_base@random",
        "maskrcnn_relu_base@mlpcopy+distill",
        "upernet_ttt_small@fullcopy@seed2",
        "maskrcnn_softmax_base@teacher",
        "maskrcnn_relu_tiny@scratch",
    ],
)
def test_names_round_trip(name):
    assert Cell.parse(name).name == name


def test_a_bare_config_name_takes_its_tasks_default_arm():
    assert Cell.parse("imagenet_relu_base").arm == "random"
    assert Cell.parse("maskrcnn_relu_base").arm == "mlpcopy+distill"
    assert Cell.parse("upernet_softmax_base").arm == "teacher"


def test_every_dense_row_has_an_imagenet_run_before_it_but_scratch_and_teacher():
    assert Cell.parse("maskrcnn_relu_base@random").upstream.name == "imagenet_relu_base@random"
    assert Cell.parse("upernet_ttt_base@copy+distill@seed1").upstream.name == "imagenet_ttt_base@copy+distill@seed1"
    for name in ("maskrcnn_relu_base@scratch", "upernet_softmax_base@teacher", "imagenet_relu_base@copy"):
        assert Cell.parse(name).upstream is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("maskrcn_relu_base", "did you mean 'maskrcnn'"),
        ("imagenet_rellu_base", "did you mean 'relu'"),
        ("imagenet_relu_huge", "base"),
        ("imagenet_relu_base@mlpcpy", "did you mean 'mlpcopy'"),
        ("imagenet_relu_base@mlpcopy+destill", r"\+distill"),
        ("imagenet_relu_base@scratch", "random"),
        ("maskrcnn_relu_base@scratch+distill", "no ImageNet stage"),
        ("my-config", "no cell"),
    ],
)
def test_bad_names_say_what_was_expected(name, message):
    with pytest.raises(ValueError, match=message):
        Cell.parse(name)


def test_all_leaf_configs_are_what_the_generator_writes():
    texts = leaves()
    assert len(texts) == 3 * len(OPERATORS) * len(SIZES) == 54
    assert {p.name for p in CONFIGS.glob("*.py")} == set(texts)
    for name, text in texts.items():
        assert (CONFIGS / name).read_text() == text, f"{name}: run tools/write_configs.py"


@pytest.mark.parametrize("name", sorted(leaves()))
def test_every_config_is_what_its_name_says(name):
    cfg = Config.fromfile(CONFIGS / name)
    cell = Cell.parse(name.removesuffix(".py"))
    backbone = cfg.model.backbone
    assert (backbone.operator, backbone.arch) == (cell.operator, cell.size)
    if cell.task == "imagenet":
        assert "transfer" not in cfg.model and "distill" not in cfg.model
        assert cfg.teacher == f"timm:deit_{cell.size}_patch16_224.fb_in1k"
    elif cell.upstream is not None:
        assert backbone.transfer == {"plan": "pretrained", "source": f"work_dirs/{cell.upstream.name}"}
    else:
        assert backbone.transfer == {"plan": "fullcopy", "source": f"timm:deit_{cell.size}_patch16_224.fb_in1k"}


def test_the_papers_numbers():
    assert len(COLUMNS) == 9
    assert all(len(row) == 9 for rows in PAPER.values() for row in rows.values())
    assert [len(PAPER[o]) for o in ("softmax", "relu", "ttt")] == [1, 8, 8]
    assert numbers("relu")["mlpcopy+distill"] == {
        "top1": 81.4, "APb": 42.2, "APb50": 64.6, "APb75": 45.9, "APm": 38.2, "APm50": 62.0, "APm75": 40.7,
        "mIoU": 45.2, "mIoU_ms": 45.9,
    }  # fmt: skip
    header = (CONFIGS / "upernet_ttt_base.py").read_text()
    assert "# Paper, fullcopy+distill: mIoU 47.1, mIoU_ms 47.9\n" in header
    assert "# Paper" not in (CONFIGS / "imagenet_relu_tiny.py").read_text()
