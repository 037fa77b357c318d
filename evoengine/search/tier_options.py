"""The tiers that a run searches, from `--tier NAME[=SHARE]`."""

from __future__ import annotations

from collections.abc import Sequence

from evoengine.errors import UsageError, hint
from evoengine.task.schema import Task, adds_up_to_1

EXPECTED = "expected NAME or NAME=SHARE with a share above 0, at most 1, e.g. fp16 or fp8=0.25"


def tiers_from(options: Sequence[str], task: Task) -> dict[str, float]:
    """Tier -> its share of the trials; empty without options, and tiers without an option are not
    searched. Those without a share have what the others leave, in equal parts. Raises UsageError.
    """
    given = [_given(option, task) for option in options]
    names = [name for name, _ in given]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"--tier {name}: given {names.count(name)} times; expected once")
    stated = [share for _, share in given if share is not None]
    total = sum(stated)
    if len(stated) == len(given):
        if given and not adds_up_to_1(stated):
            raise UsageError(f"--tier: the shares add up to {total:g}, expected 1")
        rest = 0.0
    else:
        rest = (1 - total) / (len(given) - len(stated))
        if rest <= 0:
            raise UsageError(f"--tier: the shares add up to {total:g} and leave none for the rest")
    return {name: rest if share is None else share for name, share in given}


def _given(option: str, task: Task) -> tuple[str, float | None]:
    """The tier and the share of one option."""
    name, equals, text = option.partition("=")
    if name not in task.tiers:
        raise UsageError(f"--tier {option}: no tier {name!r}{hint(name, task.tiers)}")
    if not equals:
        return name, None
    try:
        share = float(text)
    except ValueError:
        raise UsageError(f"--tier {option}: {EXPECTED}") from None
    if not 0 < share <= 1:
        raise UsageError(f"--tier {option}: {EXPECTED}")
    return name, share
