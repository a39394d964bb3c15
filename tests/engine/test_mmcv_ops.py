import subprocess
import sys

import pytest
import torch
import torchvision

import lvit_dense  # noqa: F401
from lvit_dense.engine import mmcv_ops

ROIS = torch.tensor([[0, 1.3, 2.1, 20.7, 17.0], [1, 0.0, 0.0, 31.0, 23.0], [1, 5.5, 6.5, 5.5, 6.5], [0, -4, -3, 9, 50]])


@pytest.fixture(scope="module")
def ops():
    import mmcv.ops

    return mmcv.ops


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("channels_last", [True, False])
@pytest.mark.parametrize("size", [7, (3, 5)])
def test_roi_align_equals_torchvision(ops, dtype, aligned, channels_last, size):
    torch.manual_seed(0)
    maps = torch.randn(2, 5, 12, 16, dtype=dtype)
    reference = maps.clone().requires_grad_()
    if channels_last:
        maps = maps.to(memory_format=torch.channels_last)
    maps.requires_grad_()
    ours = ops.roi_align(maps, ROIS.to(dtype), size, 0.5, 0, "avg", aligned)
    theirs = torchvision.ops.roi_align(reference, ROIS.to(dtype), size, 0.5, 0 if aligned else -1, aligned)
    assert torch.equal(ours, theirs)
    weights = torch.randn_like(theirs)
    (ours * weights).sum().backward()
    (theirs * weights).sum().backward()
    assert torch.equal(maps.grad, reference.grad)
    assert maps.grad.abs().sum() > 0


def test_roi_align_of_a_linear_ramp(ops):
    """Independent of torchvision: averaging x over a box gives its centre (aligned: pixel centres at +0.5)."""
    ramp = torch.arange(16.0).expand(1, 1, 16, 16).contiguous()
    out = ops.roi_align(ramp, torch.tensor([[0, 2.0, 2.0, 10.0, 10.0]]), 1, 1.0, 0, "avg", True)
    assert out.item() == pytest.approx(6.0 - 0.5)


def test_roi_align_in_half_precision_keeps_coordinates(ops):
    maps = torch.randn(1, 3, 64, 64)
    rois = torch.tensor([[0, 1001.3, 17.7, 1020.9, 300.1]])
    exact = ops.roi_align(maps, rois, 7, 1 / 16, 0, "avg", True)
    half = ops.roi_align(maps.bfloat16(), rois, 7, 1 / 16, 0, "avg", True)
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.float(), exact, atol=0.02, rtol=0.02)


@pytest.mark.parametrize("offset", [0, 1])
def test_nms_by_its_definition(ops, offset):
    torch.manual_seed(1)
    corner = torch.rand(60, 2) * 20
    boxes = torch.cat([corner, corner + 1 + torch.rand(60, 2) * 10], 1)
    scores = torch.rand(60)
    wide = boxes + boxes.new_tensor([0, 0, offset, offset])
    iou = torchvision.ops.box_iou(wide, wide)
    kept: list[int] = []
    for i in scores.argsort(descending=True).tolist():
        if all(iou[i, j] <= 0.4 for j in kept):
            kept.append(i)
    dets, indices = ops.nms(boxes, scores, 0.4, offset=offset)
    assert indices.tolist() == kept
    assert torch.equal(dets, torch.cat([boxes, scores[:, None]], 1)[kept])


def test_missing_op_says_so_when_called_not_when_imported(ops):
    with pytest.raises(NotImplementedError, match=r"mmcv op 'softnms' needs a compiled mmcv"):
        ops.soft_nms(torch.rand(3, 4), torch.rand(3))
    with pytest.raises(NotImplementedError, match="pool_mode='max'"):
        ops.roi_align(torch.rand(1, 1, 4, 4), ROIS[:1], 2, 1.0, 0, "max", True)
    with pytest.raises(AttributeError):
        sys.modules[mmcv_ops.NAME].__wrapped__  # noqa: B018


def test_source_names_the_stand_in():
    assert mmcv_ops.source() == mmcv_ops.ORIGIN


def run(code: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)


def test_import_is_light_and_installing_twice_is_harmless():
    done = run(
        "import sys, lvit_dense; from lvit_dense.engine import mmcv_ops; mmcv_ops.install()\n"
        "assert not {'torchvision', 'mmcv', 'mmengine', 'mmdet'} & set(sys.modules), sorted(sys.modules)\n"
        "assert sum(isinstance(f, mmcv_ops.TorchvisionOps) for f in sys.meta_path) == 1"
    )
    assert done.returncode == 0, done.stderr


def test_mmdet_before_us_is_one_clear_error():
    # The module alone stands for a whole mmdet imported without ops, which takes five seconds to import.
    done = run(
        "import sys, types; sys.modules['mmdet.models.layers.bbox_nms'] = types.ModuleType('x')\nimport lvit_dense"
    )
    assert done.returncode == 1
    assert "import lvit_dense first" in done.stderr.splitlines()[-1]


def test_a_compiled_extension_wins(tmp_path):
    package = tmp_path / "mmcv"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "_ext.py").write_text("nms = 'compiled'")
    done = run(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nimport lvit_dense\nfrom mmcv._ext import nms\n"
        "from lvit_dense.engine import mmcv_ops\nassert nms == 'compiled' and mmcv_ops.source().endswith('_ext.py')"
    )
    assert done.returncode == 0, done.stderr
