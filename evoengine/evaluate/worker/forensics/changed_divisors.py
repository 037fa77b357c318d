"""Means and quotients that divide by another number of the case than they should."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_reductions import count, names_of, together
from evoengine.evaluate.worker.forensics.changed_step import ChangedStep, Instead, change
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep


def other_divisors(
    steps: Sequence[ReferenceStep], numbers: Mapping[str, int]
) -> Iterator[ChangedStep]:
    """Every mean by itself and all together, then quotients by plain numbers. `numbers` are extents
    of the case and of the candidate's plan by name.
    """
    means = tuple(step for step in steps if step.name in ("mean", "var"))
    for group in dict.fromkeys([means, *((step,) for step in means)]):
        for name, number in numbers.items():
            if group:
                yield together(
                    group,
                    f"with {names_of(group)} divided by {name}, {number}",
                    _over(number),
                    f"{names_of(group)} {'is' if len(group) == 1 else 'are'} divided by the wrong"
                    f" number: by {name} ({number}) in place of the count of elements",
                )
    for step in steps:
        if step.name == "div":
            named = step.operand(1) or "its divisor"
            for words, other in (
                (f"twice {named}", lambda divisor: 2 * divisor),
                (f"half of {named}", lambda divisor: divisor / 2),
                (_one_off(named, 1), lambda divisor: divisor + 1),
                (_one_off(named, -1), lambda divisor: divisor - 1),
            ):
                yield change(
                    step,
                    f"with {words} as divisor in {step.words}",
                    _with_other(other),
                    1.0,
                    f"{step.result} is divided by the wrong number: by {words} in place of {named}",
                )
            for name, number in numbers.items():
                yield change(
                    step,
                    f"with {name}, {number}, as divisor in {step.words}",
                    _with_divisor(number),
                    1.0,
                    f"{step.result} is divided by the wrong number: by {name} ({number}) in place"
                    f" of {step.operand(1) or 'its divisor'}",
                )


def _over(number: int) -> Instead:
    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        terms = count(args, kwargs)
        if terms == number:
            raise ValueError("no change")
        return func(*args, **kwargs) * (terms / number)

    return instead


def _one_off(named: str, more: int) -> str:
    """`128`, where 127 is meant and the divisor is one more; `N - 1`."""
    if named.isdigit():
        return str(int(named) + more)
    return f"{named} {'+' if more > 0 else '-'} 1"


def _with_other(other: Callable[[float], float]) -> Instead:
    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        if not isinstance(args[1], int | float) or args[1] in (0, 1, -1):
            raise ValueError("no plain divisor")
        return func(args[0], other(args[1]), *args[2:], **kwargs)

    return instead


def _with_divisor(number: int) -> Instead:
    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        is_plain = isinstance(args[1], int | float) and args[1] != number
        if not is_plain and not _are_counts(args[1]):
            raise ValueError("no plain divisor")
        return func(args[0], number, *args[2:], **kwargs)

    return instead


def _are_counts(divisor: Any) -> bool:
    """Whether a divisor counts something that differs, such as the tokens that a mask keeps."""
    return (
        isinstance(divisor, torch.Tensor)
        and not divisor.is_floating_point()
        and not divisor.is_complex()
        and divisor.dtype is not torch.bool
    )
