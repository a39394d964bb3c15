"""The recipe's batch on the processes there are: ``--auto-scale-lr``, ``--keep-batch``, and the line about it."""

from collections.abc import Sequence

from mmengine.config import Config, ConfigDict

# What schedulers count in steps when they are not counted in epochs.
IN_STEPS = ("begin", "end", "T_max", "milestones", "step_size")
STRETCHABLE = ("LinearLR", "ConstantLR", "PolyLR", "CosineAnnealingLR", "MultiStepLR", "StepLR")


def set_auto_scale_lr(cfg: Config) -> None:
    """``--auto-scale-lr``: multiply the learning rate once by the real batch over the recipe's."""
    if "base_batch_size" not in cfg.get("auto_scale_lr", {}):
        raise ValueError("--auto-scale-lr needs auto_scale_lr.base_batch_size, the batch of the recipe, in the config")
    cfg.auto_scale_lr.enable = True


def set_keep_batch(cfg: Config, world_size: int) -> None:
    """``--keep-batch``: add up gradients over as many steps as make the recipe's batch.

    mmengine counts steps, not updates: what a config counts in iterations (the length of UperNet's training, a warm-up)
    is multiplied, so that as many updates see the same rates; what it counts in epochs stays.

    Raises:
        ValueError: the recipe's batch is no multiple of the batch of one step, the rate is scaled as well, the config
            accumulates another number of steps, or a scheduler cannot be stretched.
    """
    recipe = cfg.get("auto_scale_lr", {}).get("base_batch_size")
    if recipe is None:
        raise ValueError("--keep-batch needs auto_scale_lr.base_batch_size, the batch of the recipe, in the config")
    if cfg.auto_scale_lr.get("enable"):
        raise ValueError("--keep-batch keeps the recipe's batch and --auto-scale-lr replaces it: give one of them")
    loader = cfg.train_dataloader
    step = loader.batch_size * world_size
    if recipe % step:
        below, above = (_divisor(recipe, world_size, loader.batch_size, sign) for sign in (-1, 1))
        near = " or ".join(str(size) for size in (below, above) if size)
        cure = f"set train_dataloader.batch_size={near}" if near else f"use a number of processes that divides {recipe}"
        raise ValueError(
            f"--keep-batch: the recipe's batch of {recipe} is no multiple of {loader.batch_size} pictures x "
            f"{world_size} processes = {step}; {cure}"
        )
    factor, already = recipe // step, cfg.optim_wrapper.get("accumulative_counts", 1)
    if already not in (1, factor):
        raise ValueError(
            f"--keep-batch: the config accumulates {already} steps and {factor} make the recipe's batch of {recipe}; "
            "give the config without optim_wrapper.accumulative_counts"
        )
    if already != factor:  # else it is the config of such a run, and stretched
        cfg.optim_wrapper.accumulative_counts = factor
        _stretch(cfg, factor)


def batch_line(cfg: Config, world_size: int) -> str:
    """One line: effective batch and learning rate against the recipe's."""
    loader, wrapper = cfg.train_dataloader, cfg.optim_wrapper
    accumulate = wrapper.get("accumulative_counts", 1)
    batch = loader.batch_size * world_size * accumulate
    recipe = cfg.get("auto_scale_lr", {}).get("base_batch_size")
    lr = wrapper.optimizer.lr
    text = f"batch {loader.batch_size} x {world_size} processes x {accumulate} accumulated = {batch}, lr {lr:g}"
    if recipe is None or recipe == batch:
        return text
    if cfg.auto_scale_lr.get("enable"):
        # mmengine scales by the batch of one step, without accumulation
        return (
            f"{text} scaled by --auto-scale-lr to {lr * loader.batch_size * world_size / recipe:g} (recipe: {recipe})"
        )
    return (
        f"WARNING {text}: the recipe's batch is {recipe}. Accumulate gradients to it with --keep-batch, or scale the "
        "rate with --auto-scale-lr"
    )


def _stretch(cfg: Config, factor: int) -> None:
    """Multiply what is counted in iterations: loop, schedulers, validations and checkpoints."""
    schedulers = cfg.get("param_scheduler") or []
    for scheduler in schedulers if isinstance(schedulers, Sequence) else [schedulers]:
        if scheduler.get("by_epoch", True):
            continue
        if scheduler.type not in STRETCHABLE:
            raise ValueError(
                f"--keep-batch: {scheduler.type} counts iterations and cannot be stretched; use one of "
                f"{', '.join(STRETCHABLE)}, or by_epoch=True"
            )
        _multiply(scheduler, IN_STEPS, factor)
    if not cfg.train_cfg.get("by_epoch", cfg.train_cfg.get("type") != "IterBasedTrainLoop"):
        _multiply(cfg.train_cfg, ("max_iters", "val_begin", "val_interval"), factor)
        _multiply(cfg.default_hooks.get("checkpoint", ConfigDict()), ("interval",), factor)


def _multiply(settings: ConfigDict, keys: Sequence[str], factor: int) -> None:
    for key in keys:
        if settings.get(key):
            value = settings[key]
            settings[key] = [one * factor for one in value] if isinstance(value, list) else value * factor


def _divisor(batch: int, processes: int, size: int, direction: int) -> int | None:
    """The nearest number of pictures per process, below or above ``size``, of which ``batch`` is a multiple."""
    sizes = range(size, 0, -1) if direction < 0 else range(size, batch // processes + 1)
    return next((n for n in sizes if batch % (n * processes) == 0), None)
