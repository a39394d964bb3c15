"""Reading pictures for Mask R-CNN and UperNet: any 8-bit picture as RGB, and an error that names the file.

Registered as ``LoadImageFromFile``, the name that the configs use and that mmdet's and mmseg's inferencers look for;
it takes the place of mmcv's class, with the same arguments and, for a sound picture, the same pixels.
"""

from typing import Any

import mmcv
import numpy as np
from mmcv.transforms import LoadImageFromFile
from mmengine import fileio
from mmengine.registry import TRANSFORMS

from lvit_dense.datasets.checks.finding import DataError, Finding
from lvit_dense.datasets.checks.pictures import check_whole, missing_file, read_header
from lvit_dense.datasets.checks.segmentation import inspect_labels


@TRANSFORMS.register_module(name="LoadImageFromFile", force=True)
class LoadPicture(LoadImageFromFile):
    """Read ``img_path`` to (H, W, 3) uint8 BGR; look at ``seg_map_path``, where there is one, as well.

    Grey, palette, CMYK pictures and ones with alpha are read as RGB, turned upright by their EXIF orientation.
    mmcv's class fails without the file's name on a file it cannot read, silently fills a picture that ends early with
    grey, divides 16-bit pictures by 256, and its label loader takes 16-bit labels modulo 256.

    Raises:
        DataError: a picture or label file that cannot be used, with its name, the reason and the cure.
    """

    def transform(self, results: dict[str, Any]) -> dict[str, Any] | None:
        """Add ``img``, ``img_shape`` and ``ori_shape``."""
        file = str(results["img_path"])
        try:
            image = self._read(file)
        except DataError:
            if self.ignore_empty:
                return None
            raise
        labels = results.get("seg_map_path")
        if labels is not None and "reduce_zero_label" in results:  # set by mmseg's data sets
            inspect_labels(str(labels), _get(str(labels), self.backend_args))
        results["img"] = image.astype(np.float32) if self.to_float32 else image
        results["img_shape"] = results["ori_shape"] = image.shape[:2]
        return results

    def _read(self, file: str) -> np.ndarray:
        content = _get(file, self.backend_args)
        header = read_header(file, content)
        check_whole(file, content)
        image = mmcv.imfrombytes(content, flag=self.color_type, backend=self.imdecode_backend)
        if image is None:
            value = (
                f"{header.mode} picture of {header.width}x{header.height} that {self.imdecode_backend} cannot decode"
            )
            cure = "Save it as JPEG or PNG, or set imdecode_backend='pillow'"
            raise DataError([Finding("undecodable", file, value, "a picture that decodes", cure, picture=file)])
        return image


def _get(file: str, backend_args: dict[str, Any] | None = None) -> bytes:
    """The file's bytes from any of mmengine's backends."""
    try:
        backend = fileio.get_file_backend(file, backend_args=backend_args, enable_singleton=True)
    except KeyError as error:
        value = f"mmengine has no file backend for {error}"
        cure = "Give a path of this machine, or backend_args=dict(backend=...)"
        raise DataError([Finding("missing-file", file, value, "a path or http(s)://", cure, picture=file)]) from error
    try:
        return backend.get(file)
    except OSError as error:
        raise DataError([missing_file(file, error)]) from error
