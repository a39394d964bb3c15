"""Multi-scale and flip test with masks."""

import pytest
import torch
from mmengine.structures import InstanceData

from lvit_dense.engine.det_tta import MaskRCNNTTA
from tests.dense.conftest import detection_sample, tiny_config

H, W = 60, 90


def view(scale=1, flip=False, seed=0, ori_shape=(H, W)):
    """One view of a picture, as Resize (nearest here, exactly invertible) and RandomFlip make it."""
    image, sample = detection_sample(*ori_shape, [], seed=seed, flip=flip)
    image = image.repeat_interleave(scale, 1).repeat_interleave(scale, 2)
    sample.set_metainfo(dict(img_shape=tuple(image.shape[1:]), scale_factor=(float(scale), float(scale))))
    return image.flip(2) if flip else image, sample


def collate(*pairs):
    return dict(inputs=[[image] for image, _ in pairs], data_samples=[[sample] for _, sample in pairs])


@pytest.fixture
def model(build):
    return build(tiny_config("maskrcnn", "relu")).eval()


def predict(model, pair):
    with torch.no_grad():
        return model.test_step(dict(inputs=[pair[0]], data_samples=[pair[1]]))[0].pred_instances


def equal(one: InstanceData, other: InstanceData):
    for key in ("bboxes", "scores", "labels", "masks"):
        torch.testing.assert_close(one[key], other[key], msg=lambda text, key=key: f"{key}: {text}")


@pytest.mark.parametrize("scale", [1, 2])
@pytest.mark.parametrize("copies", [1, 3])
def test_one_view_or_copies_of_it_equal_the_plain_path(model, scale, copies):
    (result,) = MaskRCNNTTA(model).test_step(collate(*(view(scale) for _ in range(copies))))
    assert len(result.pred_instances) == 5 and result.pred_instances.masks.any()
    assert result.pred_instances.masks.shape == (5, H, W)
    equal(result.pred_instances, predict(model, view(scale)))


def test_truth_and_prediction_can_be_drawn(model, tmp_path):
    from mmdet.structures.bbox import HorizontalBoxes
    from mmdet.visualization import DetLocalVisualizer

    image, sample = view()
    sample.gt_instances = detection_sample(H, W, [(5, 5, 40, 30)])[1].gt_instances
    sample.gt_instances.bboxes = HorizontalBoxes(sample.gt_instances.bboxes)  # as the pipeline gives it
    (result,) = MaskRCNNTTA(model).test_step(collate((image, sample)))
    assert isinstance(result.gt_instances.bboxes, torch.Tensor)
    visualizer = DetLocalVisualizer(name="truth and prediction")
    visualizer.dataset_meta = dict(classes=("a", "b", "c"), palette=[(255, 0, 0)] * 3)
    picture = tmp_path / "drawn.png"
    visualizer.add_datasample("drawn", image.permute(1, 2, 0).numpy(), result, out_file=str(picture))
    assert picture.stat().st_size > 0


def test_a_flipped_view_is_turned_back(model):
    (result,) = MaskRCNNTTA(model).test_step(collate(view(flip=True)))
    mirrored = view(flip=True)
    mirrored[1].set_metainfo(dict(flip=False))
    plain = predict(model, mirrored)
    back = plain.bboxes[:, [2, 1, 0, 3]] * plain.bboxes.new_tensor([-1, 1, -1, 1]) + plain.bboxes.new_tensor(
        [W, 0, W, 0]
    )
    torch.testing.assert_close(result.pred_instances.bboxes, back)
    # Masks are pasted at mirrored pixel centres; rounding at the threshold may turn single pixels.
    assert (result.pred_instances.masks != plain.masks.flip(2)).float().mean() < 1e-3


def test_detections_of_all_views_are_joined_by_class_wise_nms(model, monkeypatch):
    found = iter(
        [
            InstanceData(
                bboxes=torch.tensor([[0.0, 0, 20, 20], [40, 0, 60, 20]]),
                scores=torch.tensor([0.6, 0.5]),
                labels=torch.tensor([0, 1]),
            ),
            InstanceData(
                bboxes=torch.tensor([[1.0, 0, 20, 20], [1, 0, 20, 20]]),
                scores=torch.tensor([0.9, 0.8]),
                labels=torch.tensor([0, 2]),
            ),
        ]
    )
    monkeypatch.setattr(MaskRCNNTTA, "_boxes", lambda self, image, sample: next(found))
    (result,) = MaskRCNNTTA(model).test_step(collate(view(), view(2)))
    assert result.pred_instances.labels.tolist() == [0, 2, 1]
    torch.testing.assert_close(result.pred_instances.scores, torch.tensor([0.9, 0.8, 0.5]))


def test_masks_are_averaged_over_views_after_unflipping(model, monkeypatch):
    """A mask head that always marks the left half: view and flipped view disagree everywhere, 0.9 + 0.1 -> 0.5."""
    box = InstanceData(bboxes=torch.tensor([[10.0, 10, 50, 50]]), scores=torch.ones(1), labels=torch.zeros(1).long())
    monkeypatch.setattr(MaskRCNNTTA, "_boxes", lambda self, image, sample: box)

    def left_half(features):
        probability = torch.full((len(features), 3, 28, 28), 0.1)
        probability[..., :14] = 0.9
        return torch.logit(probability)

    monkeypatch.setattr(model.roi_head.mask_head, "forward", left_half)
    tta = MaskRCNNTTA(model)
    both = sum(tta._mask_probabilities(box.bboxes, *view(flip=flip)) for flip in (False, True)) / 2
    torch.testing.assert_close(both, torch.full_like(both, 0.5))
    (one,) = tta.test_step(collate(view()))
    columns = one.pred_instances.masks[0].any(0).nonzero().flatten()
    assert (columns.min(), columns.max()) == (10, 29)
    (weighted,) = tta.test_step(collate(view(), view(2), view(flip=True)))
    # Two of three views mark the left half, .63 and .37; corners fade out below .5 when pasted.
    assert torch.equal(weighted.pred_instances.masks[:, 15:45], one.pred_instances.masks[:, 15:45])


def test_boxes_are_seen_where_they_are_in_each_view(model, monkeypatch):
    seen = []
    extractor = model.roi_head.mask_roi_extractor
    original = extractor.forward
    monkeypatch.setattr(extractor, "forward", lambda maps, rois: seen.append(rois[0].tolist()) or original(maps, rois))
    tta = MaskRCNNTTA(model)
    for pair in (view(), view(2), view(2, flip=True)):
        tta._mask_probabilities(torch.tensor([[10.0, 5, 30, 25]]), *pair)
    assert seen == [[0, 10, 5, 30, 25], [0, 20, 10, 60, 50], [0, 120, 10, 160, 50]]


def test_no_detection_at_all(model):
    model.roi_head.test_cfg.score_thr = 1.1
    (result,) = MaskRCNNTTA(model).test_step(collate(view(), view(flip=True)))
    assert len(result.pred_instances) == 0 and result.pred_instances.masks.shape == (0, H, W)


def test_a_batch_of_pictures_of_two_sizes(model):
    batch = collate(view(), view(flip=True))
    for pair, row in zip((view(seed=4, ori_shape=(48, 64)), view(seed=4, flip=True, ori_shape=(48, 64))), range(2)):
        batch["inputs"][row].append(pair[0])
        batch["data_samples"][row].append(pair[1])
    first, second = MaskRCNNTTA(model).test_step(batch)
    assert first.pred_instances.masks.shape[1:] == (H, W) and second.pred_instances.masks.shape[1:] == (48, 64)
    (alone,) = MaskRCNNTTA(model).test_step(collate(view(), view(flip=True)))
    equal(first.pred_instances, alone.pred_instances)


def test_only_the_maps_of_one_view_are_alive(model, monkeypatch):
    import weakref

    earlier = []
    original = MaskRCNNTTA._maps

    def spy(self, image, sample):
        assert all(ref() is None for ref in earlier)
        maps, sample = original(self, image, sample)
        earlier.append(weakref.ref(maps[0]))
        return maps, sample

    monkeypatch.setattr(MaskRCNNTTA, "_maps", spy)
    MaskRCNNTTA(model).test_step(collate(view(), view(flip=True), view(2)))
    assert len(earlier) == 6
