"""mmcv's compiled ops without a compiler: nms and roi_align of torchvision under mmcv's own names.

Current torch cannot build ``mmcv._ext``, and Mask R-CNN needs exactly three functions of it. A finder at the *end* of
``sys.meta_path`` answers for ``mmcv._ext`` only when no compiled one is found, and costs nothing before that. Any
other op exists, as mmcv asserts on import, and says so in one line when it is called.
"""

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

NAME = "mmcv._ext"
ORIGIN = "torchvision, through lvit_dense.engine.mmcv_ops"
# mmdet modules that import an op under try/except and keep a failing placeholder for good when there is none.
_KEEP_PLACEHOLDERS = ("mmdet.structures.mask.structures", "mmdet.models.layers.bbox_nms", "mmdet.utils.large_image")


class TorchvisionOps(MetaPathFinder, Loader):
    """Finder and loader of the stand-in module."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Answer for ``mmcv._ext`` and nothing else."""
        return ModuleSpec(NAME, self, origin=ORIGIN) if fullname == NAME else None

    def exec_module(self, module: ModuleType) -> None:
        """Fill the module; torchvision is imported here, not before."""
        import torchvision  # noqa: F401  # registers torch.ops.torchvision

        for function in (nms, roi_align_forward, roi_align_backward, get_compiler_version, get_compiling_cuda_version):
            setattr(module, function.__name__, function)
        module.__getattr__ = _missing_op  # type: ignore[method-assign]


def install() -> None:
    """Make ``import mmcv._ext`` work where mmcv was installed without compiled ops; harmless when called again.

    Raises:
        ImportError: mmdet was imported earlier without ops and would fail much later.
    """
    if any(isinstance(finder, TorchvisionOps) for finder in sys.meta_path):
        return
    loaded = [name for name in _KEEP_PLACEHOLDERS if name in sys.modules]
    if loaded and "mmcv.ops" not in sys.modules:
        raise ImportError(
            f"{loaded[0]} was imported before lvit_dense and mmcv has no compiled ops, so mmdet now holds placeholders "
            "that fail when called: import lvit_dense first (in a config: custom_imports of lvit_dense)"
        )
    sys.meta_path.append(TorchvisionOps())


def source() -> str:
    """Say where mmcv's ops come from: the path of a compiled library, this stand-in, or ``"none"``."""
    spec = importlib.util.find_spec(NAME) if importlib.util.find_spec("mmcv") else None
    return "none" if spec is None else str(spec.origin)


def nms(boxes: "Tensor", scores: "Tensor", iou_threshold: float, offset: int) -> "Tensor":
    """Indices of the boxes (N, 4) kept, by falling score; ``offset`` 1 counts a box's last pixel as inside it."""
    import torch

    boxes, scores = _at_least_fp32(boxes), _at_least_fp32(scores)
    if offset:
        # (x2 + 1) - x1 is the width of the pixel convention, for areas and overlaps alike.
        boxes = boxes + boxes.new_tensor([0, 0, offset, offset])
    return torch.ops.torchvision.nms(boxes, scores, iou_threshold)


def roi_align_forward(
    input: "Tensor",
    rois: "Tensor",
    output: "Tensor",
    argmax_y: "Tensor",
    argmax_x: "Tensor",
    aligned_height: int,
    aligned_width: int,
    spatial_scale: float,
    sampling_ratio: int,
    pool_mode: int,
    aligned: bool,
) -> None:
    """Write RoIAlign of maps (B, C, H, W), any memory format, at rois (R, 5) into ``output`` (R, C, h, w)."""
    import torch

    _only_average(pool_mode)
    size = (aligned_height, aligned_width)
    maps = _at_least_fp32(input)
    output.copy_(
        torch.ops.torchvision.roi_align(maps, rois.to(maps.dtype), spatial_scale, *size, sampling_ratio, aligned)
    )


def roi_align_backward(
    grad_output: "Tensor",
    rois: "Tensor",
    argmax_y: "Tensor",
    argmax_x: "Tensor",
    grad_input: "Tensor",
    aligned_height: int,
    aligned_width: int,
    spatial_scale: float,
    sampling_ratio: int,
    pool_mode: int,
    aligned: bool,
) -> None:
    """Write the gradient of :func:`roi_align_forward` with respect to the maps into ``grad_input`` (B, C, H, W)."""
    import torch

    _only_average(pool_mode)
    size = (aligned_height, aligned_width)
    grad = _at_least_fp32(grad_output)
    grad_input.copy_(
        torch.ops.torchvision._roi_align_backward(
            grad, rois.to(grad.dtype), spatial_scale, *size, *grad_input.shape, sampling_ratio, aligned
        )
    )


def get_compiler_version() -> str:
    """What mmcv's environment report prints as its compiler."""
    import torchvision

    return f"none (torchvision {torchvision.__version__} stands in)"


def get_compiling_cuda_version() -> str:
    """What mmcv's environment report prints as its CUDA version."""
    import torch

    return torch.version.cuda or "none"


def _at_least_fp32(tensor: "Tensor") -> "Tensor":
    # torchvision has no half kernels on CPU, and fp16 cannot hold the coordinates of a 1333-pixel side.
    return tensor.float() if tensor.element_size() == 2 else tensor


def _only_average(pool_mode: int) -> None:
    if pool_mode != 1:
        raise NotImplementedError("roi_align with pool_mode='max' needs a compiled mmcv; use pool_mode='avg'")


def _missing_op(name: str) -> Callable[..., Any]:
    if name.startswith("__"):
        raise AttributeError(f"module {NAME!r} has no attribute {name!r}")

    def call(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"mmcv op {name!r} needs a compiled mmcv: this one has none, lvit_dense supplies nms and roi_align only"
        )

    return call
