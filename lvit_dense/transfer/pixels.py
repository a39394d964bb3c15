"""The same pictures for models that were trained with different pixel statistics."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from lvit_dense.transfer.canonical import IMAGENET_MEAN, IMAGENET_STD, SourceFacts


class PixelChange(NamedTuple):
    """images * scale + shift, per channel: exactly what normalising with the other statistics would have given."""

    scale: tuple[float, ...]
    shift: tuple[float, ...]

    def __call__(self, images: Tensor) -> Tensor:
        """Map (B, channels, H, W) to the same shape."""
        scale, shift = (images.new_tensor(values).reshape(-1, 1, 1) for values in self)
        return images * scale + shift


def pixel_change(
    facts: SourceFacts, mean: Sequence[float] = IMAGENET_MEAN, std: Sequence[float] = IMAGENET_STD
) -> PixelChange | None:
    """From pictures normalised by ``mean`` and ``std`` to those that a source of these facts expects.

    Returns:
        None where they are the same, or where the source does not say (a run of ours takes its config's pictures).
    """
    if facts.pixel_mean is None or facts.pixel_std is None:
        return None
    if (tuple(mean), tuple(std)) == (tuple(facts.pixel_mean), tuple(facts.pixel_std)):
        return None
    both = list(zip(mean, std, facts.pixel_mean, facts.pixel_std, strict=True))
    return PixelChange(
        scale=tuple(ours / theirs for _, ours, _, theirs in both),
        shift=tuple((ours - theirs) / spread for ours, _, theirs, spread in both),
    )
