"""tools/get_flops.py against hand formulas, for the three tasks."""

import importlib.util
from pathlib import Path

import pytest
from mmengine.config import Config

ROOT = Path(__file__).parents[2]
C, D, DEPTH = 192, 64, 12


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("get_flops", ROOT / "tools/get_flops.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def macs_of(tool, config, shape, **options):
    cfg = Config.fromfile(ROOT / f"configs/{config}.py")
    return {part.name: part.macs for part in tool.count(cfg, shape, **options)}


def vit_by_hand(n, attention):
    """``attention``: of all blocks together."""
    return n * 768 * C + DEPTH * n * 12 * C * C + attention


def vit_counted(macs):
    return sum(value for name, value in macs.items() if name.startswith("ViT"))


def pyramid_by_hand(n):
    # stride 4: two transposed 2x2 convolutions, on N and on 4 N places; stride 8: one; the others have no products.
    return n * 4 * C * C + 4 * n * 4 * C * C + n * 4 * C * C


@pytest.mark.parametrize("operator", ["relu", "softmax"])
def test_detector(tool, operator):
    macs = macs_of(tool, f"maskrcnn_{operator}_tiny", (800, 1333), proposals=10, instances=4)
    n = 50 * 84  # 800x1333 is padded to 800x1344
    # The Softmax row attends in 14x14 windows in eight blocks: 4 x 6 windows cover the 50 x 84 grid.
    windowed = 8 * 24 * 2 * 196**2 * C
    attention = DEPTH * n * C * (2 * D + 1) if operator == "relu" else 4 * 2 * n * n * C + windowed
    assert vit_counted(macs) == vit_by_hand(n, attention)
    assert macs["pyramid"] == pyramid_by_hand(n)
    places = [200 * 336, 100 * 168, 50 * 84, 25 * 42]
    assert macs["neck"] == sum(p * (C * 256 + 9 * 256 * 256) for p in places)
    extra_level = 13 * 21
    assert macs["RPN head"] == sum(p * (9 * 256 * 256 + 256 * (3 + 12)) for p in [*places, extra_level])
    assert macs["bbox head, 10 boxes"] == 10 * (256 * 49 * 1024 + 1024 * 1024 + 1024 * (81 + 320))
    per_mask = 196 * (4 * 9 * 256 * 256 + 4 * 256 * 256) + 784 * 256 * 80
    assert macs["mask head, 4 boxes"] == 4 * per_mask


def test_segmentor(tool):
    macs = macs_of(tool, "upernet_inline_tiny", (512, 512))
    n = 32 * 32
    assert vit_counted(macs) == vit_by_hand(n, DEPTH * 2 * n * C * D)
    assert macs["pyramid"] == pyramid_by_hand(n)
    width, places = 512, [16 * n, 4 * n, n, n // 4]
    pooling = sum(p * C * width for p in (1, 4, 9, 36)) + places[3] * 9 * (C + 4 * width) * width
    lateral = sum(p * C * width for p in places[:3])
    smooth = sum(p * 9 * width * width for p in places[:3])
    fusion = places[0] * 9 * 4 * width * width
    assert macs["decode head"] == pooling + lateral + smooth + fusion + places[0] * width * 150
    assert macs["auxiliary head (training only)"] == n * (9 * C * 256 + 256 * 150)


def test_classifier(tool):
    macs = macs_of(tool, "imagenet_relu_tiny", (224, 224))
    n = 196
    attention = (n + 1) * C * (2 * D + 1)
    assert vit_counted(macs) == n * 768 * C + DEPTH * ((n + 1) * 12 * C * C + attention)
    assert macs["head"] == C * 1000


def test_linear_operators_scale_with_tokens_and_softmax_with_their_square(tool):
    for operator, factor in (("relu", 4), ("softmax", 16)):
        small, large = (macs_of(tool, f"upernet_{operator}_tiny", (side, side)) for side in (256, 512))
        name = next(name for name in small if "attention" in name)
        assert large[name] == factor * small[name]


def test_table_leaves_training_heads_out_of_the_total(tool):
    text = tool.table([tool.Part("a", 2 * 10**9, 10**6), tool.Part("aux", 10**9, 10**6, counted=False)])
    assert [line.split() for line in text.splitlines()[1:]] == [
        ["a", "2.000", "1.000"],
        ["total", "2.000", "1.000"],
        ["aux", "1.000", "1.000"],
    ]
