"""--recipe, --data and --keep-batch: what they write into a config, and the one line of each bad input."""

import subprocess
import sys

import pytest
import torch
from mmengine.config import Config
from mmengine.optim import OptimWrapper
from mmengine.registry import PARAM_SCHEDULERS
from torch import nn

from lvit_dense.engine.results import RESULTS, read_results
from lvit_dense.experiment import presets
from lvit_dense.experiment.batch import batch_line, set_auto_scale_lr, set_keep_batch
from lvit_dense.experiment.launch import configure_training, load_config, one_line_errors
from lvit_dense.experiment.suite import CONFIGS, TOOLS
from tests.experiment.test_configure import flags

# Table B: classes, epochs, warm-up
TRANSFER_SETS = {
    "cifar10": (10, 300, 50),
    "cifar100": (100, 300, 50),
    "stl10": (10, 300, 50),
    "food101": (101, 300, 50),
    "flowers102": (102, 600, 100),
    "pets": (37, 600, 100),
}
TEST_SETS = {"imagenet_a": 200, "imagenet_r": 200, "imagenet_sketch": 1000, "imagenet_v2": 1000}


def test_the_presets_are_these():
    assert presets.names("recipe") == ["paper", "xu2024"]
    assert set(presets.names("data")) == {*TRANSFER_SETS, *TEST_SETS}


@pytest.mark.parametrize("name", TRANSFER_SETS)
@pytest.mark.parametrize("recipe", [None, "xu2024"])
def test_transfer_sets_are_table_b_with_every_recipe(name, recipe):
    classes, epochs, warmup = TRANSFER_SETS[name]
    cfg = configure_training(flags("imagenet_mhla_small.py", data=name, recipe=recipe))
    assert cfg.model.num_classes == classes
    assert cfg.train_cfg.max_epochs == epochs
    assert cfg.optim_wrapper.optimizer.lr == 2e-3
    assert cfg.auto_scale_lr.base_batch_size == 512 == 8 * cfg.train_dataloader.batch_size
    warm, cosine = cfg.param_scheduler
    assert (warm.begin, warm.end, cosine.begin, cosine.end, cosine.T_max) == (
        0, warmup, warmup, epochs, epochs - warmup
    )  # fmt: skip
    assert warm.start_factor * 2e-3 == pytest.approx(cosine.eta_min) == pytest.approx(1e-6)
    for split in ("train", "val", "test"):
        dataset = cfg[f"{split}_dataloader"].dataset
        assert dataset.name.startswith("torch/") and dataset.root == f"data/{name}"
        assert dataset.transform.input_size == 224 and "download" not in dataset
    assert cfg.work_dir == f"work_dirs/{'xu2024/' if recipe else ''}{name}/imagenet_mhla_small@random"


def test_xu2024_is_the_paper_recipe_and_the_heavier_augmentation():
    paper = configure_training(flags("imagenet_relu_base.py", recipe="paper"))
    assert paper.work_dir == "work_dirs/imagenet_relu_base@random"
    cfg = configure_training(flags("imagenet_relu_base.py", recipe="xu2024"))
    assert cfg.work_dir == "work_dirs/xu2024/imagenet_relu_base@random"
    assert cfg.optim_wrapper.optimizer.lr == 4e-3 and paper.optim_wrapper.optimizer.lr == 2e-3
    assert cfg.param_scheduler[0].start_factor * 4e-3 == pytest.approx(1e-6)
    train = cfg.train_dataloader.dataset.transform
    assert train.auto_augment.startswith("rand-m9-mstd0.5") and train.re_prob == 0.25
    assert (train.color_jitter, train.scale) == (0.4, (0.08, 1.0))
    assert cfg.model.data_preprocessor.mixup == {"mixup_alpha": 0.8, "cutmix_alpha": 1.0}
    for split in ("val", "test"):
        assert cfg[f"{split}_dataloader"].dataset.transform.crop_pct == 0.875
        assert paper[f"{split}_dataloader"].dataset.transform.crop_pct == 0.9
    for key in ("train_cfg", "model.backbone", "optim_wrapper.clip_grad", "auto_scale_lr"):
        here, there = cfg, paper
        for part in key.split("."):
            here, there = here[part], there[part]
        assert here == there, key


@pytest.mark.parametrize("name", TEST_SETS)
def test_test_sets_change_the_test_alone(name):
    plain, cfg = (load_config(str(CONFIGS / "imagenet_relu_base.py"), None, data=data) for data in (None, name))
    assert cfg.test_dataloader.dataset.num_classes == TEST_SETS[name]
    assert cfg.test_dataloader.dataset.transform == plain.test_dataloader.dataset.transform
    changed = {key for key in cfg if cfg[key] != plain.get(key)}
    assert changed == {"test_dataloader", "test_evaluator", "data_set"}


def test_options_of_the_command_line_come_last():
    options = {"optim_wrapper.optimizer.lr": 1e-3, "train_dataloader.dataset.download": True}
    cfg = configure_training(flags("imagenet_relu_tiny.py", data="pets", recipe="xu2024", cfg_options=options))
    assert cfg.optim_wrapper.optimizer.lr == 1e-3 and cfg.train_dataloader.dataset.download


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"recipe": "xu2042"}, "did you mean 'xu2024'"),
        ({"data": "cifar1000"}, "did you mean 'cifar100'"),
        ({"data": "imagenet_a"}, "tools/test.py CONFIG CHECKPOINT --data imagenet_a"),
        ({"config": "maskrcnn_relu_tiny.py", "recipe": "xu2024"}, "maskrcnn_relu_tiny.py trains a MaskRCNN"),
        ({"config": "upernet_relu_tiny.py", "data": "pets"}, "upernet_relu_tiny.py trains a EncoderDecoder"),
        ({"keep_batch": True, "auto_scale_lr": True}, "give one of them"),
    ],
)
def test_bad_flags_end_with_one_line(given, message):
    with pytest.raises(SystemExit) as end, one_line_errors():
        configure_training(flags(**{"config": "imagenet_relu_tiny.py", **given}))
    assert message in str(end.value) and "\n" not in str(end.value)


def test_print_config_takes_the_same_flags():
    command = [sys.executable, str(TOOLS / "print_config.py"), str(CONFIGS / "imagenet_relu_base.py")]
    command += ["--recipe", "xu2024", "--data", "flowers102", "--key"]
    printed = [
        subprocess.run([*command, key], capture_output=True, text=True, check=True).stdout for key in ("recipe",)
    ]
    assert printed == ["'xu2024'\n"]


def test_keep_batch_accumulates_to_the_recipes_batch():
    for processes, count in ((8, 1), (4, 2), (1, 8)):
        cfg = Config.fromfile(CONFIGS / "imagenet_relu_base.py")
        set_keep_batch(cfg, processes)
        assert cfg.optim_wrapper.get("accumulative_counts", 1) == count
        assert "= 4096, lr 0.002" in batch_line(cfg, processes) and "WARNING" not in batch_line(cfg, processes)


@pytest.mark.parametrize(
    ("batch", "processes", "cure"),
    [
        (500, 2, "batch_size=256 or 512"),
        (512, 3, "a number of processes that divides 4096"),
        (5000, 1, "batch_size=4096"),
    ],
)
def test_keep_batch_says_which_batches_fit(batch, processes, cure):
    cfg = Config.fromfile(CONFIGS / "imagenet_relu_base.py")
    cfg.train_dataloader.batch_size = batch
    with pytest.raises(ValueError, match=cure):
        set_keep_batch(cfg, processes)


def test_keep_batch_works_for_dense_runs_and_not_beside_a_scaled_rate():
    cfg = Config.fromfile(CONFIGS / "maskrcnn_relu_base.py")
    set_keep_batch(cfg, 1)
    assert cfg.optim_wrapper.accumulative_counts == 8
    set_auto_scale_lr(cfg)
    with pytest.raises(ValueError, match="give one of them"):
        set_keep_batch(cfg, 1)


def test_keep_batch_makes_as_many_updates_at_the_same_rates_as_the_recipe():
    cfg = Config.fromfile(CONFIGS / "upernet_relu_base.py")
    set_keep_batch(cfg, 2)  # 2 x 2 pictures, 4 of them make 16
    assert cfg.optim_wrapper.accumulative_counts == 4
    assert (cfg.train_cfg.max_iters, cfg.train_cfg.val_interval) == (640000, 64000)
    assert cfg.default_hooks.checkpoint.interval == 64000
    assert [(s.begin, s.end) for s in cfg.param_scheduler] == [(0, 6000), (6000, 640000)]
    set_keep_batch(cfg, 2)  # the config that such a run writes into its work dir
    assert cfg.train_cfg.max_iters == 640000
    with pytest.raises(ValueError, match="accumulates 4 steps and 8 make"):
        set_keep_batch(cfg, 1)
    cfg = Config.fromfile(CONFIGS / "maskrcnn_relu_base.py")
    set_keep_batch(cfg, 1)
    assert cfg.train_cfg.max_epochs == 12 and cfg.default_hooks.checkpoint.interval == 1
    assert [(s.begin, s.end) for s in cfg.param_scheduler] == [(0, 4000), (0, 12)]
    assert cfg.param_scheduler[1].milestones == [8, 11]


def test_keep_batch_names_a_schedule_that_it_cannot_stretch():
    cfg = Config.fromfile(CONFIGS / "upernet_relu_base.py")
    cfg.param_scheduler[1].type = "ExponentialLR"
    with pytest.raises(ValueError, match="ExponentialLR counts iterations"):
        set_keep_batch(cfg, 1)


def run_epochs(pictures, size, count, cosine=False):
    """Two epochs of linear regression: updates made, rates used, final weights."""
    inputs = torch.randn(pictures, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    model = nn.Linear(3, 1, bias=False).double()
    nn.init.ones_(model.weight)
    wrapper = OptimWrapper(torch.optim.SGD(model.parameters(), lr=0.1), accumulative_counts=count)
    steps = 2 * -(-pictures // size)
    wrapper.initialize_count_status(model, 0, steps)
    scheduler = PARAM_SCHEDULERS.build(
        dict(type="CosineAnnealingLR" if cosine else "ConstantLR", optimizer=wrapper, end=steps)
        | (dict(T_max=steps) if cosine else dict(factor=1.0))
    )
    updates, rates = 0, []
    for batch in [*inputs.split(size), *inputs.split(size)]:
        before = model.weight.detach().clone()
        rates += wrapper.get_lr()["lr"]
        with wrapper.optim_context(model):
            loss = model(batch).square().mean()
        wrapper.update_params(loss)
        scheduler.step()
        updates += not torch.equal(before, model.weight)
    return updates, rates, model.weight.detach()


def test_accumulated_steps_are_the_whole_batch_and_keep_the_rates_curve():
    whole, parts = run_epochs(16, 8, 1), run_epochs(16, 4, 2)
    assert whole[0] == parts[0] == 4
    torch.testing.assert_close(whole[2], parts[2])
    odd = run_epochs(20, 4, 2, cosine=True)  # 5 steps an epoch: one update takes a step of each epoch
    assert odd[0] == 5
    assert odd[1] == run_epochs(20, 4, 1, cosine=True)[1] and odd[1][-1] < 0.03 * odd[1][0]


def test_results_of_a_named_test_set_have_a_place_of_their_own(tmp_path):
    lines = ['{"kind": "val", "iter": 3, "data": "pets", "metrics": {"a": 1}}']
    lines += ['{"kind": "test", "metrics": {"a": 2}}', '{"kind": "test", "data": "imagenet_a", "metrics": {"a": 3}}']
    (tmp_path / RESULTS).write_text("\n".join(lines) + "\n")
    found = read_results(tmp_path)
    assert {kind: line["metrics"]["a"] for kind, line in found.items()} == {"val": 1, "test": 2, "test@imagenet_a": 3}
