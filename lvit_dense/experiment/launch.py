"""From parsed flags to a ready mmengine Runner, for training and testing, on GPUs or CPUs, one process or many."""

import argparse
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch
import torch.distributed as dist
from mmengine.config import Config
from mmengine.dist import broadcast_object_list
from mmengine.registry import RUNNERS
from mmengine.runner import Runner

from lvit_dense.catalog import suggest
from lvit_dense.datasets.checks import quick_check, skip_bad
from lvit_dense.distill import DistillError
from lvit_dense.engine.results import read_results
from lvit_dense.experiment import batch, configure
from lvit_dense.experiment.cell import Cell
from lvit_dense.experiment.presets import merge_presets, work_root
from lvit_dense.experiment.suite import CONFIGS
from lvit_dense.experiment.teachers import TEACHERS
from lvit_dense.transfer import SourceError, TransferError, newest_checkpoint


@contextmanager
def one_line_errors(*kinds: type[Exception]) -> Iterator[None]:
    """End the program with one line, not a traceback, where a user's input is wrong.

    Args:
        kinds: errors that are meant; default: all that bad input raises while flags are read and nothing was built yet.
    """
    caught = kinds or (ValueError, KeyError, TypeError, OSError, RuntimeError)
    try:
        yield
    except caught as error:
        text = error.args[0] if isinstance(error, KeyError) and error.args else error
        sys.exit(f"error: {text}")


def load_config(
    path: str,
    options: dict[str, object] | None,
    recipe: str | None = None,
    data: str | None = None,
    training: bool = False,
) -> Config:
    """Read a config, merge ``--recipe`` and ``--data``, then apply ``--cfg-options``.

    Raises:
        FileNotFoundError: no such file; the message lists what is near.
        ValueError: a recipe or data set that does not exist or does not fit.
    """
    file = Path(path)
    if not file.is_file():
        beside = sorted(p.stem for p in file.parent.glob("*.py")) if file.parent.is_dir() else []
        raise FileNotFoundError(f"no config {path}: {suggest(file.stem, beside)}")
    cfg = Config.fromfile(path)
    merge_presets(cfg, recipe, data, training)
    cfg.merge_from_dict(options or {})
    return cfg


def configure_training(args: argparse.Namespace) -> Config:
    """Apply the flags of ``tools/train.py`` to its config and check what can be checked before anything is built."""
    cfg = load_config(args.config, args.cfg_options, args.recipe, args.data, training=True)
    cfg.launcher = args.launcher
    teacher = TEACHERS.get(args.teacher, args.teacher)
    cell, facts = _cell(args, cfg), None
    if cell is None:
        name = Path(args.config).stem + (f"@seed{args.seed}" if args.seed else "")
        if args.seed is not None:
            cfg.randomness = {**cfg.get("randomness", {}), "seed": args.seed}
    else:
        name = cell.name
        facts = configure.teacher_facts(cfg).get("facts")
        configure.set_arm(cfg, cell, args.work_root, teacher)
        if _is_the_papers(args):
            configure.expect_paper(cfg, cell)
    configure.state_pixels(cfg)
    if warning := configure.keep_hooks(cfg):
        print(warning)
    cfg.work_dir = args.work_dir or cfg.get("work_dir") or str(work_root(args.work_root, args.recipe, args.data) / name)
    configure.check_sources(cfg)
    added = configure.adopt_native_parts(cfg, teacher, args.native_parts, facts)
    if added:
        print(f"the ViT takes from its source: {', '.join(f'{k}={v}' for k, v in added.items())}")
    if args.amp:
        configure.set_amp(cfg)
    if args.auto_scale_lr:
        batch.set_auto_scale_lr(cfg)
    if args.resume:
        configure.set_resume(cfg, args.resume)
    prepare_devices(cfg)
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    if args.keep_batch:
        batch.set_keep_batch(cfg, processes)
    print(batch.batch_line(cfg, processes))
    return cfg


def prepare_devices(cfg: Config) -> None:
    """Make several processes without GPUs work: gloo instead of nccl, and wrappers without device ids.

    mmengine assumes CUDA whenever a launcher is used. SyncBN exists on CUDA only; mmengine turns it into BN for a
    single process, here the same is done for CPU processes.
    """
    if cfg.get("launcher", "none") == "none" or torch.cuda.is_available():
        return
    if not dist.is_initialized():
        dist.init_process_group("gloo")
    cfg.env_cfg.dist_cfg = {"backend": "gloo"}
    cfg.model_wrapper_cfg = {
        "type": "MMDistributedDataParallel",
        "device_ids": None,
        "broadcast_buffers": False,
        "find_unused_parameters": cfg.get("find_unused_parameters", False),
    }
    if _replace_sync_bn(cfg.model):
        print("SyncBN needs CUDA: every SyncBN of this config becomes BN for this run on CPU processes")


def ready_to_train(args: argparse.Namespace) -> Config:
    """Configure, then look at the data: what is wrong there is said before anything is built."""
    cfg = configure_training(args)
    if args.skip_bad:
        print(*skip_bad(cfg, cfg.work_dir, workers=os.cpu_count() or 1), sep="\n")
    quick_check(cfg)
    return cfg


def ready_to_test(args: argparse.Namespace) -> Config:
    """Configure, look at the data, and add the views of ``--tta``."""
    cfg = configure_testing(args)
    quick_check(cfg, ("test",))
    if args.tta:
        configure.set_tta(cfg)
    return cfg


def build_runner(cfg: Config) -> Runner:
    """The config's runner (``runner_type``), or mmengine's."""
    return RUNNERS.build(cfg) if "runner_type" in cfg else Runner.from_cfg(cfg)


def train(cfg: Config) -> None:
    """Train; validate at the end where a resumed run had only the validation of its last checkpoint left to do.

    Weights that cannot be read, copied or distilled from are found when the model is initialised, and end in one error.
    """
    runner = build_runner(cfg)
    with one_line_errors(SourceError, TransferError, DistillError):
        _train(runner, bool(cfg.get("resume")))
    end_processes()


def test(cfg: Config) -> None:
    """Evaluate the checkpoint ``cfg.load_from``."""
    build_runner(cfg).test()
    end_processes()


def end_processes() -> None:
    """Let several processes end together.

    Gloo's threads hold tensors of the last collective; one that lets go of them while the interpreter shuts down
    aborts the process. So the models that hold the process group are freed, and the group is closed, before that.
    """
    if dist.is_initialized():
        dist.barrier()
        gc.collect()
        dist.destroy_process_group()


def _train(runner: Runner, resumed: bool) -> None:
    """Process 0 writes the results, so it alone says whether they are complete: another one may look too early."""
    runner.train()
    validated = [read_results(Path(runner.work_dir)).get("val", {}).get("iter")]
    broadcast_object_list(validated)
    if resumed and runner.val_loop is not None and validated != [runner.iter]:
        runner.val()


def _cell(args: argparse.Namespace, cfg: Config) -> Cell | None:
    """The cell that the config's name and the arm flags make; None for a config with a name or weights of its own."""
    stem = Path(args.config).stem
    arm = " ".join(flag for flag in ("init", "distill", "teacher") if getattr(args, flag))
    try:
        cell = Cell.parse(stem)
    except ValueError as error:
        if arm:
            raise ValueError(
                f"--init, --distill and --teacher work on configs named TASK_OPERATOR_SIZE ({error}); in your own "
                "config set model.transfer and model.distill, or model.backbone.transfer for a dense task"
            ) from error
        return None
    if own := configure.own_weights(cfg, cell):
        if arm:
            raise ValueError(
                f"the config names its weights itself ({own}), and so do the flags ({arm}): give one of them"
            )
        return None
    if args.teacher in TEACHERS:
        cell = replace(cell, teacher=args.teacher)
    if args.init:
        cell = replace(cell, init=args.init, distill=args.distill)
    elif args.distill:
        cell = replace(cell, distill=True)
    return cell if args.seed is None else replace(cell, seed=args.seed)


def _is_the_papers(args: argparse.Namespace) -> bool:
    """Whether a result can stand beside the paper's: a shipped config with its model, teacher, data and recipe."""
    shipped = Path(args.config).resolve().parent == CONFIGS and args.recipe is None and args.data is None
    own_teacher = args.native_parts or args.teacher not in (None, *TEACHERS)
    other = ("model", "optim_wrapper", "param_scheduler", "train_cfg", "dataset", "evaluator", "batch_size")
    changed = any(part in key for key in args.cfg_options or {} for part in other)
    return shipped and not own_teacher and not changed


def _replace_sync_bn(node: object) -> bool:
    """Turn every ``type='SyncBN'`` below ``node`` into BN; return whether there was one."""
    if isinstance(node, dict):
        here = node.get("type") == "SyncBN"
        if here:
            node["type"] = "BN"
        below = [_replace_sync_bn(value) for value in node.values()]
        return here or any(below)
    if isinstance(node, (list, tuple)):
        return any(list(map(_replace_sync_bn, node)))
    return False


def configure_testing(args: argparse.Namespace) -> Config:
    """Apply the flags of ``tools/test.py`` to its config; the checkpoint's own facts decide the ViT's native parts."""
    cfg = load_config(args.config, args.cfg_options, args.recipe, args.data)
    cfg.launcher = args.launcher
    checkpoint = Path(args.checkpoint)
    if not checkpoint.exists():
        raise FileNotFoundError(f"no checkpoint {checkpoint}: give a .pth file or the work dir of a run")
    cfg.load_from = str(newest_checkpoint(checkpoint) if checkpoint.is_dir() else checkpoint)
    cfg.resume = False  # a resumed run's config says True, and the runner would build what only training needs
    root = work_root("work_dirs", args.recipe, args.data)
    cfg.work_dir = args.work_dir or cfg.get("work_dir") or str(root / Path(args.config).stem)
    configure.drop_sources(cfg)
    configure.keep_hooks(cfg)
    configure.adopt_native_parts(cfg, cfg.load_from)
    if args.out:
        configure.set_predictions_file(cfg, args.out)
    if args.show_dir or args.show:
        configure.set_pictures(cfg, args.show_dir, args.show)
    prepare_devices(cfg)
    return cfg
