"""mmseg validates batches of equal sizes only; say so before the training, not at its first validation."""

from typing import Any

from mmengine.hooks import Hook
from mmengine.model import BaseTTAModel, is_model_wrapper
from mmengine.registry import HOOKS
from PIL import Image

LOOKED_AT = 64


@HOOKS.register_module()
class SegBatchHook(Hook):
    """Refuse a validation or test batch over 1 where the pictures' sizes differ, as mmseg cannot stack them.

    mmseg's own assertion comes with the first such batch, which is thousands of training steps later. Sizes are read
    from the headers of the first 64 pictures. Detectors pad, and are not concerned.
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
    sizes = []
    for index in range(min(LOOKED_AT, len(loader.dataset))):
        with Image.open(loader.dataset.get_data_info(index)["img_path"]) as picture:
            sizes.append(picture.size)
    if len(set(sizes)) > 1:
        raise ValueError(
            f"{split}_dataloader.batch_size={loader.batch_size}, but the pictures have several sizes, such as "
            f"{' and '.join(f'{w}x{h}' for w, h in sorted(set(sizes))[:2])}, which mmseg cannot test together: set it "
            "to 1 (it changes no result)"
        )
