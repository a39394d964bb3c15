"""Continuing a run on another number of processes or with another batch: what changes is recomputed and said."""

from typing import Any

from mmengine.dist import get_world_size
from mmengine.hooks import Hook
from mmengine.optim import OptimWrapper
from mmengine.registry import HOOKS
from mmengine.runner import EpochBasedTrainLoop

from lvit_dense.engine.batch_norm import step_pictures

FACTS = "training"  # key in a checkpoint's meta
PROGRESS = ("last_step", "_global_step")
LEARNT = (*PROGRESS, "base_values", "_last_value", "verbose")  # of a scheduler's state; the rest is its config


@HOOKS.register_module()
class ResumeHook(Hook):
    """Write the batch into checkpoints; on resume with another one, move iterations and schedulers, and say so.

    A run counted in epochs keeps its epoch: the iteration becomes epoch x iterations per epoch, and schedulers that
    were converted from epochs to iterations keep their place in the epoch. A run counted in iterations keeps its
    iteration, but for ``--keep-batch``, where an update may take another number of iterations. With
    ``--auto-scale-lr`` the learning rates of the checkpoint are scaled by the new batch over the old.
    mmengine would continue with the old number of iterations, schedule and learning rate, and say nothing.
    """

    priority = "VERY_HIGH"  # before the checkpoint's numbers are used

    def before_save_checkpoint(self, runner: Any, checkpoint: dict[str, Any]) -> None:
        """Add processes, pictures per step and iterations per epoch."""
        checkpoint["meta"][FACTS] = _facts(runner)

    def after_load_checkpoint(self, runner: Any, checkpoint: dict[str, Any]) -> None:
        """Change what a resumed run is about to read from ``checkpoint``."""
        old = checkpoint.get("meta", {}).get(FACTS)
        if not runner._resume or old is None or old == (new := _facts(runner)):
            return
        lines = [
            f"resuming on {new['processes']} processes with {new['batch']} pictures a step; "
            f"saved on {old['processes']} with {old['batch']}"
        ]
        if isinstance(runner.train_loop, EpochBasedTrainLoop):
            ratio = new["epoch_iters"] / old["epoch_iters"]
        else:
            ratio = new["accumulated"] / old.get("accumulated", new["accumulated"])
        if ratio != 1:
            lines.append(_move(runner, checkpoint, ratio))
        lines.append(_scale_rates(runner, checkpoint, new["batch"] / old["batch"]))
        runner.logger.warning("; ".join(line for line in lines if line))


def _facts(runner: Any) -> dict[str, int]:
    loader = runner.train_dataloader
    processes = get_world_size()
    accumulated = getattr(runner.optim_wrapper, "_accumulative_counts", 1)
    return {
        "processes": processes,
        "batch": step_pictures(loader) * processes * accumulated,
        "accumulated": accumulated,
        "epoch_iters": len(loader),
    }


def _move(runner: Any, checkpoint: dict[str, Any], ratio: float) -> str:
    """Rewrite the iteration, and the state of every scheduler whose length in iterations is another now."""
    meta = checkpoint["meta"]
    before, meta["iter"] = meta["iter"], round(meta["iter"] * ratio)
    place = f"iteration {meta['iter']} is reached"
    if isinstance(runner.train_loop, EpochBasedTrainLoop):
        meta["iter"] = meta["epoch"] * len(runner.train_dataloader)
        place = f"epoch {meta['epoch']} ends at iteration {meta['iter']}"
    states = checkpoint.get("param_schedulers") or []
    schedulers = runner.param_schedulers or []
    for state, scheduler in zip(states, schedulers):
        fresh = scheduler.state_dict()
        if not fresh["by_epoch"] and (fresh["begin"], fresh["end"]) != (state["begin"], state["end"]):
            state.update({key: value for key, value in fresh.items() if key not in LEARNT})
            state.update({key: round(state[key] * ratio) for key in PROGRESS})
    return f"{place} now, was {before}"


def _scale_rates(runner: Any, checkpoint: dict[str, Any], ratio: float) -> str:
    """Scale every learning rate in the checkpoint where the run asks for it."""
    if ratio == 1:
        return ""
    if not (runner.auto_scale_lr or {}).get("enable") or not isinstance(runner.optim_wrapper, OptimWrapper):
        return "the learning rate stays as it was saved (--auto-scale-lr would scale it by the batch)"
    for group in checkpoint["optimizer"]["param_groups"]:
        group["lr"] *= ratio
        if "initial_lr" in group:
            group["initial_lr"] *= ratio
    for state in checkpoint.get("param_schedulers") or []:
        if state.get("param_name") == "lr":
            for key in ("base_values", "_last_value"):
                state[key] = [value * ratio for value in state[key]]
    return f"learning rates scaled by {ratio:g}"
