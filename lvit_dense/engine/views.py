"""The views of a TestTimeAug batch, for both tasks."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

View = tuple[Tensor, Any]  # a picture (3, h, w) as loaded, and its data sample


def by_picture(batch: dict[str, Any]) -> Iterator[list[View]]:
    """Turn ``inputs[view][picture]`` and ``data_samples[view][picture]`` into a list of views per picture."""
    for inputs, samples in zip(zip(*batch["inputs"]), zip(*batch["data_samples"])):
        yield list(zip(inputs, samples))


def describe(samples: list[list[Any]]) -> str:
    """Sizes and flips of the first picture's views, from ``samples[view][picture]``."""
    firsts = (view[0] for view in samples)
    return ", ".join(
        f"{'x'.join(map(str, sample.img_shape[:2]))}{' flipped' if sample.metainfo.get('flip') else ''}"
        for sample in firsts
    )
