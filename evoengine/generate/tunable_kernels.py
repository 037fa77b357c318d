"""The sources whose tunables can be searched, with what is known of their configurations."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from evoengine.candidate.arch import DeviceLimits, limits_of
from evoengine.candidate.kernel_file import Candidate, parse
from evoengine.digest import digest
from evoengine.errors import CandidateError
from evoengine.generate.search_space import Point, SearchSpace
from evoengine.protocols import Evaluated, Request
from evoengine.records import Outcome, Proposal, Status
from evoengine.task.schema import Task

FAILED = 1_000.0  # worse than the logarithm of any score


@dataclass
class _SourceOutcomes:
    """The outcomes of one source, in the order of their trials; their points are computed when the
    source is tuned.
    """

    outcomes: list[Outcome] = field(default_factory=list)
    trials: list[int] = field(default_factory=list)
    points: list[tuple[Point, float]] = field(default_factory=list)  # with their losses
    seen: set[Point] = field(default_factory=set)

    def before(self, trial: int, space: SearchSpace) -> list[tuple[Point, float]]:
        """Every configuration that was settled before `trial`, with its loss: that of its first
        trial, because a kernel that is sent again is refused or gets the same verdict.
        """
        for outcome in self.outcomes:
            point = space.point(outcome.tunables)
            if point is not None and point not in self.seen:
                self.seen.add(point)
                self.trials.append(outcome.trial)
                self.points.append((point, _loss(outcome)))
        self.outcomes.clear()
        return self.points[: bisect.bisect_left(self.trials, trial)]


@dataclass(frozen=True)
class TunableKernel:
    """One source that can be tuned at this request."""

    parent: Evaluated | None  # None until it has a verdict
    space: SearchSpace
    settled: list[tuple[Point, float]]
    pending: tuple[Point, ...]

    @property
    def tries(self) -> int:
        return len(self.settled) + len(self.pending)

    @property
    def best(self) -> float:
        return min((loss for _, loss in self.settled), default=math.inf)

    @property
    def precision(self) -> str:
        return self.space.candidate.plan.precision

    def joined(self, twin: TunableKernel) -> TunableKernel:
        """This kernel with what is known of the same one from another source."""
        known = dict(self.settled)
        for point, loss in twin.settled:
            own = self._point_of(twin, point)
            known[own] = min(loss, known.get(own, loss))
        pending = {*self.pending, *(self._point_of(twin, point) for point in twin.pending)}
        return replace(self, settled=list(known.items()), pending=tuple(sorted(pending)))

    def _point_of(self, twin: TunableKernel, point: Point) -> Point:
        own = self.space.point(twin.space.tunables(point))
        assert own is not None  # the values are the same
        return own

    def proposal(self, point: Point) -> Proposal:
        """The proposal of its configuration at `point`."""
        candidate, parent = self.space.candidate, self.parent
        before = {**candidate.tunables, **(parent.outcome.tunables if parent else {})}
        after = self.space.tunables(point)
        return Proposal(
            operator="tune",
            parents=(parent.outcome.trial,) if parent else (),
            source=candidate.source,
            tunables=after,
            label=candidate.plan.name,
            insight=", ".join(
                f"{name} {before[name]} -> {value}"
                for name, value in after.items()
                if value != before[name]
            ),
        )


def joined_twins(kernels: Iterable[TunableKernel]) -> list[TunableKernel]:
    """Of `kernels` that differ in what does not count, such as which values stand first, the first,
    with what is known of all: a configuration that one of them tried is the same for the others.
    """
    found: dict[str, TunableKernel] = {}
    for kernel in kernels:
        name = kernel.space.normal_digest
        found[name] = found[name].joined(kernel) if name in found else kernel
    return list(found.values())


class TunableKernels:
    """The outcomes of all sources, and their search spaces."""

    def __init__(self) -> None:
        self._outcomes: dict[str, _SourceOutcomes] = {}
        self._spaces: dict[tuple[str, DeviceLimits], SearchSpace | None] = {}

    def tell(self, outcome: Outcome) -> None:
        """Notes a settled trial."""
        if outcome.source_digest:
            self._outcomes.setdefault(outcome.source_digest, _SourceOutcomes()).outcomes.append(
                outcome
            )

    def kernel(
        self,
        source: str,
        parent: Evaluated | None,
        request: Request,
        pending: tuple[Proposal, ...],
    ) -> TunableKernel | None:
        """`source` as it can be tuned at this request, with `pending`, the configurations in
        flight; None where it cannot be parsed. Trials that were settled since the request are not
        seen.
        """
        name = digest(source)
        space = self._space(name, source, request.task, limits_of(request.environment))
        if space is None:
            return None
        settled = self._outcomes.setdefault(name, _SourceOutcomes()).before(request.settled, space)
        return TunableKernel(parent, space, settled, _points(pending, space))

    def _space(
        self, name: str, source: str, task: Task, limits: DeviceLimits
    ) -> SearchSpace | None:
        key = (name, limits)
        if key not in self._spaces:
            candidate = _parsed(source)
            self._spaces[key] = SearchSpace(candidate, task, limits) if candidate else None
        return self._spaces[key]


def _points(pending: tuple[Proposal, ...], space: SearchSpace) -> tuple[Point, ...]:
    """The points of those of `pending` that have this source."""
    own = (
        space.point(proposal.tunables)
        for proposal in pending
        if proposal.source == space.candidate.source
    )
    return tuple(point for point in own if point is not None)


def _parsed(source: str) -> Candidate | None:
    try:
        return parse(source)
    except CandidateError:
        return None  # the verdict of its own trial says why


def _loss(outcome: Outcome) -> float:
    """The number that TPE minimises: the logarithm of a score; more for a failure, and the more the
    earlier it came.
    """
    if outcome.status is Status.correct and outcome.score is not None and outcome.score.value > 0:
        return math.log(outcome.score.value)
    return FAILED + Status.correct.rank - outcome.status.rank
