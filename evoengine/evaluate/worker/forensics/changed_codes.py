"""Codes of few bits, in integers or eight-bit floats, that are cut off, wrapped or lose bits."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from evoengine.evaluate.worker.forensics.changed_input import Change, ChangedInputs, one_input

E4M3_LARGEST = (240.0, 224.0, 256.0)  # of other formats of eight bits, and of halves of the range
SMALLEST_NORMAL = {"float8_e4m3fn": 2.0**-6, "float8_e5m2": 2.0**-14}


def changed_codes(name: str, value: torch.Tensor) -> Iterator[ChangedInputs]:
    """The changes of an input whose values are codes."""
    if value.dtype in (torch.int8, torch.uint8):
        changes = _integers(int(value.min()), int(value.max()))
    elif str(value.dtype).removeprefix("torch.") in SMALLEST_NORMAL:
        changes = _floats(SMALLEST_NORMAL[str(value.dtype).removeprefix("torch.")])
    else:
        return
    for mistake, change in changes:
        yield one_input(name, f"{name}, {mistake}", change, 1.0, f"{name}: {mistake}")


def _integers(least: int, most: int) -> Iterator[tuple[str, Change]]:
    ends = sorted({most - 1, *(end for end in (7, 15, 31, 63, 126, 127) if end < most)})
    for end in ends[::-1]:
        yield (
            f"codes beyond {end} are clamped (saturate, cut off) at {end}",
            lambda x, e=end: x.int().clamp(-e - 1 if least < 0 else 0, e),  # type: ignore[misc]
        )
        yield (
            f"codes beyond -{end} and {end} are clamped (saturate, cut off) there, both ends alike",
            lambda x, e=end: x.int().clamp(-e if least < 0 else 0, e),  # type: ignore[misc]
        )
        size = 2 * (end + 1)
        if size & (size - 1) == 0:
            yield (
                f"codes beyond {end} wrap around (overflow) to -{end + 1}: only"
                f" {size.bit_length() - 1} bits are kept",
                lambda x, e=end, s=size: (x.int() + e + 1) % s - e - 1,  # type: ignore[misc]
            )
            yield (
                f"only the lower {size.bit_length() - 1} bits of the codes are kept, without sign",
                lambda x, s=size: x.int() % s,  # type: ignore[misc]
            )
    yield (
        f"the largest code, {most}, wraps around (overflows) to {least}",
        lambda x: torch.where(x == most, least, x.int()),
    )
    yield (
        f"the smallest code, {least}, is taken as {least + 1}",
        lambda x: x.int().clamp(min=least + 1),
    )
    yield ("the sign of the codes is lost", lambda x: x.int().abs())
    yield ("the codes have the wrong sign", lambda x: -x.int())
    yield ("the lowest bit of the codes is lost", lambda x: x.int() // 2 * 2)
    yield (
        "the two four-bit halves (nibbles) of each code are swapped",
        lambda x: (x.int() % 256) // 16 + (x.int() % 16) * 16 - 256 * ((x.int() % 16) > 7).int(),
    )
    for zero in (128, 8, 64, 1):
        for sign in (1, -1):
            yield (
                f"{'' if sign > 0 else '-'}{zero} is added to the codes: a wrong zero point, or a"
                " zero point that is not subtracted",
                lambda x, z=zero * sign: x.int() + z,  # type: ignore[misc]
            )


def _floats(smallest: float) -> Iterator[tuple[str, Change]]:
    for largest in E4M3_LARGEST:
        yield (
            f"values beyond {largest:g} are clamped (saturate)",
            lambda x, m=largest: x.float().clamp(-m, m),  # type: ignore[misc]
        )
    yield (
        "small values (subnormal) are flushed to zero",
        lambda x: torch.where(x.float().abs() < smallest, 0.0, x.float()),
    )
    yield ("the sign of the values is lost", lambda x: x.float().abs())
