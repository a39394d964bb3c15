"""What a cell will cost: estimates from counted operations and an assumed speed, not measurements."""

from typing import NamedTuple

from lvit_dense.experiment.cell import Cell

SUSTAINED = 60e12  # floating point operations per second and GPU, assumed (mixed precision)
BACKWARD = 3  # forward and backward cost three forward passes
TEACHER = 1  # one more forward pass

# Base, relu: multiply-adds of one forward pass as tools/get_flops.py counts them (224, 800x1333, 512x512 pixels),
# pictures of the whole schedule, parameters, checkpoints kept (the last two, and the best of the ImageNet stage)
GMACS = {"imagenet": 16.9, "maskrcnn": 614.3, "upernet": 323.6}
PICTURES = {"imagenet": 300 * 1_281_167, "maskrcnn": 12 * 117_266, "upernet": 160_000 * 16}
MILLIONS = {"imagenet": 86.6, "maskrcnn": 113.6, "upernet": 127.0}
KEPT = {"imagenet": 3, "maskrcnn": 2, "upernet": 2}


class Cost(NamedTuple):
    """GPU hours and GB on disk."""

    hours: float
    gigabytes: float


def expected_cost(cell: Cell) -> Cost | None:
    """The estimate for a Base cell on the full data; None for another size."""
    if cell.size != "base":
        return None
    passes = BACKWARD + TEACHER * cell.distill * (cell.task == "imagenet")
    operations = 2e9 * GMACS[cell.task] * passes * PICTURES[cell.task]
    # weights and AdamW's two moments in float32
    return Cost(operations / SUSTAINED / 3600, KEPT[cell.task] * MILLIONS[cell.task] * 12 / 1000)
