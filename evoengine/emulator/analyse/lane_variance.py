"""The shapes that a register's value over the lanes of a warp can have.

UNIFORM (one value for the warp), a Ramp (base + stride x lane, with a known stride), VARYING: from
the best to the worst. A better shape makes faster code: one scalar instruction instead of a
vector's, one plain vector access instead of 32 scattered ones.
"""

from __future__ import annotations

from dataclasses import dataclass

WARP = 32
PER_LANE = frozenset(
    (
        "%laneid",
        "%lanemask_eq",
        "%lanemask_le",
        "%lanemask_lt",
        "%lanemask_ge",
        "%lanemask_gt",
        "%clock",
        "%clock64",
        "%clock_hi",
    )
)
THREAD = ("%tid.x", "%tid.y", "%tid.z")


@dataclass(frozen=True)
class Ramp:
    """base + stride * lane; `even` when base is known to be a multiple of 32 strides (tid.x of a
    warp).
    """

    stride: int
    even: bool = False
    thread: bool = False  # it is threadIdx.x itself


class _Uniform:
    def __repr__(self) -> str:
        return "UNIFORM"


class _Varying:
    def __repr__(self) -> str:
        return "VARYING"


UNIFORM, VARYING = _Uniform(), _Varying()
Shape = _Uniform | _Varying | Ramp


def meet(a: Shape, b: Shape) -> Shape:
    """The best shape that holds for both of two values that a register may have."""
    if a == b:
        return a
    if isinstance(a, Ramp) and isinstance(b, Ramp) and a.stride == b.stride:
        return Ramp(a.stride, a.even and b.even)
    return VARYING


def special_shape(name: str, block: tuple[int, int, int]) -> Shape:
    """The shape of a special register in thread blocks of `block` = (x, y, z) threads."""
    if name in THREAD:
        return thread_shape(name, block)
    if name == "%laneid":
        return Ramp(1, even=True)
    return VARYING if name in PER_LANE else UNIFORM


def thread_shape(name: str, block: tuple[int, int, int]) -> Shape:
    """The shape of a component of threadIdx: warps are cut from threads numbered by x, then y, then
    z.
    """
    x, y, z = block
    if name == "%tid.x":
        return Ramp(1, even=True, thread=True) if x % WARP == 0 or y * z == 1 else VARYING
    if (name == "%tid.y" and y == 1) or (name == "%tid.z" and z == 1):
        return UNIFORM
    period = x if name == "%tid.y" else x * y  # threads that share it
    return UNIFORM if period % WARP == 0 else VARYING
