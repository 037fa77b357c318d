"""The requests of a run's trials: what a generator may know of the trials settled so far.

A fold over settled trials, used live and on resume, so that a trial is proposed from the same facts
again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from evoengine.config import RunConfig
from evoengine.digest import derived_seed
from evoengine.generate.tuning_slots import TuningSlots
from evoengine.population.lineages import Lineage, Lineages
from evoengine.population.structures import Structures
from evoengine.protocols import Evaluated, Island, Request
from evoengine.records import Elite, Environment, Outcome, Proposal
from evoengine.search.evaluated_trials import EvaluatedTrials
from evoengine.search.run_lessons import RunLessons
from evoengine.task.schema import Task

RECENT = 8  # settled trials in a request; a prompt has no room for more
ISLANDS = "islands"  # the method whose requests have islands

# Waits for the proposals in flight before a trial: of those whose numbers are wanted.
Pending = Callable[[Callable[[int], bool]], Awaitable[tuple[Proposal, ...]]]


class TrialRequests:
    """The facts of all settled trials that requests have."""

    def __init__(
        self,
        config: RunConfig,
        task: Task,
        environment: Environment,
        seeds: int,
        evaluated: EvaluatedTrials,
        lessons: RunLessons,
    ) -> None:
        """`seeds` is the number of starting kernels, which are the first trials."""
        self._config = config
        self._task = task
        self._environment = environment
        self._seeds = seeds
        self._evaluated = evaluated
        self._lessons = lessons
        self._lineages = Lineages() if config.method == ISLANDS else None
        self._slots = TuningSlots(seeds, config.tune_share)
        self._structures = Structures()  # empty in a run that does not tune
        self._recent: deque[int] = deque(maxlen=RECENT)

    def add(self, outcome: Outcome) -> None:
        """Adds the final outcome of a settled trial."""
        self._recent.append(outcome.trial)
        if self._lineages is not None:
            self._lineages.add(outcome)
        self._lessons.add(outcome)
        if self._config.tune_share:
            self._structures.add(outcome)

    def request(
        self,
        trial: int,
        settled: int,
        elites: tuple[Elite, ...],
        trials_without_gain: int,
        pending: Pending,
    ) -> Request:
        """The request of `trial`, of which `settled` trials are settled, with these elites."""
        return Request(
            trial=trial,
            seed=derived_seed(self._config.seed, trial),
            task=self._task,
            environment=self._environment,
            seeds=self._of(range(min(self._seeds, settled))),
            elites=tuple((elite, self._evaluated.get(elite.outcome.trial)) for elite in elites),
            recent=self._of(self._recent),
            pending=pending,
            trials_without_gain=trials_without_gain,
            lessons=self._lessons.ranked,
            settled=settled,
            structures=self._of(self._structures.promising(elites)),
            tuning_trials=self._slots.before(self._config.trials),
            tried=partial(self._structures.tried, before=settled),
            tiers=self._config.tiers,
            run_seed=self._config.seed,
            asking=self._slots.asking_before(trial),
            asking_settled=self._slots.asking_before(settled),
            islands=tuple(map(self._island, self._lineages.islands() if self._lineages else ())),
        )

    def _of(self, trials: Iterable[int]) -> tuple[Evaluated, ...]:
        return tuple(self._evaluated.get(trial) for trial in trials)

    def _island(self, lineage: Lineage) -> Island:
        best = self._of(trial for _, trial, _ in lineage.best)
        return Island(
            tier=lineage.tier,
            founder=lineage.founder,
            elites=tuple(
                (Elite(tier=lineage.tier, place=place, outcome=item.outcome), item)
                for place, item in enumerate(best, start=1)
            ),
            recent=self._of(lineage.recent),
            trials_without_gain=lineage.trials_without_gain,
        )
