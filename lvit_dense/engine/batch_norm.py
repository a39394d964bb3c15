"""Batch normalisation: batches it cannot normalise are refused, and all processes validate with one model."""

from collections.abc import Sized
from typing import Any

from mmengine.dataset import InfiniteSampler
from mmengine.dist import broadcast, get_world_size
from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper
from mmengine.registry import HOOKS
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm


@HOOKS.register_module()
class BatchNormHook(Hook):
    """Refuse batches of one picture where BN follows pooling to 1 x 1; validate with the statistics that are saved.

    UperNet's pyramid pooling has such a BN. Torch would raise "Expected more than 1 value per channel" inside the first
    step, or in the last, smaller batch of an epoch. SyncBN counts the pictures of all processes. (mmengine turns SyncBN
    into BN when there is one process.)

    With plain BN every process has running statistics of its own, while a checkpoint holds those of process 0: a
    validation takes these everywhere, so that testing the checkpoint gives the same numbers.
    """

    def before_train(self, runner: Any) -> None:
        """Compare the smallest batch with what the model's norms need.

        Raises:
            ValueError: naming the layer, the batch and the cures.
        """
        model = runner.model.module if is_model_wrapper(runner.model) else runner.model
        batch = smallest_batch(runner.train_dataloader)
        for name, norm in norms_after_global_pooling(model):
            pictures = batch * (get_world_size() if isinstance(norm, nn.SyncBatchNorm) else 1)
            if pictures < 2:
                raise ValueError(
                    f"{name} normalises one value per picture and the smallest training batch has {pictures} picture: "
                    "set train_dataloader.batch_size to 2 or more (and train_dataloader.drop_last=True where only the "
                    "last batch is that small), use more processes with SyncBN, or norm_cfg type GN"
                )

    def before_val(self, runner: Any) -> None:
        """Give every process the running statistics of process 0."""
        if get_world_size() > 1:
            for norm in runner.model.modules():
                if isinstance(norm, _BatchNorm):
                    for buffer in norm.buffers():
                        broadcast(buffer)


def norms_after_global_pooling(model: nn.Module) -> list[tuple[str, _BatchNorm]]:
    """Names and batch norms that sit behind an ``AdaptiveAvgPool2d(1)`` in one ``nn.Sequential``."""
    found = []
    for prefix, module in model.named_modules():
        if not isinstance(module, nn.Sequential) or not len(module):
            continue
        first = module[0]
        if isinstance(first, nn.AdaptiveAvgPool2d) and first.output_size in (1, (1, 1)):
            norms = (pair for pair in module.named_modules() if isinstance(pair[1], _BatchNorm))
            found += [(f"{prefix}.{name}", norm) for name, norm in norms]
    return found


def smallest_batch(loader: Any) -> int:
    """Pictures in the smallest batch that one process draws from a data loader."""
    batch = step_pictures(loader)
    sampler = getattr(loader.batch_sampler, "sampler", loader.sampler)
    if getattr(loader, "drop_last", False) or isinstance(sampler, InfiniteSampler) or not isinstance(sampler, Sized):
        return batch
    return len(sampler) % batch or batch


def step_pictures(loader: Any) -> int:
    """Pictures that one process draws for a full step, also where a batch sampler groups them."""
    batch: int = loader.batch_size or loader.batch_sampler.batch_size
    return batch
