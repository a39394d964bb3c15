"""mmseg validates batches of equal sizes only; say so before the training, not at its first validation."""

from typing import Any

from mmengine.hooks import Hook
from mmengine.model import BaseTTAModel, is_model_wrapper
from mmengine.registry import HOOKS

LOOKED_AT = 16


@HOOKS.register_module()
class SegBatchHook(Hook):
    """Refuse a validation or test batch over 1 where the inputs' sizes differ, as mmseg cannot stack them.

    mmseg's own assertion comes with the first such batch, which is thousands of training steps later. The sizes are
    those that the pipeline gives for 16 samples at equal distances. Detectors pad, and are not concerned.
    """

    def before_train(self, runner: Any) -> None:
        """Look at the validation data."""
        if runner.val_loop is not None:
            _check(runner, runner.val_loop.dataloader, "val")

    def before_test(self, runner: Any) -> None:
        """Look at the test data."""
        _check(runner, runner.test_loop.dataloader, "test")


def _check(runner: Any, loader: Any, split: str) -> None:
    model = runner.model
    while is_model_wrapper(model) or isinstance(model, BaseTTAModel):
        model = model.module
    if type(model.data_preprocessor).__name__ != "SegDataPreProcessor" or (loader.batch_size or 1) < 2:
        return
    total = len(loader.dataset)
    looked_at = min(LOOKED_AT, total)
    sizes = {_size(loader.dataset[index * total // looked_at]["inputs"]) for index in range(looked_at)}
    if len(sizes) > 1:
        raise ValueError(
            f"{split}_dataloader.batch_size={loader.batch_size}, but its pipeline gives inputs of several sizes, such "
            f"as {' and '.join(f'{w}x{h}' for w, h in sorted(sizes)[:2])}, which mmseg cannot test together: set it to "
            "1 (it changes no result)"
        )


def _size(inputs: Any) -> tuple[int, int]:
    """Width and height of a sample, (C, H, W); of the first one where a sample is a list of views."""
    height, width = (inputs[0] if isinstance(inputs, (list, tuple)) else inputs).shape[-2:]
    return width, height
