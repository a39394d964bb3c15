"""How one demo picture is drawn: textured shapes over a textured ground, with the exact mask of every shape.

Pixels are the same on every machine: all randomness comes from ``Generator.random`` of PCG64 (never from numpy's
global state), and the arithmetic uses only operations that IEEE 754 rounds exactly (no sin, cos, exp in the arrays;
directions are rounded to six digits before use).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
Mask = NDArray[np.bool_]


class Dice:
    """Random choices of one picture, a function of ``key`` alone.

    Args:
        key: non-negative integers, such as seed, split and index of the picture.
    """

    def __init__(self, *key: int) -> None:
        self._generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(key)))

    def between(self, low: float, high: float) -> float:
        """A number in [low, high)."""
        return low + (high - low) * float(self._generator.random())

    def below(self, count: int) -> int:
        """An integer in 0..count-1."""
        return int(count * self._generator.random())

    def field(self, *shape: int) -> Array:
        """Independent numbers in [0, 1)."""
        return self._generator.random(shape, dtype=np.float32)

    def direction(self, most: float = 180.0) -> tuple[float, float]:
        """A unit vector at most ``most`` degrees from the first axis."""
        return direction(self.between(-most, most))


def direction(degrees: float) -> tuple[float, float]:
    """``(cos, sin)``, rounded to six digits so that libm's last one cannot matter."""
    return round(math.cos(math.radians(degrees)), 6), round(math.sin(math.radians(degrees)), 6)


def _ramp(length: int) -> Array:
    """0, 1, 2 .. length - 1."""
    return np.arange(length, dtype=np.float32)


def _half_planes(u: Array, v: Array, sides: int, distance: float) -> Array:
    """Signed distances to ``sides`` lines around the origin, (sides, H, W), positive on the origin's side."""
    normals = [direction(90.0 + 360.0 * side / sides) for side in range(sides)]
    return np.stack([distance - (u * x + v * y) for x, y in normals])


def _disc(u: Array, v: Array) -> Array:
    return 1.0 - np.sqrt(u * u + v * v)


def _square(u: Array, v: Array) -> Array:
    return 0.8 - np.maximum(np.abs(u), np.abs(v))


def _triangle(u: Array, v: Array) -> Array:
    return _half_planes(u, v, 3, 0.55).min(0)


def _ring(u: Array, v: Array) -> Array:
    radius = np.sqrt(u * u + v * v)
    return np.minimum(1.0 - radius, radius - 0.55)


def _star(u: Array, v: Array) -> Array:
    """A pentagram is where at most one of five half planes is left: the second smallest distance."""
    return np.sort(_half_planes(u, v, 5, 0.42), 0)[1]


def _cross(u: Array, v: Array) -> Array:
    u, v = np.abs(u), np.abs(v)
    return np.maximum(np.minimum(0.34 - u, 1.0 - v), np.minimum(0.34 - v, 1.0 - u))


# Each function is positive inside the shape and grows by about 1 per unit length, where the shape fits the unit circle.
SHAPES: dict[str, Callable[[Array, Array], Array]] = {
    "disc": _disc,
    "square": _square,
    "triangle": _triangle,
    "ring": _ring,
    "star": _star,
    "cross": _cross,
}


@dataclass(frozen=True)
class Placement:
    """Where a shape lies: centre and circumscribed radius in pixels, and its rotation as a unit vector."""

    kind: str
    x: float
    y: float
    radius: float
    turn: tuple[float, float]

    def inside(self, height: int, width: int, shift: float = 0.0) -> Array:
        """Signed distance to the outline in pixels at every pixel centre, (H, W); 0 and above is the shape.

        Args:
            shift: moves the shape right and down by so many pixels (for its shadow).
        """
        x = _ramp(width)[None, :] + (0.5 - self.x - shift)
        y = _ramp(height)[:, None] + (0.5 - self.y - shift)
        cos, sin = self.turn
        u = (x * cos + y * sin) / self.radius
        v = (y * cos - x * sin) / self.radius
        return SHAPES[self.kind](u, v) * self.radius


def _clouds(dice: Dice, height: int, width: int, cell: float) -> Array:
    """Value noise: random numbers on a grid of ``cell`` pixels, interpolated linearly, (H, W) in [0, 1)."""
    lattice = dice.field(int(height / cell) + 2, int(width / cell) + 2)
    y, x = _ramp(height) / cell, _ramp(width) / cell
    top, left = y.astype(int), x.astype(int)
    down, right = (y % 1.0)[:, None], (x % 1.0)[None, :]
    rows = lattice[top] * (1 - down) + lattice[top + 1] * down
    return rows[:, left] * (1 - right) + rows[:, left + 1] * right


def _waves(position: Array, period: float) -> Array:
    """Stripes with soft edges across ``position``, in [0, 1]."""
    phase = position / period
    return np.clip(2.5 * np.abs(2.0 * (phase - np.floor(phase)) - 1.0) - 0.75, 0.0, 1.0)


def pattern(dice: Dice, height: int, width: int) -> Array:
    """One of five textures, (H, W) in [0, 1]: stripes, checks, dots, speckles, or a slope."""
    cos, sin = dice.direction()
    x, y = _ramp(width)[None, :], _ramp(height)[:, None]
    along, across = x * cos + y * sin, y * cos - x * sin
    period = dice.between(5.0, 12.0)
    kind = dice.below(5)
    if kind == 0:
        return _waves(along, period)
    if kind == 1:
        first, second = _waves(along, 1.6 * period), _waves(across, 1.6 * period)
        return first * second + (1 - first) * (1 - second)
    if kind == 2:
        return np.clip(2.0 * _waves(along, period) * _waves(across, period), 0.0, 1.0)
    if kind == 3:
        return _clouds(dice, height, width, 2.5)
    return np.clip(0.5 + along / (height + width), 0.0, 1.0)


def _rgb(hue: float, saturation: float, value: float) -> Array:
    """One colour, (3,) in [0, 1]; hue in turns."""
    wheel = np.abs(6.0 * ((np.array([0.0, 2 / 3, 1 / 3], np.float32) + hue) % 1.0) - 3.0) - 1.0
    return value * (1.0 - saturation * (1.0 - np.clip(wheel, 0.0, 1.0)))


def _mix(share: Array, first: Array, second: Array) -> Array:
    """(H, W) shares of the second colour to a (3, H, W) picture."""
    return first[:, None, None] + share * (second - first)[:, None, None]


def ground(dice: Dice, height: int, width: int) -> Array:
    """A muted, cloudy or patterned ground, (3, H, W) in [0, 1]."""
    hue = dice.between(0.0, 1.0)
    first = _rgb(hue, dice.between(0.1, 0.55), dice.between(0.15, 0.45))
    second = _rgb((hue + dice.between(-0.15, 0.15)) % 1.0, dice.between(0.1, 0.55), dice.between(0.2, 0.55))
    share = 0.6 * _clouds(dice, height, width, dice.between(16.0, 40.0)) + 0.25 * _clouds(dice, height, width, 5.0)
    if dice.below(2):
        share = 0.7 * share + 0.25 * pattern(dice, height, width)
    return _mix(share, first, second)


def _shape_colours(dice: Dice, canvas: Array, inside: Array) -> tuple[Array, Array]:
    """Two colours for a shape, both seen clearly against what lies under it; unrelated to its class."""
    under = canvas[:, inside >= 0].mean(1) if (inside >= 0).any() else canvas.mean((1, 2))
    first = second = under
    for _ in range(20):
        hue = dice.between(0.0, 1.0)
        first = _rgb(hue, dice.between(0.3, 0.85), dice.between(0.75, 1.0))
        second = _rgb((hue + dice.between(-0.2, 0.2)) % 1.0, dice.between(0.2, 0.85), dice.between(0.6, 1.0))
        if min(np.abs(first - under).max(), np.abs(second - under).max()) > 0.35:
            break
    return first, second


def paint(dice: Dice, canvas: Array, place: Placement) -> Mask:
    """Draw a shape over ``canvas`` (3, H, W) in place: soft shadow, texture, dark outline, smooth edge.

    Returns:
        (H, W), the pixels whose centre lies in the shape, which are those where it covers at least one half.
    """
    _, height, width = canvas.shape
    inside = place.inside(height, width)
    first, second = _shape_colours(dice, canvas, inside)
    skin = _mix(pattern(dice, height, width), first, second)
    skin *= 0.55 + 0.45 * np.clip(inside / 1.8 - 0.4, 0.0, 1.0)
    shadow = np.clip(place.inside(height, width, shift=2.0) / 6.0 + 0.5, 0.0, 1.0)
    canvas *= 1.0 - 0.45 * shadow
    cover = np.clip(inside + 0.5, 0.0, 1.0)
    canvas += cover * (skin - canvas)
    return inside >= 0


def develop(dice: Dice, canvas: Array) -> NDArray[np.uint8]:
    """Add a little grain to (3, H, W) and return (H, W, 3) RGB bytes."""
    grain = 0.03 * (dice.field(*canvas.shape) - 0.5)
    planes = (np.clip(canvas + grain, 0.0, 1.0) * 255.0 + 0.5).astype(np.uint8)
    return np.ascontiguousarray(planes.transpose(1, 2, 0))
