"""The lessons of a run, live and read from its store: the same fold."""

from __future__ import annotations

from collections.abc import Callable

from evoengine.config import RunConfig
from evoengine.generate import lesson_lines
from evoengine.generate.device_figures import short_name
from evoengine.generate.tuned_model import WITHOUT_ASKING
from evoengine.population.elites import resolution_of
from evoengine.population.lessons import Lessons
from evoengine.protocols import Store
from evoengine.records import Environment, Lesson, Outcome
from evoengine.search.trial_candidate import stored_proposal


class RunLessons:
    """The lessons of the settled trials of a run."""

    def __init__(
        self,
        store: Store,
        config: RunConfig,
        environment: Environment | None,
        is_coarse: Callable[[int], bool],
    ) -> None:
        """`is_coarse` as of Lessons."""
        is_modelled = environment is not None and environment.is_modelled
        self._store = store
        self._lessons = Lessons(
            short_name(environment) if environment else "",
            config.in_flight,
            resolution_of(environment) if is_modelled else None,
            is_coarse,
            config.lessons,
        )

    def add(self, outcome: Outcome) -> None:
        """Adds the final outcome of the next settled trial, whose proposal is stored."""
        insight = ""
        if outcome.operator not in WITHOUT_ASKING:
            insight = stored_proposal(self._store, outcome.trial).insight
        said = lesson_lines.read(insight)
        self._lessons.add(outcome, said.claim, said.applied)

    @property
    def all(self) -> tuple[Lesson, ...]:
        """All lessons by number, struck ones included."""
        return self._lessons.all

    @property
    def ranked(self) -> tuple[Lesson, ...]:
        """Those that prompts may show, the most useful first."""
        return self._lessons.ranked
