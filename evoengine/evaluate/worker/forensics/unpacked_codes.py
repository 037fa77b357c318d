"""Codes of a few bits that a step unpacks from a byte or a word: their sign, offset and half."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_step import ChangedStep
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep
from evoengine.records import DiagnosisKind

UNPACKING = {"__and__", "bitwise_and", "__rshift__", "bitwise_right_shift"}
BITS = (4, 2, 3)
# What is left in a code where a constant is not taken off: zero points, and the exponents with
# which codes are put into the bits of a half (1024), divided by 16 (64), or one taken for the
# other.
OFFSETS = (1024, 64, 960, 8, 1, 128, 1032, 72, 16)


def unpacked_codes(steps: Sequence[ReferenceStep]) -> Iterator[ChangedStep]:
    """Changes of all unpacking steps together, then of each alone."""
    unpacking = [step for step in steps if step.name in UNPACKING]
    groups = [unpacking] if len(unpacking) > 1 else []
    groups += [[step] for step in unpacking]
    for group in groups:
        where = " and ".join(f"`{step.source.text}`" for step in group)
        which = "the codes" if len(group) == len(unpacking) else f"the codes of {where}"
        for bits in BITS:
            size = 1 << bits
            yield _all(
                group,
                f"with {which} of {bits} bits taken as signed in {group[0].words}",
                f"{which} are sign-extended, taken as signed: from {size // 2} on they become"
                f" negative, {size} too small",
                lambda found, s=size: torch.where(found % s >= s // 2, found - s, found),
            )
        for offset in OFFSETS:
            for sign, side in ((-1, "too small"), (1, "too large")):
                yield _all(
                    group,
                    f"with {which} {offset} {side} in {group[0].words}",
                    f"{which} (weights) are {offset} {side}: a wrong constant is subtracted from"
                    " them, as a zero point or the offset of a conversion",
                    lambda found, o=sign * offset: found + o,
                )
    if len(unpacking) == 2:
        first, second = unpacking
        yield ChangedStep(
            DiagnosisKind.changed_step,
            f"with `{first.source.text}` and `{second.source.text}` exchanged in {first.words}",
            {first.place: _higher, second.place: _lower},
            1.01,
            mistake="the low and the high bits (nibbles, even and odd codes) are swapped",
        )


def _all(group: Sequence[ReferenceStep], words: str, mistake: str, to: Any) -> ChangedStep:
    """Every step of a group followed by the same change of its integers."""
    instead = {step.place: _followed(to) for step in group}
    weight = 1.02 if len(group) > 1 else 1.01
    return ChangedStep(DiagnosisKind.changed_step, words, instead, weight, mistake=mistake)


def _followed(to: Any) -> Any:
    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        found = func(*args, **kwargs)
        if not isinstance(found, torch.Tensor) or found.dtype is torch.bool:
            return found  # a condition, no code
        return to(found.long())

    return instead


def _higher(_func: Any, args: tuple[Any, ...], _kwargs: Any) -> Any:
    return args[0].long() >> 4 & 15


def _lower(_func: Any, args: tuple[Any, ...], _kwargs: Any) -> Any:
    return args[0].long() & 15
