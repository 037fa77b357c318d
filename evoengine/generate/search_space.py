"""The configurations of one kernel file: which exist and which can be launched."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from functools import cached_property
from random import Random

from evoengine.candidate.arch import DeviceLimits
from evoengine.candidate.binding import is_valid
from evoengine.candidate.kernel_file import Candidate
from evoengine.candidate.normal_form import normal_digest
from evoengine.task.schema import Task

Point = tuple[int, ...]  # for every tunable, the position of its value among its sorted values

ENUMERATED = 20_000  # a larger space is sampled, because each configuration takes 0.3 ms
SAMPLES = 2_000  # of a larger space, before it counts as exhausted
# bytes of a plan, above which both numbers shrink: plans of the shipped seeds have 1.5 KiB
PLAN_BYTES = 4096


class SearchSpace:
    """All configurations of a candidate's tunables, for one task on one device."""

    def __init__(self, candidate: Candidate, task: Task, limits: DeviceLimits) -> None:
        self.candidate = candidate
        self._task = task
        self._limits = limits
        self.values = {
            name: tuple(sorted(values)) for name, values in candidate.plan.tunables.items()
        }
        self.size = math.prod(len(values) for values in self.values.values())
        # the search loop waits while configurations are tried, for milliseconds each in a long plan
        plan_bytes = len(candidate.plan.model_dump_json(exclude={"tunables"}))
        self._share = min(1.0, PLAN_BYTES / plan_bytes)
        self._validity: dict[Point, bool] = {}

    @cached_property
    def normal_digest(self) -> str:
        """Equal for spaces of the same kernel with the same values, whichever stand first."""
        return normal_digest(self.candidate)

    def point(self, tunables: dict[str, int]) -> Point | None:
        """The point of `tunables`, defaults filled in; None where a value is not declared."""
        chosen = {
            **{name: values[0] for name, values in self.candidate.plan.tunables.items()},
            **tunables,
        }
        if any(value not in self.values.get(name, ()) for name, value in chosen.items()):
            return None
        return tuple(values.index(chosen[name]) for name, values in self.values.items())

    def tunables(self, point: Point) -> dict[str, int]:
        """The values at `point`, every tunable named."""
        return {
            name: values[at] for (name, values), at in zip(self.values.items(), point, strict=True)
        }

    def is_valid(self, point: Point) -> bool:
        """Whether the plan binds at `point` for every case that is not hidden."""
        if point not in self._validity:
            self._validity[point] = is_valid(
                self.candidate.tuned(self.tunables(point)), self._task, self._limits
            )
        return self._validity[point]

    def any_untried(self, tried: Collection[Point], rng: Random) -> Point | None:
        """A random valid point outside `tried`, all equally likely; None where there is none (or,
        in a large space, none was found).
        """
        return next(
            (point for point in self._shuffled(rng) if point not in tried and self.is_valid(point)),
            None,
        )

    def _shuffled(self, rng: Random) -> Iterator[Point]:
        if self.size <= int(ENUMERATED * self._share):
            return (self._at(number) for number in rng.sample(range(self.size), self.size))
        return (self._at(rng.randrange(self.size)) for _ in range(int(SAMPLES * self._share)))

    def _at(self, number: int) -> Point:
        """The point with this number, counted with the last tunable fastest."""
        point = []
        for values in reversed(self.values.values()):
            number, position = divmod(number, len(values))
            point.append(position)
        return tuple(reversed(point))
