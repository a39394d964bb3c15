"""Flags of tools/train.py and tools/test.py: what they write into a config, and the one line of each bad input."""

import argparse
from pathlib import Path

import pytest
import torch
from mmengine.config import Config

from lvit_dense.experiment import configure
from lvit_dense.experiment.batch import batch_line, set_auto_scale_lr
from lvit_dense.experiment.cell import Cell
from lvit_dense.experiment.launch import configure_training, load_config, one_line_errors
from lvit_dense.models.classifier import LinearViTClassifier
from lvit_dense.vit import ViT

CONFIGS = Path(__file__).resolve().parents[2] / "configs"


def flags(config, **given):
    defaults = dict.fromkeys(("cfg_options", "init", "teacher", "seed", "work_dir", "resume", "recipe", "data"))
    defaults |= dict.fromkeys(("distill", "amp", "auto_scale_lr", "keep_batch", "native_parts"), False)
    defaults |= {"config": str(CONFIGS / config), "launcher": "none", "work_root": "work_dirs"}
    return argparse.Namespace(**{**defaults, **given})


@pytest.fixture
def teacher(tmp_path):
    vit = ViT((192, 12, 3), "softmax", init_values=1e-5)
    path = tmp_path / "teacher.pth"
    torch.save(vit.state_dict(), path)
    return str(path)


def test_the_arm_of_an_imagenet_run(teacher):
    cfg = configure_training(flags("imagenet_relu_tiny.py", init="mlpcopy", distill=True, teacher=teacher, seed=3))
    assert cfg.model.transfer == {"plan": "mlpcopy", "source": teacher}
    assert cfg.model.distill == {"teacher": teacher}
    assert cfg.randomness.seed == 3
    assert cfg.work_dir == "work_dirs/imagenet_relu_tiny@mlpcopy+distill@seed3"


def test_a_student_of_a_teacher_with_layer_scale_has_layer_scale_in_every_arm(teacher):
    for init in ("random", "copy"):
        cfg = configure_training(flags("imagenet_relu_tiny.py", init=init, teacher=teacher))
        assert cfg.model.backbone.init_values == 1.0


def test_native_parts_are_taken_when_asked_for(tmp_path):
    path = tmp_path / "registers.pth"
    torch.save(ViT((192, 12, 3), "softmax", init_values=1e-5, registers=4).state_dict(), path)
    plain = configure_training(flags("imagenet_relu_tiny.py", init="copy", teacher=str(path)))
    native = configure_training(flags("imagenet_relu_tiny.py", init="copy", teacher=str(path), native_parts=True))
    assert "registers" not in plain.model.backbone
    assert native.model.backbone.registers == 4


def test_native_parts_leave_registers_to_operators_that_can_take_them(tmp_path):
    path = tmp_path / "registers.pth"
    torch.save(ViT((192, 12, 3), "softmax", init_values=1e-5, registers=4).state_dict(), path)
    cfg = configure_training(flags("imagenet_ttt_tiny.py", init="copy", teacher=str(path), native_parts=True))
    assert cfg.model.backbone.registers == 0


def test_facts_of_the_teacher_hold_for_what_is_copied_and_for_the_student(teacher):
    options = {"model.distill.facts.act_layer": "quick_gelu"}
    for init, distill in (("copy", True), ("copy", False), ("random", False)):
        given = {"init": init, "distill": distill, "teacher": teacher, "native_parts": True, "cfg_options": options}
        model = configure_training(flags("imagenet_relu_tiny.py", **given)).model
        assert model.backbone.act_layer == "quick_gelu"
        assert all(
            model[part].facts == {"act_layer": "quick_gelu"} for part in ("transfer", "distill") if part in model
        )
    assert "source" in configure_training(flags("imagenet_relu_tiny.py", **given | {"init": "copy"})).model.transfer


@pytest.mark.parametrize("init", ["mimetic", "impulse"])
def test_plans_that_copy_nothing_read_no_weights(init):
    cfg = configure_training(flags("imagenet_relu_tiny.py", init=init))
    assert cfg.model.transfer == {"plan": init}


def test_without_flags_an_imagenet_run_is_random_and_needs_no_weights():
    cfg = configure_training(flags("imagenet_relu_tiny.py"))
    assert "transfer" not in cfg.model and "distill" not in cfg.model
    assert cfg.work_dir == "work_dirs/imagenet_relu_tiny@random"


def test_a_dense_run_names_the_command_of_its_missing_upstream_run(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        configure_training(flags("maskrcnn_relu_tiny.py", work_root=str(tmp_path)))
    assert "imagenet_relu_tiny@mlpcopy+distill is not trained yet" in str(error.value)
    assert "python tools/train.py configs/imagenet_relu_tiny.py --init mlpcopy --distill" in str(error.value)
    assert "--init scratch" in str(error.value)


def test_scratch_and_teacher_need_no_upstream_run(teacher):
    assert configure_training(flags("maskrcnn_relu_tiny.py", init="scratch")).model.backbone.get("transfer") is None
    cfg = configure_training(flags("upernet_softmax_tiny.py", teacher=teacher))
    assert cfg.model.backbone.transfer == {"plan": "fullcopy", "source": teacher}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"init": "mlpcpy"}, "did you mean 'mlpcopy'"),
        ({"init": "mlpcopy", "teacher": "nowhere.pth"}, "no weights at nowhere.pth"),
        ({"config": "imagenet_rellu_tiny.py"}, "did you mean 'imagenet_relu_tiny'"),
        ({"amp": True}, "needs a CUDA device"),
    ],
)
def test_bad_flags_end_with_one_line(given, message, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit) as end, one_line_errors():
        configure_training(flags(**{"config": "imagenet_relu_tiny.py", **given}))
    assert message in str(end.value) and "\n" not in str(end.value)


def test_own_config_names_cannot_take_an_arm(tmp_path):
    own = tmp_path / "mine.py"
    own.write_text(f"_base_ = {str(CONFIGS / 'imagenet_relu_tiny.py')!r}\n")
    assert configure_training(flags(own)).work_dir == "work_dirs/mine"
    with pytest.raises(ValueError, match="TASK_OPERATOR_SIZE"):
        configure_training(flags(own, init="copy"))


def test_the_batch_line_compares_with_the_recipe():
    cfg = Config.fromfile(CONFIGS / "imagenet_relu_base.py")
    assert batch_line(cfg, 8).startswith("batch 512 x 8 processes x 1 accumulated = 4096, lr 0.002")
    line = batch_line(cfg, 1)
    assert line.startswith("WARNING") and "4096" in line and "--keep-batch" in line
    set_auto_scale_lr(cfg)
    assert "scaled by --auto-scale-lr to 0.00025" in batch_line(cfg, 1)


def test_options_of_the_command_line_reach_the_config():
    cfg = load_config(
        str(CONFIGS / "upernet_relu_base.py"), {"train_dataloader.dataset.pipeline.3.crop_size": (96, 96)}
    )
    assert cfg.train_dataloader.dataset.pipeline[3].crop_size == (96, 96)


def test_seed_is_the_cells(teacher):
    cfg = Config.fromfile(CONFIGS / "imagenet_relu_base.py")
    configure.set_arm(cfg, Cell.parse("imagenet_relu_base@random@seed5"), "work_dirs", None)
    assert cfg.randomness.seed == 5


def test_an_arm_keeps_the_switches_that_the_config_sets():
    cfg = Config.fromfile(CONFIGS / "imagenet_relu_base.py")
    cfg.model.update(transfer={"plan": {"copy_norms": True}}, distill={"weight": 100.0})
    configure.set_arm(cfg, Cell.parse("imagenet_relu_base@copy+distill"), "work_dirs", "weights.pth")
    assert cfg.model.transfer == {"plan": {"type": "copy", "copy_norms": True}, "source": "weights.pth"}
    assert cfg.model.distill == {"teacher": "weights.pth", "weight": 100.0}


def test_the_distillation_is_told_of_pictures_that_are_not_normalised_as_imagenets(teacher):
    options = {
        "train_dataloader.dataset.transform.mean": (0.5,) * 3,
        "train_dataloader.dataset.transform.std": (0.5,) * 3,
    }
    given = {"init": "random", "distill": True, "teacher": teacher}
    assert configure_training(flags("imagenet_relu_tiny.py", **given)).model.distill == {"teacher": teacher}
    cfg = configure_training(flags("imagenet_relu_tiny.py", cfg_options=options, **given))
    assert cfg.model.distill == {"teacher": teacher, "pixel_mean": (0.5,) * 3, "pixel_std": (0.5,) * 3}
    classifier = LinearViTClassifier(cfg.model.backbone, 10, distill=cfg.model.distill)
    assert classifier.distiller().pixels is not None
    own = {**cfg.model.distill, "facts": {"pixel_mean": (0.5,) * 3, "pixel_std": (0.5,) * 3}}
    assert LinearViTClassifier(cfg.model.backbone, 10, distill=own).distiller().pixels is None


def test_switches_of_the_command_line_reach_what_a_config_leaves_out(teacher):
    options = {"model.distill.weight": 10.0, "model.transfer.plan.copy_norms": True}
    given = {"init": "copy", "distill": True, "teacher": teacher}
    cfg = configure_training(flags("imagenet_relu_tiny.py", cfg_options=options, **given))
    assert cfg.model.distill == {"teacher": teacher, "weight": 10.0}
    assert cfg.model.transfer == {"plan": {"type": "copy", "copy_norms": True}, "source": teacher}


OPTIONAL = {
    "imagenet": {"model": {"transfer": {"plan": {"copy_norms": True}}, "distill": {"weight": 10.0}}},
    "maskrcnn": {"optim_wrapper": {"clip_grad": {"max_norm": 1.0}}},
    "upernet": {"optim_wrapper": {"clip_grad": {"max_norm": 1.0}}},
}


@pytest.mark.parametrize("task", OPTIONAL)
def test_a_child_config_sets_the_optional_parts(task, tmp_path):
    # mmengine refuses a mapping over a None of the base config
    base = CONFIGS / f"{task}_relu_tiny.py"
    child = tmp_path / base.name
    child.write_text(f"_base_ = {str(base)!r}\n" + Config(OPTIONAL[task]).pretty_text)
    cfg = Config.fromfile(child)
    for part, settings in OPTIONAL[task].items():
        assert all(cfg[part][key] == value for key, value in settings.items())


def test_a_childs_switches_serve_the_arm_that_uses_them_and_no_other(teacher, tmp_path):
    base = CONFIGS / "imagenet_relu_tiny.py"
    child = tmp_path / base.name
    child.write_text(f"_base_ = {str(base)!r}\n" + Config(OPTIONAL["imagenet"]).pretty_text)
    plain = configure_training(flags(str(child), init="random", teacher=teacher)).model
    assert "transfer" not in plain and "distill" not in plain
    both = configure_training(flags(str(child), init="copy", distill=True, teacher=teacher)).model
    assert both.transfer.plan == {"type": "copy", "copy_norms": True} and both.distill.weight == 10.0


def test_weights_that_the_options_name_are_used_and_the_run_has_no_arms_name(teacher, tmp_path):
    dense = {"model.backbone.transfer": {"plan": "mlpcopy", "source": teacher}}
    cfg = configure_training(flags("maskrcnn_relu_tiny.py", cfg_options=dense, seed=4))
    assert cfg.model.backbone.transfer == dense["model.backbone.transfer"]
    assert cfg.work_dir == "work_dirs/maskrcnn_relu_tiny@seed4" and cfg.randomness.seed == 4
    assert not any(hook.type == "ExpectedMetricHook" for hook in cfg.custom_hooks)
    stage = {"model.transfer": {"plan": "copy", "source": teacher}, "model.distill": {"teacher": teacher}}
    cfg = configure_training(flags("imagenet_relu_tiny.py", cfg_options=stage))
    assert cfg.model.transfer == stage["model.transfer"] and cfg.model.distill == stage["model.distill"]
    with pytest.raises(ValueError, match=r"model.transfer.source=.*so do the flags .init.: give one of them"):
        configure_training(flags("imagenet_relu_tiny.py", cfg_options=stage, init="copy"))


def test_a_dense_config_of_a_shipped_name_with_weights_of_its_own(teacher, tmp_path):
    base = CONFIGS / "maskrcnn_relu_tiny.py"
    child = tmp_path / base.name
    child.write_text(f"_base_ = {str(base)!r}\nmodel = dict(backbone=dict(transfer=None))\n")
    assert configure_training(flags(str(child))).model.backbone.transfer is None
    assert configure_training(flags(str(child))).work_dir == "work_dirs/maskrcnn_relu_tiny"


def test_own_data_is_not_compared_with_the_paper():
    def compared(**options):
        cfg = configure_training(flags("imagenet_relu_base.py", cfg_options=options or None))
        return any(hook.type == "ExpectedMetricHook" for hook in cfg.custom_hooks)

    assert compared() and compared(**{"train_dataloader.num_workers": 2})
    for options in ({"val_dataloader.dataset.root": "mine"}, {"model.backbone.operator": "elu"}):
        assert not compared(**options)


def test_another_teacher_is_not_compared_with_the_paper(tmp_path):
    path = tmp_path / "teacher.pth"
    torch.save(ViT("base", "softmax").state_dict(), path)
    cfg = configure_training(flags("imagenet_relu_base.py", init="copy", teacher=str(path)))
    assert not any(hook.type == "ExpectedMetricHook" for hook in cfg.custom_hooks)


def test_a_config_that_replaces_the_hooks_keeps_the_check_of_weights_and_hears_what_it_lost(tmp_path, capsys):
    base = CONFIGS / "imagenet_relu_tiny.py"
    own = tmp_path / "mine.py"
    own.write_text(f"_base_ = {str(base)!r}\ncustom_hooks = [dict(type='EMAHook')]\n")
    cfg = configure_training(flags(str(own)))
    assert [hook.type for hook in cfg.custom_hooks] == ["EMAHook", "ProvenanceHook"]
    assert "goes without RandomnessHook, ResumeHook" in capsys.readouterr().out
    configure_training(flags(str(base)))
    assert "WARNING custom_hooks" not in capsys.readouterr().out
