"""A kernel that holds a place, as a search has it: verified, and raced by newcomers."""

from __future__ import annotations

from dataclasses import dataclass

from evoengine.candidate.kernel_file import Candidate
from evoengine.population.places_by_race import ATTEMPTS
from evoengine.protocols import Executor
from evoengine.records import Interval, Race, RaceResult, Status, Verdict

RACES_OF_A_VERDICT = 10  # then it is verified again: no single verdict decides a whole series


class UnusableVerdict(Exception):  # noqa: N818 - says what was found
    """A verdict on a benchmark's own kernel that is not correct."""


@dataclass
class HoldingKernel:
    """A candidate with the verification that it holds its place by."""

    executor: Executor
    candidate: Candidate
    _verdict: Verdict | None = None
    _races: int = 0

    async def judged(self) -> Verdict:
        """Its verification, at most RACES_OF_A_VERDICT races old; raises UnusableVerdict."""
        if self._verdict is None or self._races >= RACES_OF_A_VERDICT:
            self._verdict, self._races = await verified(self.executor, self.candidate), 0
        return self._verdict

    async def race(self, newcomer: Candidate) -> Race:
        """One race; raises UnusableVerdict."""
        score = score_of(await self.judged())
        self._races += 1
        return await self.executor.race(newcomer, self.candidate, score, lambda _: None)

    async def races(self, newcomer: Candidate) -> list[Race]:
        """The races of one newcomer in order: as many as a search runs until one is not void."""
        found: list[Race] = []
        while len(found) < ATTEMPTS and all(race.result is RaceResult.void for race in found):
            found.append(await self.race(newcomer))
        return found


async def verified(executor: Executor, candidate: Candidate) -> Verdict:
    """A verdict of a process that has run nothing else; raises UnusableVerdict."""
    verdict = await executor.evaluate(candidate, lambda _: None, verify=True)
    if verdict.status is not Status.correct or verdict.score is None:
        raise UnusableVerdict(f"{candidate.plan.name}: {verdict.status}: {verdict.reason}")
    return verdict


def score_of(verdict: Verdict) -> Interval:
    """The score of a verdict that `verified` returned."""
    assert verdict.score is not None
    return verdict.score
