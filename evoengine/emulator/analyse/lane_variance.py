"""How the value of a register varies over the lanes of a warp.

UNIFORM (one value for the warp), Affine (base + stride x lane, with a known stride), VARYING: from
the best to the worst. UNIFORM takes one scalar instruction instead of a vector instruction, Affine
one contiguous vector access instead of 32 scattered ones.
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
class Affine:
    """base + stride * lane; `aligned` if base is known to be a multiple of 32 strides, as in
    tid.x.
    """

    stride: int
    aligned: bool = False
    is_thread_x: bool = False  # it is threadIdx.x itself


class _Uniform:
    def __repr__(self) -> str:
        return "UNIFORM"


class _Varying:
    def __repr__(self) -> str:
        return "VARYING"


UNIFORM, VARYING = _Uniform(), _Varying()
Variance = _Uniform | _Varying | Affine


def meet(a: Variance, b: Variance) -> Variance:
    """The best variance that holds for both of two values of a register (lattice meet)."""
    if a == b:
        return a
    if isinstance(a, Affine) and isinstance(b, Affine) and a.stride == b.stride:
        return Affine(a.stride, a.aligned and b.aligned)
    return VARYING


def special_register_variance(name: str, block: tuple[int, int, int]) -> Variance:
    """The variance of a special register in thread blocks of `block` = (x, y, z) threads."""
    if name in THREAD:
        return thread_index_variance(name, block)
    if name == "%laneid":
        return Affine(1, aligned=True)
    return VARYING if name in PER_LANE else UNIFORM


def thread_index_variance(name: str, block: tuple[int, int, int]) -> Variance:
    """The variance of a component of threadIdx: threads are numbered by x, then y, then z, 32 a
    warp.
    """
    x, y, z = block
    if name == "%tid.x":
        return Affine(1, aligned=True, is_thread_x=True) if x % WARP == 0 or y * z == 1 else VARYING
    if (name == "%tid.y" and y == 1) or (name == "%tid.z" and z == 1):
        return UNIFORM
    period = x if name == "%tid.y" else x * y  # threads that share it
    return UNIFORM if period % WARP == 0 else VARYING
