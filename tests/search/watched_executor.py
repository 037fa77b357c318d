"""A ScriptedExecutor that notes what it is asked for, and that a test can hold up."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from evoengine.candidate.kernel_file import Candidate
from evoengine.evaluate.scripted.scripted_executor import SCRIPTED_GPU, ScriptedExecutor
from evoengine.evaluate.scripted.scripted_verdict import VerdictRule
from evoengine.protocols import Progress, SearchBar
from evoengine.records import Environment, Interval, Race, Verdict
from evoengine.task.schema import Task


@dataclass(frozen=True)
class Asked:
    """One evaluation, or the newcomer's side of one race."""

    name: str  # of the kernel
    what: str  # "first", "verify" or "race"
    bar: float | None = None
    beside: int = 0  # how many others were under way when it began


async def _at_once(asked: Asked) -> None:
    """Holds nothing up."""


class WatchedExecutor(ScriptedExecutor):
    """`before` is awaited before each verdict and race."""

    def __init__(
        self,
        task: Task,
        rule: VerdictRule,
        before: Callable[[Asked], Awaitable[None]] = _at_once,
        environment: Environment = SCRIPTED_GPU,
        delay_s: float = 0.0,
    ) -> None:
        super().__init__(task, environment, rule, delay_s)
        self.asked: list[Asked] = []
        self._before = before
        self._under_way = 0

    def names(self, what: str) -> list[str]:
        """The kernels of all evaluations or races of one sort, in the order of their beginnings."""
        return [asked.name for asked in self.asked if asked.what == what]

    async def evaluate(
        self,
        candidate: Candidate,
        progress: Progress,
        verify: bool = False,
        search: SearchBar | None = None,
        sittings: int = 1,
    ) -> Verdict:
        bar = search.score if search else None
        async with self._noted(candidate, "verify" if verify else "first", bar):
            return await super().evaluate(candidate, progress, verify, search)

    async def race(
        self, newcomer: Candidate, holder: Candidate, score: Interval, progress: Progress
    ) -> Race:
        async with self._noted(newcomer, "race"):
            return await super().race(newcomer, holder, score, progress)

    @asynccontextmanager
    async def _noted(
        self, candidate: Candidate, what: str, bar: float | None = None
    ) -> AsyncIterator[None]:
        asked = Asked(candidate.plan.name, what, bar, self._under_way)
        self.asked.append(asked)
        self._under_way += 1
        try:
            await self._before(asked)
            yield
        finally:
            self._under_way -= 1
