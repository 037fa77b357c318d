"""The generator that needs no model: it tries other values of the tunables that kernels declare.

Each proposal is a function of the request and of the outcomes told: the study that Optuna
samples from is built anew every time, and its sampler is seeded by the request, so that a
resumed run proposes what the killed one would have.
"""

from __future__ import annotations

import bisect
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from evoengine.candidate.arch import DeviceLimits, limits_of
from evoengine.candidate.kernel_file import Candidate, parse
from evoengine.digest import derived_seed, digest
from evoengine.errors import CandidateError
from evoengine.generate.registry import GeneratorKind
from evoengine.generate.search_space import Point, SearchSpace
from evoengine.protocols import Evaluated, Exhausted, Replies, Request
from evoengine.records import Outcome, Proposal, Status
from evoengine.task.schema import Task

if TYPE_CHECKING:
    from optuna import Study

# configurations of every promising kernel, its default included, before the faster ones are
# preferred
WARM_UP = 4
# outcomes of a kernel before TPE is used; with 6, simulated searches of 45 trials among 478
# configurations ended at rank 1.8, with 4 at 4.3, with 10 at 2.1
STARTUP = 6
ASKS = 10  # of TPE, in 0.1 s, until it suggests a new point; 30 found nothing better
# outcomes of a kernel that TPE is given: more take 0.1 s per proposal and change little
HISTORY = 1_000
# the times of a shipped kernel differ by a factor of 4 at most, whatever its tunables
PROMISING = math.log(4)
FAR = 20.0  # keeps the weight of a failed kernel above zero
FAILED = 1_000.0  # worse than the logarithm of any score


@dataclass
class _SourceOutcomes:
    """The outcomes of one source, in the order of their trials; their points are computed when the
    source is tuned.
    """

    outcomes: list[Outcome] = field(default_factory=list)
    trials: list[int] = field(default_factory=list)
    points: list[tuple[Point, float]] = field(default_factory=list)  # with their losses

    def before(self, trial: int, space: SearchSpace) -> list[tuple[Point, float]]:
        """Every configuration that was settled before `trial`, with its loss."""
        for outcome in self.outcomes:
            point = space.point(outcome.tunables)
            if point is not None:
                self.trials.append(outcome.trial)
                self.points.append((point, _loss(outcome)))
        self.outcomes.clear()
        return self.points[: bisect.bisect_left(self.trials, trial)]


@dataclass(frozen=True)
class _Kernel:
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


class TuneGenerator:
    """Implements protocols.Generator: searches the tunables of the starting kernels and of the
    elites with Optuna's TPE.

    No configuration of a source is proposed twice. Source: Bergstra et al., Algorithms for
    Hyper-Parameter Optimization, NeurIPS 2011; multivariate, with a constant liar for the trials in
    flight, and over the positions of a tunable's sorted values.
    """

    def __init__(self) -> None:
        self._outcomes: dict[str, _SourceOutcomes] = {}
        self._spaces: dict[tuple[str, DeviceLimits], SearchSpace | None] = {}

    def tell(self, outcome: Outcome) -> None:
        if outcome.source_digest:
            self._outcomes.setdefault(outcome.source_digest, _SourceOutcomes()).outcomes.append(
                outcome
            )

    async def propose(self, request: Request, replies: Replies) -> Proposal:
        rng = Random(request.seed)  # noqa: S311 - must repeat, need not be secret
        kernels = self._kernels(request, await request.pending())
        known = len(kernels)
        while kernels:
            kernel = _choose(kernels, rng)
            point = _next_point(kernel, request.seed, rng)
            if point is not None:
                return _proposal(kernel, point)
            kernels.remove(kernel)
        if not known:
            raise Exhausted("there is no kernel whose tunables could be searched")
        raise Exhausted(
            f"every valid configuration of {known} kernel{'' if known == 1 else 's'} was tried"
        )

    async def close(self) -> None:
        """Nothing is open."""

    def _kernels(self, request: Request, pending: tuple[Proposal, ...]) -> list[_Kernel]:
        """The sources that can be tuned: starting kernels first, then those of elites."""
        sources = {evaluated.outcome.source_digest: evaluated.source for evaluated in request.seeds}
        parents = {evaluated.outcome.source_digest: evaluated for evaluated in request.seeds}
        for proposal in pending:  # starting kernels without a verdict yet
            if proposal.operator == "seed" and proposal.source is not None:
                sources.setdefault(digest(proposal.source), proposal.source)
        # the best place last, so that it stays
        for _, evaluated in sorted(request.elites, key=lambda elite: -elite[0].place):
            sources[evaluated.outcome.source_digest] = evaluated.source
            parents[evaluated.outcome.source_digest] = evaluated
        limits, horizon = limits_of(request.environment), request.trial - len(pending)
        kernels = []
        for name, source in sources.items():
            space = self._space(name, source, request.task, limits)
            if space is not None:
                settled = self._outcomes.setdefault(name, _SourceOutcomes()).before(horizon, space)
                kernels.append(_Kernel(parents.get(name), space, settled, _points(pending, space)))
        return kernels

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


def _choose(kernels: list[_Kernel], rng: Random) -> _Kernel:
    """The kernel to tune: every promising one in turn until all are warm, then faster ones more
    often.

    Tiers with a correct kernel are equally likely; within a tier, a kernel whose best time is r
    times that of the fastest one has the weight 1 / r^2.
    """
    working = [kernel for kernel in kernels if kernel.best < FAILED] or kernels
    fastest = {
        tier: min(kernel.best for kernel in working if kernel.precision == tier)
        for tier in {kernel.precision for kernel in working}
    }
    cold = [
        kernel for kernel in kernels if kernel.tries < WARM_UP and _is_promising(kernel, fastest)
    ]
    if cold:
        return min(cold, key=lambda kernel: kernel.tries)
    tier = rng.choice(sorted(fastest))
    rivals = [kernel for kernel in kernels if kernel.precision == tier]
    return rng.choices(
        rivals, [math.exp(-2 * _behind(kernel, fastest[tier])) for kernel in rivals]
    )[0]


def _behind(kernel: _Kernel, fastest: float) -> float:
    """How far a kernel is behind the fastest of its tier, in logarithms."""
    return min(kernel.best - fastest, FAR) if math.isfinite(kernel.best) else FAR


def _is_promising(kernel: _Kernel, fastest: dict[str, float]) -> bool:
    """Whether its tunables, which hardly gain more than a factor of 4, could still make it the
    fastest of its tier.
    """
    return (
        math.isinf(kernel.best)
        or _behind(kernel, fastest.get(kernel.precision, math.inf)) < PROMISING
    )


def _next_point(kernel: _Kernel, seed: int, rng: Random) -> Point | None:
    """An untried valid point: TPE's suggestion, or any where TPE only repeats itself; None where
    none is left.
    """
    space = kernel.space
    tried = {point for point, _ in kernel.settled} | set(kernel.pending)
    if len(tried) >= space.size:
        return None
    for point in _suggested(kernel, seed):
        if point not in tried and space.is_valid(point):
            return point
    return space.any_untried(tried, rng)


def _suggested(kernel: _Kernel, seed: int) -> Iterator[Point]:
    """The points that TPE suggests; those not taken stay open in the study, so that the next
    suggestion avoids them.
    """
    import optuna  # here, because it takes longer to import than all the rest

    distributions = {
        name: optuna.distributions.IntDistribution(0, len(values) - 1)
        for name, values in kernel.space.values.items()
    }
    study = _study(kernel, distributions, derived_seed(seed, "tpe"))
    for _ in range(ASKS):
        trial = study.ask(dict(distributions))
        yield tuple(int(trial.params[name]) for name in distributions)


def _study(kernel: _Kernel, distributions: dict[str, Any], seed: int) -> Study:
    """A study in memory of the settled configurations, with those in flight as running."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings():
        # Optuna 4 calls both options experimental
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.TPESampler(
            seed=seed, n_startup_trials=STARTUP, multivariate=True, constant_liar=True
        )
    study = optuna.create_study(sampler=sampler)
    for point, loss in _best_and_latest(kernel.settled):
        params = dict(zip(distributions, point, strict=True))
        study.add_trial(
            optuna.trial.create_trial(params=params, distributions=dict(distributions), value=loss)
        )
    for point in kernel.pending:
        params = dict(zip(distributions, point, strict=True))
        study.add_trial(
            optuna.trial.create_trial(
                state=optuna.trial.TrialState.RUNNING,
                params=params,
                distributions=dict(distributions),
            )
        )
    return study


def _best_and_latest(points: list[tuple[Point, float]]) -> list[tuple[Point, float]]:
    """At most HISTORY of `points`, in their order: half of them the best, half the latest."""
    if len(points) <= HISTORY:
        return points
    best = sorted(range(len(points)), key=lambda number: points[number][1])[: HISTORY // 2]
    return [
        points[number]
        for number in sorted({*best, *range(len(points) - HISTORY // 2, len(points))})
    ]


def _proposal(kernel: _Kernel, point: Point) -> Proposal:
    candidate, parent = kernel.space.candidate, kernel.parent
    before = {**candidate.tunables, **(parent.outcome.tunables if parent else {})}
    after = kernel.space.tunables(point)
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


KIND = GeneratorKind(lambda context: TuneGenerator())
