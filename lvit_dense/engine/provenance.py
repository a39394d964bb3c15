"""Checkpoints that say what they are, and that are loaded completely or not at all."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mmengine.dist import is_main_process
from mmengine.hooks import Hook
from mmengine.model import BaseTTAModel, is_model_wrapper
from mmengine.registry import HOOKS
from torch import nn

from lvit_dense.vit import ViT


@HOOKS.register_module()
class ProvenanceHook(Hook):
    """Write the ViT's facts into every checkpoint and the transfer report into the work dir; refuse foreign weights.

    * ``meta['lvit_dense']`` of a checkpoint holds the constructor arguments of its ViT, so that a later stage reads
      width, depth, operator, patch size and position grid as facts instead of guessing them from shapes.
    * ``work_dir/transfer.json`` says what was copied, resized and left random.
    * A checkpoint given to ``load_from``, ``--resume`` or a test is compared key by key before it is loaded; mmengine
      itself would skip what does not fit.
    """

    priority = "VERY_LOW"

    def before_train(self, runner: Any) -> None:
        """Save the transfer report, where there is one."""
        for module in _bare(runner.model).modules():
            report = getattr(module, "transfer_report", None)
            if report is not None and is_main_process():
                path = Path(runner.work_dir) / "transfer.json"
                path.write_text(json.dumps(report.to_dict(), indent=1))

    def before_save_checkpoint(self, runner: Any, checkpoint: dict[str, Any]) -> None:
        """Add the facts of the (only) ViT in the model."""
        for vit in _vits(_bare(runner.model)):
            checkpoint["meta"]["lvit_dense"] = vit.facts

    def after_load_checkpoint(self, runner: Any, checkpoint: dict[str, Any]) -> None:
        """Raise ValueError where the checkpoint's parameters are not exactly the model's."""
        loaded = {key.removeprefix("module."): v for key, v in checkpoint.get("state_dict", checkpoint).items()}
        check_state(_bare(runner.model), loaded)


def check_state(model: nn.Module, state: dict[str, Any]) -> None:
    """Compare a state dict with a model.

    Raises:
        ValueError: names missing from, unknown to or of another shape than the model, all in one message.
    """
    own = model.state_dict()
    problems = {
        "missing": sorted(own.keys() - state.keys()),
        "unknown": sorted(state.keys() - own.keys()),
        "of another shape": [
            f"{k} {tuple(state[k].shape)} instead of {tuple(own[k].shape)}"
            for k in sorted(own.keys() & state.keys())
            if state[k].shape != own[k].shape
        ],
    }
    found = {kind: names for kind, names in problems.items() if names}
    if found:
        details = "; ".join(f"{len(names)} {kind} ({', '.join(names[:3])}, ...)" for kind, names in found.items())
        raise ValueError(
            f"the checkpoint does not fit the model ({len(own)} entries): {details}. Was it trained with another "
            "config, operator or size? Weights of another model go through model.transfer / model.backbone.transfer"
        )


def _bare(model: nn.Module) -> nn.Module:
    """The model inside DDP and inside a test-time augmentation."""
    while is_model_wrapper(model) or isinstance(model, BaseTTAModel):
        model = model.module  # type: ignore[assignment]
    return model


def _vits(model: nn.Module) -> Iterator[ViT]:
    return (module for module in model.modules() if isinstance(module, ViT))
