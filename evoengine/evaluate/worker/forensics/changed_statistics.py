"""Statistics that are used for another row than they are taken of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_reductions import (
    groups_of,
    names_of,
    of_tensor,
    together,
)
from evoengine.evaluate.worker.forensics.changed_step import MOST_TILES, ChangedStep, Instead
from evoengine.evaluate.worker.forensics.reference_steps import (
    Place,
    ReferenceStep,
    SeenTensor,
    StepRecorder,
)
from evoengine.records import DiagnosisKind

ROW_TILES = (2, 4, 8, 16, 32)


def of_other_rows(
    steps: Sequence[ReferenceStep], recorder: StepRecorder, tiles: Sequence[int]
) -> Iterator[ChangedStep]:
    """What is reduced for one row used for another: all reductions together, then each alone."""
    yield from _used_at_last(steps, recorder)
    for group in groups_of(steps):
        names = names_of(group)
        verb = "are" if len(group) > 1 else "is"
        for shift, which in ((-1, "next"), (1, "previous")):
            yield together(
                group,
                f"with {names} of the {which} row",
                of_tensor(lambda found, s=shift: found.roll(s, _row_axis(found))),  # type: ignore[misc]
                f"{names} {verb} taken from the {which} row",
                1.02,
            )
        for size in dict.fromkeys((*ROW_TILES, *tiles[:MOST_TILES])):
            yield together(
                group,
                f"with {names} of the first row of every {size}",
                of_tensor(lambda found, t=size: _first_of(found, t)),  # type: ignore[misc]
                f"{names} {verb} taken from another row, the first row of every {size}",
                1.01,
            )
        yield together(
            group,
            f"with {names} of the first row for all rows",
            of_tensor(lambda found: found * 0 + found.narrow(_row_axis(found), 0, 1)),
            f"{names} {verb} taken from the first row for all rows",
        )
        yield together(
            group,
            f"with {names} over the whole in place of one row",
            _over_all,
            f"{names} {verb} taken over all rows together",
            0.99,
        )


def _used_at_last(steps: Sequence[ReferenceStep], recorder: StepRecorder) -> Iterator[ChangedStep]:
    """Where one statistic enters another, as a mean does a variance, both of one row are right and
    only what is made with them takes another row's.
    """
    group = next(iter(groups_of(steps)), ())
    made = {one.place: one.identity for one in recorder.results}
    statistics = {made[step.place] for step in group if step.place in made}

    def enters_another(use: SeenTensor) -> bool:
        result = made.get(use.place)
        return result is None or any(
            recorder.is_made_from(one, result) or one == result for one in statistics
        )

    uses = [one for one in recorder.operands if one.identity in statistics]
    last = [one for one in uses if not enters_another(one)]
    if len(last) == len(uses) or not last:
        return
    names = names_of(group)
    for shift, which in ((-1, "next"), (1, "previous")):
        numbers: dict[Place, list[int]] = {}
        for one in last:
            numbers.setdefault(one.place, []).append(one.number)
        yield ChangedStep(
            DiagnosisKind.changed_step,
            f"with {names} of the {which} row where they are used at last",
            {place: _rolled(own, shift) for place, own in numbers.items()},
            1.02,
            mistake=f"{names} are taken from the {which} row",
        )


def _rolled(numbers: Sequence[int], shift: int) -> Instead:
    def instead(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        given = list(args)
        for number in numbers:
            given[number] = given[number].roll(shift, _row_axis(given[number]))
        return func(*given, **kwargs)

    return instead


def _row_axis(found: torch.Tensor) -> int:
    """The last axis of a reduced tensor that has rows."""
    axes = [axis for axis in range(found.dim()) if found.shape[axis] > 1]
    return axes[-1] if axes else 0


def _first_of(found: torch.Tensor, tile: int) -> torch.Tensor:
    axis = _row_axis(found)
    at = torch.arange(found.shape[axis], device=found.device)
    return found.index_select(axis, at // tile * tile)


def _over_all(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
    found = func(*args, **kwargs)
    name = getattr(func, "__name__", "")
    if not isinstance(found, torch.Tensor) or name not in ("amax", "amin", "mean", "sum"):
        raise ValueError("not a plain reduction")
    of_all: Mapping[str, Any] = {
        "amax": found.amax,
        "amin": found.amin,
        "mean": found.mean,
        "sum": found.sum,
    }
    whole = of_all[name]()
    return whole.expand_as(found).clone()
