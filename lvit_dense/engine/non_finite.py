"""Stop at the first loss that is not a number, and say what is needed to go on."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from mmengine.dist import get_rank
from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper
from mmengine.registry import HOOKS
from torch import nn

from lvit_dense.engine.randomness import seed_step
from lvit_dense.operators.finite import checked
from lvit_dense.transfer.loading import load_file_tensors


@HOOKS.register_module()
class NonFiniteLossHook(Hook):
    """Raise FloatingPointError at the first loss that is inf or nan, before anything of that step is saved.

    The message names the iteration, the losses, the pictures of the batch and the newest checkpoint whose weights are
    all finite: a step with finite loss but non-finite gradients may have been saved. Where the weights are still finite
    (fp16, whose loss scaler skips such a step, or gradients that are being accumulated) the step is run once more to
    name the first attention operator that received or made a non-finite number.
    """

    priority = "NORMAL"  # before CheckpointHook and EMA

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Mapping[str, Any] | None = None
    ) -> None:
        """Look at every entry of ``outputs`` with loss in its name."""
        losses = {name: float(value.detach()) for name, value in (outputs or {}).items() if "loss" in name}
        bad = [name for name, value in losses.items() if value - value != 0]
        if not bad:
            return
        files = _files(data_batch)
        where = _first_layer(runner, data_batch)
        good = newest_finite_checkpoint(Path(runner.work_dir))
        raise FloatingPointError(
            f"{', '.join(f'{name} = {losses[name]}' for name in bad)} at iteration {runner.iter + 1} on rank "
            f"{get_rank()}, with the pictures {', '.join(files) if files else '(the batch names no files)'}. "
            + (f"{where}. " if where else "")
            + (f"Last good checkpoint: {good} (--resume {good})" if good else "No checkpoint was saved before it")
            + ". Try a lower optim_wrapper.optimizer.lr, optim_wrapper.clip_grad or bf16 instead of fp16"
        )


def newest_finite_checkpoint(work_dir: Path) -> Path | None:
    """The newest ``epoch_*.pth`` or ``iter_*.pth`` without a non-finite weight; None if there is none."""
    saved = [*work_dir.glob("epoch_*.pth"), *work_dir.glob("iter_*.pth")]
    for path in sorted(saved, key=lambda p: p.stat().st_mtime, reverse=True):
        tensors = load_file_tensors(str(path)).tensors.values()
        if all(torch.isfinite(value).all() for value in tensors if value.is_floating_point()):
            return path
    return None


def _first_layer(runner: Any, batch: Any) -> str:
    """Run the forward of the step again with its draws, checking each operator; what was found, or nothing."""
    model = runner.model.module if is_model_wrapper(runner.model) else runner.model
    if not all(parameter.isfinite().all() for parameter in model.parameters()):
        return ""
    if runner.distributed and any(isinstance(module, nn.SyncBatchNorm) for module in model.modules()):
        return ""  # would wait for processes that do not take part
    seed_step(runner)
    try:
        with torch.no_grad(), checked(model), runner.optim_wrapper.optim_context(model):
            data = model.data_preprocessor(batch, True)
            model(**data, mode="loss") if isinstance(data, Mapping) else model(*data, mode="loss")
    except FloatingPointError as error:
        return str(error)
    except Exception:  # a second run that fails otherwise must not hide what the first one found
        return ""
    return "Every attention operator receives and makes finite numbers only: look at the heads, losses and annotations"


def _files(batch: Any) -> list[str]:
    """Paths of the pictures of an mmdet or mmseg batch."""
    samples = batch.get("data_samples", ()) if isinstance(batch, Mapping) else ()
    return [str(path) for sample in samples if (path := getattr(sample, "img_path", None))]
