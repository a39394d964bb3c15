"""Streaming multi-scale test: the same labels as keeping every view, with memory that does not grow with the views."""

import pytest
import torch
import torch.nn.functional as F

from lvit_dense.engine import seg_tta
from lvit_dense.engine.seg_tta import ScoreSum, StreamingSegTTA
from tests.dense.conftest import segmentation_sample, tiny_config


def views(count, ori_shape=(60, 83), seed=0):
    """``count`` views of one picture as TestTimeAug collates them; every second one is flipped."""
    pairs = []
    for i in range(count):
        height, width = 40 + 8 * (i // 2), 56 + 11 * (i // 2)
        image, sample = segmentation_sample(height, width, ori_shape, seed=seed + i // 2, flip=bool(i % 2))
        pairs.append((image.flip(2) if i % 2 else image, sample))
    return dict(inputs=[[image] for image, _ in pairs], data_samples=[[sample] for _, sample in pairs])


@pytest.fixture
def model(build):
    return build(tiny_config("upernet", "relu")).eval()


@pytest.mark.parametrize("count", [1, 2, 6])
@pytest.mark.parametrize("strip_bytes", [2**26, 5 * 83 * 4 * 7])
def test_labels_equal_those_of_mmseg(model, monkeypatch, count, strip_bytes):
    from mmseg.models.segmentors.seg_tta import SegTTAModel

    monkeypatch.setattr(seg_tta, "STRIP_BYTES", strip_bytes)
    (ours,) = StreamingSegTTA(model).test_step(views(count))
    with torch.no_grad():
        (theirs,) = SegTTAModel(module=model).test_step(views(count))
    assert ours.pred_sem_seg.data.shape == (1, 60, 83)
    assert len(ours.pred_sem_seg.data.unique()) > 1
    assert torch.equal(ours.pred_sem_seg.data, theirs.pred_sem_seg.data)
    assert torch.equal(ours.gt_sem_seg.data, theirs.gt_sem_seg.data) and ours.img_path == theirs.img_path


def test_one_view_equals_the_plain_path(model):
    image, sample = segmentation_sample(75, 101, ori_shape=(150, 203))
    batch = dict(inputs=[[image]], data_samples=[[sample.clone()]])
    (streamed,) = StreamingSegTTA(model).test_step(batch)
    with torch.no_grad():
        (plain,) = model.test_step(dict(inputs=[image], data_samples=[sample]))
    assert torch.equal(streamed.pred_sem_seg.data, plain.pred_sem_seg.data)


@pytest.mark.parametrize("mode", ["whole", "slide"])
@pytest.mark.parametrize("size", [(40, 56), (64, 64), (75, 101)])
@pytest.mark.parametrize("flip", [False, True])
def test_padding_to_whole_patches_does_not_stretch_the_prediction(model, monkeypatch, mode, size, flip):
    height, width = size
    quarter = width / 4

    def right_of_the_first_quarter(maps):
        columns = 4 * torch.arange(maps[0].shape[3]) + 2.0  # centres of cells of stride 4, in pixels
        logits = torch.zeros(1, model.decode_head.num_classes, *maps[0].shape[2:])
        logits[:, 1] = columns - quarter
        logits[:, 2:] = -1000.0
        return logits

    monkeypatch.setattr(model.decode_head, "forward", right_of_the_first_quarter)
    model.test_cfg.update(mode=mode, crop_size=(512, 512), stride=(341, 341))
    image, sample = segmentation_sample(height, width, ori_shape=(2 * height, 2 * width), flip=flip)
    (streamed,) = StreamingSegTTA(model).test_step(dict(inputs=[[image]], data_samples=[[sample.clone()]]))
    with torch.no_grad():
        (plain,) = model.test_step(dict(inputs=[image], data_samples=[sample]))
    for result in (streamed, plain):
        columns = result.pred_sem_seg.data[0].float().mean(0)
        share = (columns[: round(6 * quarter)] if flip else columns[round(2 * quarter) :]).mean()
        assert share > 0.98 and abs(float(columns.mean()) - 0.75) < 0.02


def test_a_batch_of_pictures(model):
    one, two = views(2), views(2, ori_shape=(30, 41), seed=9)
    both = {key: [a + b for a, b in zip(one[key], two[key])] for key in one}
    results = StreamingSegTTA(model).test_step(both)
    for result, single in zip(results, (views(2), views(2, ori_shape=(30, 41), seed=9))):
        (alone,) = StreamingSegTTA(model).test_step(single)
        assert torch.equal(result.pred_sem_seg.data, alone.pred_sem_seg.data)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("size", [(23, 31), (9, 14), (11, 13)])
def test_strips_equal_one_interpolation(monkeypatch, align_corners, size):
    monkeypatch.setattr(seg_tta, "STRIP_BYTES", 4 * 3 * size[1] * 2)
    logits = torch.randn(3, 11, 13, dtype=torch.float64)
    scores = ScoreSum(3, size, logits.device, 2**30)
    assert scores.rows == 2
    scores.add(logits, align_corners)
    whole = F.interpolate(logits[None], size=size, mode="bilinear", align_corners=align_corners)[0].softmax(0)
    torch.testing.assert_close(scores.total.transpose(0, 1), whole.float())
    assert torch.equal(scores.labels(), whole.argmax(0))


def test_a_large_sum_lies_in_a_file(monkeypatch):
    kwargs = dict(classes=3, size=(20, 30), device=torch.device("cpu"))
    memory, file = ScoreSum(**kwargs, max_bytes=10**9), ScoreSum(**kwargs, max_bytes=100)
    for scores in (memory, file):
        torch.manual_seed(0)
        for _ in range(3):
            scores.add(torch.randn(3, 7, 8))
    assert torch.equal(memory.total, file.total) and torch.equal(memory.labels(), file.labels())


def test_flip_alone_changes_nothing_for_a_symmetric_net(model):
    """A net that sees each pixel alone is symmetric; its flipped view must be turned back exactly."""
    model.inference = lambda inputs, metas: torch.cat([inputs, -inputs.mean(1, keepdim=True)], 1)
    one, two = views(1), views(2)
    (plain,), (flipped,) = StreamingSegTTA(model).test_step(one), StreamingSegTTA(model).test_step(two)
    assert torch.equal(plain.pred_sem_seg.data, flipped.pred_sem_seg.data)


def test_only_one_view_is_alive_at_a_time(model, monkeypatch):
    """No logits of an earlier view survive when the next is computed, whatever the number of views."""
    import weakref

    earlier = []
    original = StreamingSegTTA._logits

    def spy(self, image, sample):
        assert sum(ref() is not None for ref in earlier) <= 1  # the caller's variable still names the last one
        logits = original(self, image, sample)
        earlier.append(weakref.ref(logits))
        return logits

    monkeypatch.setattr(StreamingSegTTA, "_logits", spy)
    StreamingSegTTA(model).test_step(views(6))
    assert len(earlier) == 6


def test_one_output_channel_is_refused(model):
    model.out_channels = 1
    with pytest.raises(ValueError, match="one channel per class, the segmentor has 1"):
        StreamingSegTTA(model)
