"""A search among equal kernels: what it reports of the best one, against what is known of all."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.holding_kernel import score_of, verified
from benchmarks.shares import mean_interval, over, ratio_row
from benchmarks.subjects import numbers, renewed
from benchmarks.table import Row
from evoengine.candidate import kernel_file
from evoengine.config import RunConfig
from evoengine.protocols import FINAL, FIRST, Executor, RaceRow, Replies, Request, VerdictRow
from evoengine.records import Environment, Interval, Outcome, Proposal, RaceResult
from evoengine.search.engine import Engine
from evoengine.store.memory_store import MemoryStore
from evoengine.task.schema import Task

KNOWN_VERDICTS = 10  # half of them before the search, half after it


class EqualKernels:
    """protocols.Generator: the first starting kernel with a constant more, which nothing reads, so
    that no two have the same machine code.
    """

    def __init__(self) -> None:
        self._numbers = numbers()

    def tell(self, outcome: Outcome) -> None:
        """Learns nothing."""

    async def propose(self, request: Request, replies: Replies) -> Proposal:
        source = renewed(request.seeds[0].source, next(self._numbers))
        return Proposal(operator="mutate", parents=(0,), source=source)

    async def close(self) -> None:
        """Nothing to let go of."""


@dataclass
class EqualSearch:
    """One search, and verdicts on its kernel that had no part in it."""

    executor: Executor
    source: str
    task: Task
    environment: Environment
    known: list[float] = field(default_factory=list)  # the scores of those verdicts
    final: Interval | None = None  # of the best elite
    held_by: Interval | None = None  # the score by which it holds its place
    first: Interval | None = None  # that of its first verdict
    races: list[RaceResult] = field(default_factory=list)
    best_trial: int = 0
    problems: list[str] = field(default_factory=list)

    async def take(self, count: int) -> None:
        """Searches for `count` trials."""
        await self._judge(KNOWN_VERDICTS // 2)
        engine = Engine(
            task=self.task,
            config=RunConfig(task=self.task.name, trials=count, generator="equal kernels"),
            environment=self.environment,
            seeds=[Proposal(operator="seed", source=self.source, label="the kernel")],
            generator=EqualKernels(),
            executor=self.executor,
            store=MemoryStore(),
        )
        ended = await engine.run(asyncio.Event())
        if not ended.complete or engine.settled != count:
            self.problems.append(f"{engine.settled} of {count} trials: {ended.reason}")
        self._read(engine)
        await self._judge(KNOWN_VERDICTS - len(self.known))

    async def _judge(self, count: int) -> None:
        candidate = kernel_file.parse(self.source)
        for _ in range(count):
            self.known.append(score_of(await verified(self.executor, candidate)).value)

    def _read(self, engine: Engine) -> None:
        """Notes what the run holds about its best elite."""
        store = engine.store
        for trial, _ in store.trials():
            for number in itertools.count():
                row = store.get(RaceRow, trial, number)
                if row is None:
                    break
                self.races.append(row.race.result)
        if not engine.population.elites:
            raise RuntimeError("no trial has taken a place")
        best = engine.population.elites[0].outcome
        self.best_trial, self.held_by = best.trial, best.score
        first, final = (store.get(VerdictRow, best.trial, part) for part in (FIRST, FINAL))
        self.first = first.verdict.score if first else None
        self.final = final.verdict.score if final else None

    @staticmethod
    def rows(subject: str, parts: Sequence[EqualSearch], note: str, is_whole: bool) -> list[Row]:
        """The rows of one search; searches of several kernels have no figure in common."""
        if len(parts) != 1:
            return []
        search = parts[0]
        if len(search.known) < 2 or search.final is None:
            failed = note or "the best elite has no final figure"
            return [{"measured": WHAT, "subject": subject, "kept": False, "note": failed}]
        known = mean_interval(search.known)
        rows = [ratio_row(WHAT, subject, over(search.final, known), _joined_note(search, note))]
        for name, score in (("held by", search.held_by), ("first", search.first)):
            if score is not None:
                ratio = over(score, known)
                rows.append({**ratio_row(SEEN[name], subject, ratio), "goal": "", "kept": None})
        return rows


WHAT = "the best elite's final figure / the known one"
SEEN = {
    "held by": "what its place was given for / the known one",
    "first": "its first verdict / the known one",
}


def _joined_note(search: EqualSearch, note: str) -> str:
    won = search.races.count(RaceResult.won)
    told = f"trial {search.best_trial}; {won} of {len(search.races)} races won"
    return f"{told}; {note}" if note else told
