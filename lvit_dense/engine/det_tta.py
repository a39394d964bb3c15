"""Multi-scale and flip test of Mask R-CNN, masks included."""

from typing import Any

import torch
from mmengine.logging import MMLogger
from mmengine.model import BaseTTAModel
from mmengine.registry import MODELS
from mmengine.structures import InstanceData
from torch import Tensor

from lvit_dense.engine.views import by_picture, describe

FLIP_DIMS = {"horizontal": (-1,), "vertical": (-2,), "diagonal": (-2, -1)}


@MODELS.register_module()
class MaskRCNNTTA(BaseTTAModel):
    """Boxes from all views through class-wise NMS, then masks at these boxes averaged over all views.

    Detections of each view are mapped back to the picture, joined, and thinned by the detector's own
    ``test_cfg.rcnn`` (nms, max_per_img), as mmdet's DetTTAModel does, which refuses masks. Then the mask head sees the
    surviving boxes in every view, and the mean of its probabilities is pasted (the scheme of detectron2's
    GeneralizedRCNNWithTTA). The backbone runs twice per view, so that the maps of only one view are in memory.

    Args:
        module: the two-stage detector (or its config); without a mask head the result is boxes only.
    """

    def __init__(self, module: Any, data_preprocessor: Any = None) -> None:
        super().__init__(module, data_preprocessor)
        self._announced = False

    @torch.no_grad()
    def test_step(self, data: dict[str, Any]) -> list[Any]:
        """Return one data sample per picture with ``pred_instances`` in the picture's own coordinates.

        Args:
            data: a collated TestTimeAug batch, ``inputs[view][picture]`` and ``data_samples[view][picture]``.
        """
        self._announce(data["data_samples"])
        return [self._detect(views) for views in by_picture(data)]

    def merge_preds(self, data_samples_list: Any) -> Any:
        """Not used: masks need the merged boxes before they can be computed, so views are merged in test_step."""
        raise NotImplementedError("MaskRCNNTTA merges boxes and masks in test_step")

    def _detect(self, views: list[tuple[Tensor, Any]]) -> Any:
        from mmdet.models.utils.misc import samplelist_boxtype2tensor

        result = self._merge([self._boxes(image, sample) for image, sample in views])
        sample = views[0][1]
        if self.module.roi_head.with_mask:
            result = self._with_masks(result, views)
        sample.pred_instances = result
        samplelist_boxtype2tensor([sample])  # of the truth, as the preprocessor does it: pictures are drawn from both
        return sample

    def _boxes(self, image: Tensor, sample: Any) -> InstanceData:
        """Detections of one view, unflipped and in the picture's coordinates."""
        from mmdet.structures.bbox import bbox_flip

        maps, sample = self._maps(image, sample)
        proposals = self.module.rpn_head.predict(maps, [sample], rescale=False)
        head = self.module.roi_head
        (result,) = head.predict_bbox(maps, [sample.metainfo], proposals, head.test_cfg, rescale=True)
        if sample.metainfo.get("flip"):
            result.bboxes = bbox_flip(result.bboxes, sample.ori_shape, sample.flip_direction)
        return result

    def _merge(self, results: list[InstanceData]) -> InstanceData:
        from mmcv.ops import batched_nms

        joined = InstanceData.cat([InstanceData(bboxes=r.bboxes, scores=r.scores, labels=r.labels) for r in results])
        if not len(joined):
            return joined
        cfg = self.module.roi_head.test_cfg
        _, kept = batched_nms(joined.bboxes, joined.scores, joined.labels, cfg.nms)
        return joined[kept[: cfg.max_per_img]]

    def _with_masks(self, result: InstanceData, views: list[tuple[Tensor, Any]]) -> InstanceData:
        head = self.module.roi_head
        height, width = views[0][1].ori_shape[:2]
        if not len(result):
            result.masks = torch.zeros((0, height, width), dtype=torch.bool, device=result.bboxes.device)
            return result
        mean: Tensor | float = 0.0
        for image, sample in views:
            mean = mean + self._mask_probabilities(result.bboxes, image, sample) / len(views)
        # predict_by_feat takes logits (it applies the sigmoid) and boxes of a view, here the picture itself.
        meta = {"scale_factor": (1.0, 1.0), "ori_shape": (height, width)}
        logits = torch.logit(torch.as_tensor(mean))
        return head.mask_head.predict_by_feat([logits], [result], [meta], head.test_cfg, rescale=True)[0]

    def _mask_probabilities(self, boxes: Tensor, image: Tensor, sample: Any) -> Tensor:
        """Mask probabilities (boxes, classes, m, m) of one view, unflipped."""
        from mmdet.structures.bbox import bbox2roi, bbox_flip

        maps, sample = self._maps(image, sample)
        boxes = boxes * boxes.new_tensor(sample.scale_factor).repeat(2)
        flip = sample.metainfo.get("flip")
        if flip:
            boxes = bbox_flip(boxes, sample.img_shape, sample.flip_direction)
        head = self.module.roi_head
        extractor = head.mask_roi_extractor
        mask = head.mask_head(extractor(maps[: extractor.num_inputs], bbox2roi([boxes]))).float().sigmoid()
        return mask.flip(FLIP_DIMS[sample.flip_direction]) if flip else mask

    def _maps(self, image: Tensor, sample: Any) -> tuple[tuple[Tensor, ...], Any]:
        batch = self.module.data_preprocessor({"inputs": [image], "data_samples": [sample]}, False)
        return self.module.extract_feat(batch["inputs"]), batch["data_samples"][0]

    def _announce(self, samples: list[list[Any]]) -> None:
        """Say once which views the result comes from: single- and multi-scale numbers get confused."""
        if not self._announced:
            self._announced = True
            MMLogger.get_current_instance().info(f"test with {len(samples)} views a picture: {describe(samples)}")
