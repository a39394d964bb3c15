"""The frozen softmax teacher beside a student (the paper's Section 5.1 and B.4)."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lvit_dense.catalog import naming_unknown_arguments, suggest
from lvit_dense.distill.taps import record_inputs, record_outputs
from lvit_dense.distill.terms import TERMS
from lvit_dense.operators import AttentionOperator, Grid
from lvit_dense.operators.softmax import SoftmaxAttention
from lvit_dense.transfer import PixelChange
from lvit_dense.vit import ViT
from lvit_dense.vit.block import Block

SCHEDULES = ("constant", "cosine", "warmup")
WARM_UP = 0.1  # share of training over which the 'warmup' schedule rises


class DistillError(ValueError):
    """Options that do not exist, or a student that cannot be compared with its teacher."""


class Distiller:
    """lambda * L_distill: the student's attention outputs, at every block, against the teacher's on the same images.

    It is no module: the teacher appears neither in a state dict nor in an optimiser. It stays in eval mode, runs
    without gradients on the student's batch under the ambient autocast, and stops after its last attention that counts.

    Args:
        teacher: softmax ViT with the student's width and depth.
        term: a name in ``TERMS``.
        weight: lambda.
        blocks: 0-based block indices, None = all.
        block_reduction: ``"mean"`` or ``"sum"`` over blocks (the paper does not say; docs: deviations).
        tokens: ``"common"`` = patch tokens, and the class token where both have one; ``"patch"`` = patch tokens only.
        inputs: ``"own"`` = the student's attention sees the student's own activations; ``"teacher"`` = the teacher's
            block input (teacher forcing), in a further pass through the student's attention modules.
        pixels: what turns the student's pictures into the teacher's; None = nothing.
        schedule: lambda over training: ``"constant"``, ``"cosine"`` (falls to 0) or ``"warmup"`` (rises over the
            first tenth).
    """

    @naming_unknown_arguments
    def __init__(
        self,
        teacher: ViT,
        term: str = "output_mse",
        weight: float = 50.0,
        blocks: Sequence[int] | None = None,
        block_reduction: str = "mean",
        tokens: str = "common",
        inputs: str = "own",
        schedule: str = "constant",
        pixels: PixelChange | None = None,
    ) -> None:
        for name, value, valid in (
            ("block_reduction", block_reduction, ("mean", "sum")),
            ("tokens", tokens, ("common", "patch")),
            ("inputs", inputs, ("own", "teacher")),
            ("schedule", schedule, SCHEDULES),
        ):
            if value not in valid:
                raise DistillError(f"distill.{name}={value!r}: {suggest(value, valid)}")
        if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not weight >= 0:
            raise DistillError(f"distill.weight={weight!r}: expected a number of at least 0")
        if blocks is not None and not all(isinstance(block, int) for block in blocks):
            raise DistillError(f"distill.blocks={blocks!r}: expected whole numbers, the indices of blocks")
        depth = len(teacher.blocks)
        self.blocks = list(range(depth)) if blocks is None else sorted(set(blocks))
        if not self.blocks or self.blocks[0] < 0 or self.blocks[-1] >= depth:
            raise DistillError(f"distill.blocks={blocks} must name some of the blocks 0..{depth - 1}")
        others = {type(block.attn.operator).__name__ for block in teacher.blocks} - {SoftmaxAttention.__name__}  # type: ignore[union-attr]
        if others:
            raise DistillError(
                f"the teacher attends by {', '.join(sorted(others))}; distillation needs one with softmax attention. A "
                "student can be the source of a transfer"
            )
        self.term = TERMS.get(term)
        self.term_name = term
        self.weight = weight
        self.block_reduction = block_reduction
        self.tokens = tokens
        self.teacher_forced = inputs == "teacher"
        self.schedule = schedule
        self.pixels = pixels
        self.teacher = teacher.eval().requires_grad_(False)

    def check_student(self, student: ViT) -> None:
        """Raise DistillError where this student cannot be compared with the teacher; call it before training."""
        ours, theirs = student.arch, self.teacher.arch
        if (ours.embed_dim, ours.depth) != (theirs.embed_dim, theirs.depth):
            raise DistillError(
                f"distillation compares equal widths and depths: the student is {ours.embed_dim}x{ours.depth}, the "
                f"teacher {theirs.embed_dim}x{theirs.depth}; choose a teacher of the student's size"
            )
        if self.term.on_maps:
            if ours.num_heads != theirs.num_heads:
                raise DistillError(f"{self.term_name} compares heads: {ours.num_heads} and {theirs.num_heads} differ")
            for i, block in zip(self.blocks, self._chosen(student), strict=True):
                operator = block.attn.operator
                if type(operator).attention_matrix is AttentionOperator.attention_matrix:
                    raise DistillError(
                        f"{self.term_name} needs an attention map, which {type(operator).__name__} (block {i}) does "
                        "not have; use an output term such as output_mse"
                    )

    @contextmanager
    def watch(self, student: ViT) -> Iterator[list[Any]]:
        """Record what the term needs of the student's forward inside this context, for :meth:`loss`."""
        blocks = self._chosen(student)
        if self.term.on_maps and not self.teacher_forced:
            with record_inputs([block.attn.operator for block in blocks]) as seen:
                yield seen
        else:
            with record_outputs([block.attn for block in blocks]) as seen:
                yield seen

    def loss(self, seen: list[Any], student: ViT, images: Tensor, grid: Grid, progress: float = 0.0) -> Tensor:
        """lambda(progress) * L_distill, a float32 scalar.

        Args:
            seen: what :meth:`watch` recorded while the student saw ``images``.
            images: (B, 3, H, W), as the student saw them.
            grid: the student's token grid for these images.
            progress: share of training done, 0..1, for the schedule.
        """
        total = torch.stack(self.block_terms(seen, student, images, grid)).sum()
        if self.block_reduction == "mean":
            total = total / len(self.blocks)
        return self.weight * self._schedule(progress) * total

    def block_terms(self, seen: list[Any], student: ViT, images: Tensor, grid: Grid) -> list[Tensor]:
        """The term of every chosen block, float32 scalars; arguments as for :meth:`loss`."""
        with torch.no_grad():
            block_inputs, outputs, operator_inputs, teacher_grid = self._run_teacher(images)
        if self.teacher_forced:
            seen = self._forced(student, block_inputs, grid)
        terms = []
        with torch.autocast(images.device.type, enabled=False):
            for place, (block, teacher_block) in enumerate(zip(self._chosen(student), self._chosen(self.teacher))):
                if self.term.on_maps:
                    mine = block.attn.operator.attention_matrix(seen[place])
                    target = teacher_block.attn.operator.attention_matrix(operator_inputs[place])
                    assert mine is not None and target is not None  # check_student saw to it
                    mine, target = self._common_map(mine, target, student, grid, teacher_grid)
                else:
                    mine, target = self._common_tokens(seen[place], outputs[place], student, grid, teacher_grid)
                terms.append(self.term.compare(mine.float(), target.float()))
        return terms

    def _chosen(self, vit: ViT) -> list[Block]:
        return [vit.blocks[i] for i in self.blocks]  # type: ignore[misc]

    def _run_teacher(self, images: Tensor) -> tuple[list[Any], list[Any], list[Any], Grid]:
        """Block inputs, attention outputs and operator inputs of the chosen blocks, and the grid."""
        teacher = self.teacher
        if next(teacher.parameters()).device != images.device:
            teacher.to(images.device)
        chosen = self._chosen(teacher)
        # What is recorded stays alive until the loss: record only what the term reads.
        with (
            record_inputs(chosen if self.teacher_forced else []) as block_inputs,
            record_outputs([b.attn for b in chosen]) as outputs,
            record_inputs([b.attn.operator for b in chosen] if self.term.on_maps else []) as operator_inputs,
        ):
            tokens, grid = teacher.embed(images if self.pixels is None else self.pixels(images))
            last = self.blocks[-1]
            for block in teacher.blocks[:last]:
                tokens = block(tokens, grid, teacher.prefix)
            if self.teacher_forced:
                block_inputs[-1] = tokens
            final = chosen[-1]
            final.attn(final.norm1(tokens), grid, teacher.prefix)
        return block_inputs, outputs, operator_inputs, grid

    def _forced(self, student: ViT, block_inputs: list[Tensor], grid: Grid) -> list[Any]:
        """The student's attention on the teacher's block inputs: outputs, or operator inputs for map terms."""
        theirs, mine = self.teacher.prefix, student.prefix
        seen = []
        for block, tokens in zip(self._chosen(student), block_inputs, strict=True):
            if tokens.shape[1] - theirs != grid.tokens or mine > theirs:
                raise DistillError("inputs='teacher' needs a teacher with the student's token grid and prefix tokens")
            tokens = torch.cat([tokens[:, :mine], tokens[:, theirs:]], 1)
            x = block.norm1(tokens)
            seen.append(block.attn.inputs(x, grid, mine) if self.term.on_maps else block.attn(x, grid, mine))
        return seen

    def _common_tokens(
        self, mine: Tensor, target: Tensor, student: ViT, grid: Grid, teacher_grid: Grid
    ) -> tuple[Tensor, Tensor]:
        """Tokens that both have, (B, N', C) each; the teacher's patches are resampled to the student's grid."""
        patches = target[:, self.teacher.prefix :]
        if teacher_grid != grid:
            maps = patches.transpose(1, 2).unflatten(2, tuple(teacher_grid)).float()
            patches = F.interpolate(maps, size=tuple(grid), mode="bilinear", align_corners=False).flatten(2).mT
        if not self._class_token_counts(student):
            return mine[:, student.prefix :], patches
        if self.teacher.prefix > 1 or teacher_grid != grid:
            target = torch.cat([target[:, :1].to(patches), patches], 1)
        return _without_registers(mine, student.prefix, 1), target

    def _common_map(
        self, mine: Tensor, target: Tensor, student: ViT, grid: Grid, teacher_grid: Grid
    ) -> tuple[Tensor, Tensor]:
        """Queries and keys that both have, (B, heads, N', N') each; teacher rows are normalised again."""
        if teacher_grid != grid:
            raise DistillError(
                f"{self.term_name} compares maps token by token: the student's grid is {tuple(grid)}, the teacher's "
                f"{tuple(teacher_grid)}; use equal patch sizes or an output term"
            )
        ours, theirs = student.prefix, self.teacher.prefix
        if self._class_token_counts(student):
            for axis in (-2, -1):
                mine = _without_registers(mine, ours, axis)
                target = _without_registers(target, theirs, axis)
        else:
            mine, target = mine[..., ours:, ours:], target[..., theirs:, theirs:]
        return mine, target / target.sum(-1, keepdim=True)

    def _class_token_counts(self, student: ViT) -> bool:
        both = student.cls_token is not None and self.teacher.cls_token is not None
        return both and self.tokens == "common"

    def _schedule(self, progress: float) -> float:
        if self.schedule == "cosine":
            return 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
        if self.schedule == "warmup":
            return min(1.0, progress / WARM_UP)
        return 1.0


def _without_registers(tokens: Tensor, prefix: int, axis: int) -> Tensor:
    """Drop the prefix tokens after the class token on ``axis``; no copy where there are none."""
    if prefix == 1:
        return tokens
    length = tokens.shape[axis]
    return torch.cat([tokens.narrow(axis, 0, 1), tokens.narrow(axis, prefix, length - prefix)], axis)
