"""Where queries look in a teacher and in its student, block by block, and how far apart their attention outputs are."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from PIL import Image
from timm.data import create_transform
from torch import Tensor

from lvit_dense.distill import Distiller
from lvit_dense.distill.taps import record_inputs
from lvit_dense.operators import AttentionOperator, Grid
from lvit_dense.transfer import Source, build_teacher, pixel_change
from lvit_dense.transfer.canonical import IMAGENET_MEAN, IMAGENET_STD
from lvit_dense.vit import ViT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKS = ("#00e5ff", "#ff3df2", "#b4ff39", "#ff9100")  # one colour per query


@dataclass(frozen=True)
class Routing:
    """Both models on one picture.

    Attributes:
        picture: (H, W, 3) uint8 as both saw it.
        grid: the student's token grid.
        teacher, student: per chosen block (queries, h, w), the map over patches averaged over heads; None where the
            block's operator has none.
        errors: per block of the whole depth, squared error of the attention output over the teacher's squared norm,
            averaged over tokens.
    """

    picture: np.ndarray
    grid: Grid
    queries: Sequence[tuple[int, int]]
    blocks: Sequence[int]
    teacher: list[Tensor | None]
    student: list[Tensor | None]
    operators: tuple[str, str]
    errors: list[float]


def compare(
    file: Path,
    teacher: Source,
    student: Source,
    img_size: int | None = None,
    queries: Sequence[tuple[int, int]] | None = None,
    blocks: Sequence[int] | None = None,
) -> Routing:
    """Run a teacher and a student on one picture.

    Args:
        img_size: side in pixels to which the picture is resized and cropped; default: the student's own.
        queries: (row, column) in tokens of the student's grid; default: two of them, off the centre.
        blocks: 0-based; default: the last of each quarter.

    Raises:
        ValueError: a query or block that does not exist, or models of different width or depth.
    """
    f = student.facts
    side = img_size or f.grid.height * f.patch_size
    theirs = -(-side // teacher.facts.patch_size) * teacher.facts.patch_size
    models = build_teacher(teacher, img_size=theirs), build_teacher(student, img_size=side)
    statistics = (f.pixel_mean or IMAGENET_MEAN, f.pixel_std or IMAGENET_STD)
    distiller = Distiller(models[0], term="output_nmse", pixels=pixel_change(teacher.facts, *statistics))
    distiller.check_student(models[1])
    grid = models[1].grid
    queries = _checked_queries(queries, grid)
    blocks = _checked_blocks(blocks, f.depth)
    picture, images = _load(file, side, *statistics)
    with torch.no_grad():
        with distiller.watch(models[1]) as seen:
            models[1](images)
        errors = [float(error) for error in distiller.block_terms(seen, models[1], images, grid)]
        pictures = images if distiller.pixels is None else distiller.pixels(images)
        maps = [
            _maps(model, given, _scaled(queries, grid, model.grid), blocks)
            for model, given in zip(models, (pictures, images))
        ]
    names = tuple(_operator_name(source) for source in (teacher, student))
    return Routing(picture, grid, queries, blocks, maps[0], maps[1], (names[0], names[1]), errors)


def _maps(model: ViT, images: Tensor, queries: Sequence[tuple[int, int]], blocks: Sequence[int]) -> list[Tensor | None]:
    """Rows of the queries over patches, (queries, h, w) per block."""
    operators: list[AttentionOperator] = [model.blocks[i].attn.operator for i in blocks]  # type: ignore[union-attr, misc]
    with record_inputs(operators) as inputs:
        grid = model(images).grid
    rows = [model.prefix + r * grid.width + c for r, c in queries]
    found = []
    for operator, given in zip(operators, inputs):
        matrix = operator.attention_matrix(given)
        found.append(None if matrix is None else matrix[0][:, rows, model.prefix :].mean(0).unflatten(1, tuple(grid)))
    return found


def _load(file: Path, side: int, mean: tuple[float, ...], std: tuple[float, ...]) -> tuple[np.ndarray, Tensor]:
    """The picture as pixels and as a normalised batch of one."""
    change = create_transform(side, is_training=False, crop_pct=1.0, mean=mean, std=std)
    with Image.open(file) as image:
        images = change(image.convert("RGB"))[None]
    spread, centre = (torch.tensor(values).reshape(3, 1, 1) for values in (std, mean))
    pixels = (images[0] * spread + centre).clamp(0, 1).permute(1, 2, 0)
    return (pixels * 255).round().byte().numpy(), images


def _checked_queries(queries: Sequence[tuple[int, int]] | None, grid: Grid) -> list[tuple[int, int]]:
    if queries is None:
        return [(grid.height // 4, grid.width // 4), (3 * grid.height // 5, 3 * grid.width // 5)]
    outside = [(r, c) for r, c in queries if not (0 <= r < grid.height and 0 <= c < grid.width)]
    if outside or not queries or len(queries) > len(MARKS):
        raise ValueError(
            f"queries are 1 to {len(MARKS)} tokens row,column of the student's {grid.height}x{grid.width} grid, got "
            f"{' '.join(f'{r},{c}' for r, c in queries)}"
        )
    return list(queries)


def _checked_blocks(blocks: Sequence[int] | None, depth: int) -> list[int]:
    chosen = sorted({-(-depth * quarter // 4) - 1 for quarter in (1, 2, 3, 4)}) if blocks is None else sorted({*blocks})
    if not chosen or chosen[0] < 0 or chosen[-1] >= depth:
        raise ValueError(f"blocks are some of 0..{depth - 1}, got {' '.join(map(str, blocks or ()))}")
    return chosen


def _scaled(queries: Sequence[tuple[int, int]], old: Grid, new: Grid) -> list[tuple[int, int]]:
    """The tokens of another grid that hold the centres of these."""
    return [(int((r + 0.5) * new.height / old.height), int((c + 0.5) * new.width / old.width)) for r, c in queries]


def _operator_name(source: Source) -> str:
    spec = source.facts.operator
    return spec if isinstance(spec, str) else spec["type"] if isinstance(spec, dict) else "mixed"


def draw(routing: Routing, file: Path) -> None:
    """Write a PNG: the picture with its queries, the error curve, and below a row of maps per block."""
    from matplotlib.figure import Figure

    count, rows = len(routing.queries), len(routing.blocks)
    figure = Figure(figsize=(max(6.4, 1.7 * 2 * count), 2.4 + 1.65 * rows), layout="constrained")
    top, below = figure.subfigures(2, 1, height_ratios=[2.4, 1.65 * rows], squeeze=False)[:, 0]
    picture, curve = top.subplots(1, 2, width_ratios=[1, 2])
    picture.imshow(routing.picture)
    height, width = routing.picture.shape[0] / routing.grid.height, routing.picture.shape[1] / routing.grid.width
    for (r, c), colour in zip(routing.queries, MARKS):
        picture.plot((c + 0.5) * width, (r + 0.5) * height, "s", mec=colour, mfc="none", mew=2, ms=9)
    picture.axis("off")
    curve.plot(range(len(routing.errors)), routing.errors, "o-", color="#2a6fdb")
    curve.set(title="error of the attention output / teacher's norm", xlabel="block", ylim=(0, None))
    curve.title.set_fontsize(9)
    curve.spines[["top", "right"]].set_visible(False)
    axes = below.subplots(rows, 2 * count, squeeze=False)
    for line, block, theirs, ours in zip(axes, routing.blocks, routing.teacher, routing.student):
        for place, axis in enumerate(line):
            query, model = divmod(place, 2)
            _draw_map(axis, ours if model else theirs, query, routing.operators[model])
            if block == routing.blocks[0]:
                axis.set_title(f"{'student' if model else 'teacher'}: {routing.operators[model]}", fontsize=8)
        line[0].set_ylabel(f"block {block}", fontsize=8)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=100)


def _draw_map(axis: "Axes", rows: Tensor | None, query: int, operator: str) -> None:
    """One map from 0 to its maximum, framed in the query's colour; a text where there is none."""
    axis.set_xticks([])
    axis.set_yticks([])
    axis.spines[:].set(color=MARKS[query], linewidth=2)
    if rows is None:
        axis.set_box_aspect(1)
        axis.text(0.5, 0.5, f"{operator} has\nno map", ha="center", va="center", fontsize=8, transform=axis.transAxes)
    else:
        axis.imshow(rows[query], cmap="magma", vmin=min(0.0, float(rows[query].min())))
