"""Multi-scale and flip test of a segmentor whose memory does not depend on the number of views."""

import tempfile
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from mmengine.logging import MMLogger
from mmengine.model import BaseTTAModel
from mmengine.registry import MODELS
from mmengine.structures import PixelData
from torch import Tensor

from lvit_dense.engine.views import by_picture, describe

STRIP_BYTES = 64 * 2**20


@MODELS.register_module()
class StreamingSegTTA(BaseTTAModel):
    """argmax of the mean over views of softmax(logits), the rule of mmseg's SegTTAModel, one view at a time.

    mmseg keeps the logits of all views at the picture's size: 43 GB for 150 classes, 2000 x 3000 pixels and 12 views.
    Here one sum is kept. Views are brought to the picture's size in strips of rows, so besides the sum only one
    view's logits at the view's own size are in memory.

    Args:
        module: the segmentor (or its config), with more than one output channel.
        max_bytes: a sum larger than this lies in an unnamed temporary file instead of memory; 2 GiB are 150 classes at
            1900 x 1900 pixels.
    """

    def __init__(self, module: Any, data_preprocessor: Any = None, max_bytes: int = 2 * 2**30) -> None:
        super().__init__(module, data_preprocessor)
        if self.module.out_channels < 2:
            raise ValueError(
                f"StreamingSegTTA needs one channel per class, the segmentor has {self.module.out_channels}"
            )
        self.max_bytes = max_bytes
        self._announced = False

    @torch.no_grad()
    def test_step(self, data: dict[str, Any]) -> list[Any]:
        """Return one data sample per picture, with ``pred_sem_seg`` (1, H, W) at the picture's size and its labels.

        Args:
            data: a collated TestTimeAug batch, ``inputs[view][picture]`` and ``data_samples[view][picture]``.
        """
        self._announce(data["data_samples"])
        return [self._label(views) for views in by_picture(data)]

    def merge_preds(self, data_samples_list: Any) -> Any:
        """Not used: merging finished views is what this class avoids."""
        raise NotImplementedError("StreamingSegTTA sums views as they come, through test_step")

    def _label(self, views: list[tuple[Tensor, Any]]) -> Any:
        first = views[0][1]
        scores = None
        for image, sample in views:
            logits = self._logits(image, sample)
            if scores is None:
                scores = ScoreSum(len(logits), tuple(first.ori_shape[:2]), logits.device, self.max_bytes)
            scores.add(logits, self.module.align_corners)
        assert scores is not None
        first.set_data({"pred_sem_seg": PixelData(data=scores.labels()[None])})
        return first

    def _logits(self, image: Tensor, sample: Any) -> Tensor:
        """Unflipped logits (classes, h, w) of one view, without its padding."""
        batch = self.module.data_preprocessor({"inputs": [image], "data_samples": [sample]}, False)
        meta = batch["data_samples"][0].metainfo  # the preprocessor adds what it padded to a copy of the sample
        logits = self.module.inference(batch["inputs"], [meta])[0].float()
        left, right, top, bottom = meta.get("img_padding_size", meta.get("padding_size", (0,) * 4))
        logits = logits[:, top : logits.shape[1] - bottom, left : logits.shape[2] - right]
        if meta.get("flip"):
            logits = logits.flip(2 if meta["flip_direction"] == "horizontal" else 1)
        return logits

    def _announce(self, samples: list[list[Any]]) -> None:
        """Say once which views the result is a mean of: single- and multi-scale numbers get confused."""
        if not self._announced:
            self._announced = True
            MMLogger.get_current_instance().info(f"test with {len(samples)} views a picture: {describe(samples)}")


class ScoreSum:
    """Sum of class probabilities (classes, height, width), added and read in strips of rows.

    Args:
        max_bytes: above this size, four bytes per entry, the sum lives in a temporary file on the host.
    """

    def __init__(self, classes: int, size: tuple[int, int], device: torch.device, max_bytes: int) -> None:
        height, width = size
        self.rows = max(1, STRIP_BYTES // (4 * classes * width))
        shape = (height, classes, width)  # a strip of rows is one piece of the file
        if 4 * height * classes * width <= max_bytes:
            self.total = torch.zeros(shape, device=device)
        else:
            with tempfile.NamedTemporaryFile(prefix="lvit_dense_scores_") as file:
                file.truncate(4 * height * classes * width)
                # The mapping outlives the name, so the space is freed however the process ends.
                self.total = torch.from_file(file.name, shared=True, size=height * classes * width).view(shape)

    def add(self, logits: Tensor, align_corners: bool = False) -> None:
        """Add softmax over classes of ``logits`` (classes, h, w), resized bilinearly to the sum's size."""
        height, _, width = self.total.shape
        ramp = torch.arange(logits.shape[1], dtype=torch.float64)[None, None, :, None]
        size = (height, 1)
        source = (
            F.interpolate(ramp, size=size, mode="bilinear", align_corners=align_corners).flatten().to(logits.device)
        )
        for start, stop in self._strips():
            low = source[start:stop].floor().long()
            high = (low + 1).clamp(max=logits.shape[1] - 1)
            weight = (source[start:stop] - low).to(logits.dtype)[:, None]
            rows = torch.lerp(logits[:, low], logits[:, high], weight)
            rows = F.interpolate(rows[None], size=(stop - start, width), mode="bilinear", align_corners=align_corners)[
                0
            ]
            self.total[start:stop] += rows.softmax(0).transpose(0, 1).to(self.total.device)

    def labels(self) -> Tensor:
        """Class of the largest sum at each pixel, (height, width)."""
        return torch.cat([self.total[start:stop].argmax(1) for start, stop in self._strips()])

    def _strips(self) -> Iterator[tuple[int, int]]:
        height = len(self.total)
        return ((start, min(start + self.rows, height)) for start in range(0, height, self.rows))
