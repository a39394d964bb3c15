"""Image classification with a ViT of any operator, with transfer and distillation: the ImageNet stage."""

from collections.abc import Mapping
from typing import Any

import torch
from mmengine.logging import MessageHub
from mmengine.model import BaseDataPreprocessor, BaseModel
from mmengine.registry import MODELS
from timm.data import Mixup
from timm.data.mixup import mixup_target
from timm.layers import trunc_normal_
from timm.loss import LabelSmoothingCrossEntropy, SoftTargetCrossEntropy
from torch import Tensor, nn

from lvit_dense.catalog import check_arguments, naming_unknown_arguments
from lvit_dense.distill import Distiller, DistillError
from lvit_dense.models.start import check_start, start_from
from lvit_dense.transfer import SourceError, TransferReport, build_teacher, pixel_change, read_source
from lvit_dense.transfer.canonical import IMAGENET_MEAN, IMAGENET_STD
from lvit_dense.vit import ViT


@MODELS.register_module()
class ImageBatch(BaseDataPreprocessor):
    """Move a batch ``dict(inputs=(B, 3, H, W), targets=(B,))`` to the device and, in training, mix pictures.

    Args:
        mixup: arguments of :class:`timm.data.Mixup`, None = no mixing. The classifier adds its ``num_classes`` and
            ``label_smoothing``.
    """

    def __init__(self, mixup: Mapping[str, Any] | None = None, non_blocking: bool = True) -> None:
        super().__init__(non_blocking)
        self.mixup = None if mixup is None else Mixup(**mixup)

    def forward(self, data: dict[str, Tensor], training: bool = False) -> dict[str, Tensor]:
        """Return the batch; mixed targets are (B, num_classes) probabilities."""
        data = self.cast_data(data)
        if training and self.mixup is not None:
            data["inputs"], data["targets"] = self._mix(data["inputs"], data["targets"], self.mixup)
        return data

    @staticmethod
    def _mix(images: Tensor, targets: Tensor, mixup: Mixup) -> tuple[Tensor, Tensor]:
        """Mix pairs of pictures; the last one of an odd batch, which timm refuses, stays as it is."""
        even = len(images) - len(images) % 2
        last = mixup_target(targets[even:], mixup.num_classes, 1.0, mixup.label_smoothing)
        if even == 0:
            return images, last
        mixed, labels = mixup(images[:even], targets[:even])
        return torch.cat([mixed, images[even:]]), torch.cat([labels, last])


@MODELS.register_module()
class LinearViTClassifier(BaseModel):
    """ViT, linear head, cross-entropy with label smoothing, and optionally lambda * L_distill.

    The class token is classified where the model has one, else the mean of the normalised patch tokens.

    Args:
        backbone: arguments of :class:`lvit_dense.vit.ViT`.
        num_classes: outputs of the head, which is always fresh.
        transfer: ``dict(plan='mlpcopy', source='timm:deit_base_patch16_224.fb_in1k')``; None = random. It runs in
            ``init_weights``; its report stays on ``transfer_report``.
        distill: ``dict(teacher=SOURCE, ...)`` with further arguments of :class:`lvit_dense.distill.Distiller`, and:
            ``facts`` of the teacher that its file does not tell (see :func:`lvit_dense.transfer.read_source`);
            ``pixel_mean``, ``pixel_std``, by which the student's pictures are normalised (default: ImageNet's). A
            teacher that was trained with others gets them re-normalised.
        label_smoothing: of the cross-entropy, and of the targets of mixed pictures.
    """

    @naming_unknown_arguments
    def __init__(
        self,
        backbone: Mapping[str, Any],
        num_classes: int,
        transfer: Mapping[str, Any] | None = None,
        distill: Mapping[str, Any] | None = None,
        label_smoothing: float = 0.1,
        data_preprocessor: Mapping[str, Any] | None = None,
        init_cfg: Any = None,
    ) -> None:
        batch = dict(data_preprocessor or {"type": "ImageBatch"})
        if batch.get("mixup"):
            batch["mixup"] = {"num_classes": num_classes, "label_smoothing": label_smoothing, **batch["mixup"]}
        super().__init__(data_preprocessor=batch, init_cfg=init_cfg)
        check_arguments("backbone", ViT, backbone)
        self.vit = ViT(**backbone)
        self.head = nn.Linear(self.vit.embed_dim, num_classes)
        trunc_normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)
        self.num_classes = num_classes
        self.transfer = check_start(transfer)
        self.distill = distill
        self.transfer_report: TransferReport | None = None
        self._distiller: list[Distiller] = []  # in a list, so that nn.Module neither registers nor saves the teacher
        self.hard_loss = LabelSmoothingCrossEntropy(label_smoothing)
        self.soft_loss = SoftTargetCrossEntropy()

    def init_weights(self) -> None:
        """Initialise, then copy what the transfer plan copies; the report is logged and kept. Read the teacher.

        Raises:
            SourceError, TransferError, DistillError: weights that cannot be read, copied, or distilled from.
        """
        super().init_weights()
        if self.transfer is not None:
            self.transfer_report = start_from(self.vit, self.transfer)
        if self.distill is not None:
            self.distiller()

    def forward(self, inputs: Tensor, targets: Tensor | None = None, mode: str = "tensor") -> Any:
        """mmengine's three modes: ``loss`` (dict of scalars), ``predict`` (list of dicts), ``tensor`` (logits)."""
        if mode == "loss":
            assert targets is not None
            return self.losses(inputs, targets)
        logits = self.logits(inputs)
        if mode == "tensor":
            return logits
        labels = [None] * len(logits) if targets is None else targets
        return [{"scores": scores, "label": label} for scores, label in zip(logits.float(), labels)]

    def logits(self, images: Tensor) -> Tensor:
        """Class scores (B, num_classes) of images (B, 3, H, W)."""
        features = self.vit(images)
        return self._classify(features.tokens, features.patches)

    def losses(self, images: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """``loss_task`` and, with a teacher, ``loss_distill``; mmengine sums what starts with ``loss``."""
        if self.distill is None:
            return {"loss_task": self._task_loss(self.logits(images), targets)}
        distiller = self.distiller()
        with distiller.watch(self.vit) as seen:
            features = self.vit(images)
        logits = self._classify(features.tokens, features.patches)
        loss = distiller.loss(seen, self.vit, images, features.grid, _progress())
        return {"loss_task": self._task_loss(logits, targets), "loss_distill": loss}

    def distiller(self) -> Distiller:
        """The teacher beside this student, read when first wanted (never for prediction)."""
        if not self._distiller:
            options = dict(self.distill or {})
            spec = options.pop("teacher")
            own = (options.pop("pixel_mean", IMAGENET_MEAN), options.pop("pixel_std", IMAGENET_STD))
            try:
                source = read_source(spec, facts=options.pop("facts", None))
                teacher = build_teacher(source, img_size=self._teacher_size(source.facts.patch_size))
                distiller = Distiller(teacher, pixels=pixel_change(source.facts, *own), **options)
                distiller.check_student(self.vit)
            except SourceError:
                raise  # names the file and the cure itself
            except (ValueError, KeyError, TypeError) as error:
                raise DistillError(f"distillation from {spec}: {error.args[0]}") from error
            self._distiller.append(distiller)
        return self._distiller[0]

    def _teacher_size(self, teacher_patch: int) -> tuple[int, int]:
        """Training picture size, at which the teacher's positions are resampled once."""
        height, width = self.vit.facts["img_size"]
        return (-(-height // teacher_patch) * teacher_patch, -(-width // teacher_patch) * teacher_patch)

    def _classify(self, tokens: Tensor, patches: Tensor) -> Tensor:
        return self.head(tokens[:, 0] if self.vit.cls_token is not None else patches.mean(1))

    def _task_loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        # float32: log-softmax over 1000 classes of half-precision logits loses the small terms.
        return (self.soft_loss if targets.is_floating_point() else self.hard_loss)(logits.float(), targets)


def _progress() -> float:
    """Share of training done, from what mmengine's RuntimeInfoHook publishes; 0 outside a Runner."""
    hub = MessageHub.get_current_instance()
    return hub.get_info("iter", 0) / max(1, hub.get_info("max_iters", 1))
