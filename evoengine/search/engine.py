"""The search: proposes, evaluates, settles, and can be killed at any instant.

Several trials are under way at once, yet they settle in the order of their numbers, and
trial n is proposed from exactly the trials up to `horizon(n)`. So what a trial sees does
not depend on timing. A resumed run adds its stored trials through the same code, so that it
goes on as if it had never been stopped.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any

from evoengine.config import RunConfig
from evoengine.events import Notice, Observer, RunEnded, Spent, TrialMoved, TrialSettled
from evoengine.population.elites import Population
from evoengine.protocols import (
    FIRST,
    Evaluated,
    Executor,
    Exhausted,
    Generator,
    PastRace,
    ProposalRow,
    RaceRow,
    Request,
    Store,
    TrialSummary,
    VerdictRow,
)
from evoengine.records import (
    TIMING_VERSION,
    EndKind,
    Environment,
    Outcome,
    Proposal,
    Race,
    Verdict,
    outcome_of,
)
from evoengine.search.clock import utc_now
from evoengine.search.early_end import EarlyEnd
from evoengine.search.elites_so_far import ElitesSoFar
from evoengine.search.evaluated_trials import EvaluatedTrials
from evoengine.search.final_verdicts import FinalVerdicts
from evoengine.search.run_lessons import RunLessons
from evoengine.search.settled_trials import (
    SettledTrial,
    add_to,
    fold_into_population,
    is_verified,
    settled_trials,
)
from evoengine.search.stored_replies import StoredReplies
from evoengine.search.trial_candidate import (
    candidate_of,
    stored_first_verdict,
    stored_proposal,
)
from evoengine.search.trial_requests import Pending, TrialRequests
from evoengine.search.trial_verdicts import TrialVerdicts
from evoengine.task.schema import Task

# Elites that are measured in each other's pauses: a search has two graders.
FINALS_AT_ONCE = 2
INTERRUPTED = RunEnded("interrupted", EndKind.interrupted)


@dataclass(frozen=True)
class JudgedTrial:
    """A trial with all its verdicts, ready to settle."""

    proposal: Proposal
    first: VerdictRow
    verification: Verdict | None  # None if it was not verified early


class Engine:
    """The search of one run; its parts are behind protocols."""

    def __init__(
        self,
        *,
        task: Task,
        config: RunConfig,
        environment: Environment,
        seeds: list[Proposal],
        generator: Generator,
        executor: Executor,
        store: Store,
        observe: Observer = lambda _: None,
        now: Callable[[], str] = utc_now,
        timing_version: int = TIMING_VERSION,
        limits_from: int = 0,
    ) -> None:
        """`now` returns the current time as rows store it. Of a run of an earlier `timing_version`
        only `restore` and `next_request` are for use. `limits_from` as of EarlyEnd.
        """
        self.task = task
        self.config = config
        self.environment = environment
        self.seeds = seeds  # the starting kernels: the first trials
        self.generator = generator
        self.executor = executor
        self.store = store
        self.observe = observe
        self.now = now
        self.population = Population.of_run(config.places, environment, timing_version)
        self._elites_so_far = ElitesSoFar(self.population)
        self._settled = 0
        self._last_stored = -1  # the last trial with a proposal or a reply when the search begins
        self._verdicts = TrialVerdicts(store, executor, config.in_flight, now, self._progress)
        self._evaluated = EvaluatedTrials(store)
        lessons = RunLessons(
            store, config, environment, lambda trial: self._evaluated.get(trial).verdict.is_coarse
        )
        self._requests = TrialRequests(
            config, task, environment, len(seeds), self._evaluated, lessons
        )
        self._early_end = EarlyEnd(
            config, task, len(seeds), lambda trial: self._evaluated.get(trial).verdict, limits_from
        )
        # of the trials in flight
        self._proposals: dict[int, asyncio.Future[Proposal]] = {}
        self._in_flight: dict[int, asyncio.Task[JudgedTrial]] = {}
        # of the trials in flight, and of those settled since the earliest of their horizons
        self._first_outcomes: dict[int, asyncio.Future[Outcome]] = {}
        self._replies = StoredReplies(
            store, now, store.spent().usage, lambda total: self.observe(Spent(total))
        )
        self._stopped: Callable[[], RunEnded] = lambda: INTERRUPTED

    @property
    def settled(self) -> int:
        """How many trials are settled."""
        return self._settled

    def horizon(self, trial: int) -> int:
        """The last trial that is settled when `trial` is proposed; all before are, none after."""
        window = trial - self.config.in_flight
        return max(window, len(self.seeds) - 1) if trial >= len(self.seeds) else window

    def next_request(self) -> tuple[Request, bool]:
        """The request for the first trial that is not stored, and whether it is final.

        Call it after `restore`. The request is not final while trials up to its horizon are open,
        because their outcomes may change it.
        """
        known = {trial for trial, _ in self.store.trials()}
        trial = next(number for number in itertools.count(len(self.seeds)) if number not in known)
        return self._request(trial), self._settled == self.horizon(trial) + 1

    def restore(self) -> None:
        """Settles the stored trials up to the horizon of the next proposal.

        Later ones stay in flight even if their verdicts are stored, because that proposal must not
        see them.
        """
        for settled in settled_trials(self._stored_up_to_horizon(), self.population):
            self._add(settled, None)

    def _stored_up_to_horizon(self) -> Iterator[tuple[int, TrialSummary]]:
        """The stored trials up to the horizon of the first one without a proposal."""
        stored: deque[tuple[int, TrialSummary]] = deque()
        for number, (trial, summary) in enumerate(self.store.trials()):
            if trial != number or not summary.proposed:
                return
            stored.append((trial, summary))
            while stored and stored[0][0] <= self.horizon(trial + 1):
                yield stored.popleft()

    def _share_stored(self) -> None:
        """Shares the stored verdicts of trials in flight, by the elites that they were judged by:
        what was settled when such a trial began is in the store, though not all of it here.
        """
        population = self._elites_so_far.after(-1).copy()
        stored = ElitesSoFar(population)
        for _ in fold_into_population(self.store.trials(), population):
            stored.add(population)

        def elites_of(trial: int) -> Population | None:
            horizon = self.horizon(trial)
            return stored.after(horizon) if horizon < len(stored) else None

        self._verdicts.share_stored(self._settled, elites_of)

    async def run(
        self,
        stop: asyncio.Event,
        stop_now: asyncio.Event | None = None,
        stopped: Callable[[], RunEnded] = lambda: INTERRUPTED,
    ) -> RunEnded:
        """Searches until the budget is spent, an early end or a cap is reached, nothing is left to
        try, or `stop` is set.

        After `stop`, replies that a model is still writing are waited for and stored, because they
        are paid for, unless `stop_now` is set as well. `stopped` returns why `stop` was set.
        """
        self._stopped = stopped
        self._last_stored = max(
            (trial for trial, _ in self.store.trials(self._settled)), default=-1
        )
        stopping = asyncio.create_task(stop.wait())
        try:
            try:
                self._share_stored()
                ended = await self._search(stopping)
            finally:
                await self._cancel_in_flight(stop_now)
            if ended.complete and not await self._measure_elites(stopping):
                ended = self._stopped()
        finally:
            stopping.cancel()
        self.observe(ended)
        return ended

    # ---------------------------------------------------------------- the loop

    async def _search(self, stopping: asyncio.Task[bool]) -> RunEnded:
        try:
            trial = self._settled
            while trial <= self._last_trial:
                if not await self._settle_through(self.horizon(trial), stopping):
                    return self._stopped()
                if trial <= self._last_trial:  # no end was reached meanwhile
                    self._start_trial(trial)
                    trial += 1
            if (
                not await self._settle_through(self._last_trial, stopping)
                and self._settled <= self._last_trial
            ):
                return self._stopped()
        except Exhausted as exhausted:
            return RunEnded(str(exhausted), exhausted.kind)
        if (reached := self._early_end.reached) is not None:
            return RunEnded(self._early_end.reason, reached.kind)
        return RunEnded("the budget of trials is spent", EndKind.trials)

    @property
    def _last_trial(self) -> int:
        """The last trial that is proposed. Once an early end is reached: the last one that is
        proposed without the trial that reached it, or that was paid for before this process, whose
        limits may be smaller.
        """
        budget, reached = self.config.trials - 1, self._early_end.reached
        if reached is None:
            return budget
        under_way = range(reached.trial, reached.trial + self.config.in_flight)
        last = max(it for it in under_way if self.horizon(it) < reached.trial)
        return min(budget, max(last, self._last_stored))

    async def _settle_through(self, last: int, stopping: asyncio.Task[bool]) -> bool:
        """Settles trials in order up to `last`; returns False if `stopping` is done first."""
        while self._settled <= last:
            if not await self._unless_stopped(self._settle(self._settled), stopping):
                return False
        return not stopping.done()

    async def _unless_stopped(
        self, step: Coroutine[Any, Any, None], stopping: asyncio.Task[bool]
    ) -> bool:
        """Runs `step`; returns False if `stopping` is done first, and `step` was cancelled."""
        running = asyncio.create_task(step)
        try:
            await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
                return True
        finally:
            if not running.done():
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
        return False

    async def _settle(self, trial: int) -> None:
        """Waits for a trial's verdicts, runs the races for its place, and adds it.

        A trial that was not verified early is verified here, if it would take a place now; an early
        verification counts only if it would.
        """
        judged = await asyncio.shield(self._in_flight[trial])
        proposal, verification = judged.proposal, judged.verification
        first = outcome_of(trial, proposal, judged.first.verdict)
        if not is_verified(first, judged.first.promising, self.population):
            verification = None
        elif verification is None:
            verification = await self._verdicts.verification(trial, proposal)
        verified = outcome_of(trial, proposal, verification) if verification else None
        races = await self._race(trial, proposal, first.after(verified)) if verified else ()
        settled = SettledTrial(first, verified, races)
        verdict = verification or judged.first.verdict
        self._add(settled, Evaluated(settled.outcome, proposal.source or "", verdict))
        if news := self._early_end.news:
            self.observe(Notice(news))
        del self._in_flight[trial], self._proposals[trial]

    def _add(self, settled: SettledTrial, evaluated: Evaluated | None) -> None:
        """Adds a settled trial to population and generator; used live and on resume."""
        place = add_to(self.population, settled)
        first, final = settled.first, settled.outcome
        self._evaluated.add(first.trial, settled.verified is not None, evaluated)
        self._settled = first.trial + 1
        self._first_outcomes.pop(self._settled - 2 * self.config.in_flight, None)
        self._elites_so_far.add(self.population)
        self._verdicts.add(settled)
        self._early_end.add(first.trial, self.population)
        self._requests.add(final)
        self.generator.tell(final)
        self.observe(TrialSettled(final, place, self.population.elites))

    async def _race(self, trial: int, proposal: Proposal, outcome: Outcome) -> tuple[PastRace, ...]:
        """The races of a verified trial, in order, until its place is decided."""
        past = list[PastRace]()
        while (holder := self.population.rival_of(outcome, past)) is not None:
            row = self.store.get(RaceRow, trial, len(past))
            if row is None:
                row = await self._run_race(trial, len(past), proposal, holder)
                self.store.append(row)
            past.append(PastRace(row.holder, row.race.result))
        return tuple(past)

    async def _run_race(self, trial: int, number: int, proposal: Proposal, holder: int) -> RaceRow:
        began, holding = self.now(), self._evaluated.get(holder)
        assert holding.outcome.score is not None
        race: Race = await self.executor.race(
            candidate_of(trial, proposal),
            candidate_of(holder, stored_proposal(self.store, holder)),
            holding.outcome.score,
            self._progress(trial, proposal.label, f"race against trial {holder}: "),
        )
        return RaceRow(trial, number, holder, race, began, self.now())

    # ---------------------------------------------------------------- one trial

    def _start_trial(self, trial: int) -> None:
        request = self._request(trial)
        loop = asyncio.get_running_loop()
        self._proposals[trial] = loop.create_future()
        self._first_outcomes[trial] = loop.create_future()
        self._in_flight[trial] = asyncio.create_task(
            self._run_trial(trial, request, self._proposals[trial])
        )

    async def _run_trial(
        self, trial: int, request: Request, proposed: asyncio.Future[Proposal]
    ) -> JudgedTrial:
        """Proposes, judges and verifies one trial; steps whose results are stored are skipped."""
        began = self.now()
        try:
            proposal = await self._propose(trial, request)
        except BaseException:
            proposed.cancel()
            self._first_outcomes[trial].cancel()
            raise
        proposed.set_result(proposal)
        first = self.store.get(VerdictRow, trial, FIRST)
        horizon = self.horizon(trial)
        elites = self._elites_so_far.after(horizon)
        if first is None:
            verdict = await self._verdicts.first(trial, proposal, elites, horizon)
            promising = elites.would_take_place(outcome_of(trial, proposal, verdict))
            first = VerdictRow(trial, FIRST, verdict, began, self.now(), promising)
            self.store.append(first)
        outcome = outcome_of(trial, proposal, first.verdict)
        self._first_outcomes[trial].set_result(outcome)
        early = first.promising and elites.likely_takes_place(
            outcome, await self._outcomes_before(trial)
        )
        verification = await self._verdicts.verification(trial, proposal) if early else None
        return JudgedTrial(proposal, first, verification)

    async def _outcomes_before(self, trial: int) -> list[Outcome]:
        """The first outcomes of the trials between the horizon of `trial` and `trial`; waits."""
        numbers = range(max(self.horizon(trial) + 1, 0), trial)
        return [
            await asyncio.shield(self._first_outcomes[number])
            if number in self._first_outcomes
            else self._stored_first_outcome(number)
            for number in numbers
        ]

    def _stored_first_outcome(self, trial: int) -> Outcome:
        """Of a trial that was settled before this process began."""
        first = stored_first_verdict(self.store, trial)
        return outcome_of(trial, stored_proposal(self.store, trial), first)

    async def _propose(self, trial: int, request: Request) -> Proposal:
        stored = self.store.get(ProposalRow, trial)
        if stored is not None:
            return stored.proposal
        if trial < len(self.seeds):
            proposal = self.seeds[trial]
        else:
            self.observe(TrialMoved(trial, "asking"))
            proposal = await self.generator.propose(request, self._replies.of(trial))
        self.store.append(ProposalRow(trial, proposal))
        return proposal

    async def _measure_elites(self, stopping: asyncio.Task[bool]) -> bool:
        """Measures each elite once more: a figure that had no part in choosing it; and its kernel
        activity. Returns False if `stopping` is done first; a resume measures what has no row.

        Modelled times have no noise: the same figure would come again.
        """
        if self.environment.is_modelled:
            return True
        finals = FinalVerdicts(self.store, self.executor, self.now, self._progress)
        rows = list[VerdictRow]()
        at_once = asyncio.Semaphore(FINALS_AT_ONCE)

        async def measure(trial: int) -> VerdictRow:
            async with at_once:
                return await finals.measure(trial)

        async def measure_all() -> None:
            missing = finals.missing(self.population.elites)
            measured = [asyncio.create_task(measure(trial)) for trial in missing]
            try:
                rows.extend(await asyncio.gather(*measured))
            finally:
                for task in measured:
                    task.cancel()
                await asyncio.gather(*measured, return_exceptions=True)

        # all before the first profile: a device replaces the process that a profiler was in
        if stopping.done() or not await self._unless_stopped(measure_all(), stopping):
            return False
        for row in rows:
            if stopping.done() or not await self._unless_stopped(finals.store(row), stopping):
                return False
        return True

    def _progress(self, trial: int, label: str, prefix: str = "") -> Callable[[str], None]:
        return lambda step: self.observe(TrialMoved(trial, f"{prefix}{step}", label))

    async def _cancel_in_flight(self, stop_now: asyncio.Event | None) -> None:
        """Cancels the trials in flight and ends the requests; stored rows stay."""
        for task in self._in_flight.values():
            task.cancel()
        await asyncio.gather(*self._in_flight.values(), return_exceptions=True)
        await self._replies.finish(stop_now)

    # ---------------------------------------------------------------- requests

    def _request(self, trial: int) -> Request:
        return self._requests.request(
            trial,
            self._settled,
            self.population.elites,
            self._early_end.gains.trials_without,
            self._pending(trial),
        )

    def _pending(self, trial: int) -> Pending:
        """Request.pending of `trial`: waits for proposals after its horizon."""
        numbers = range(max(self.horizon(trial) + 1, 0), trial)
        proposals = {
            number: self._proposals[number] for number in numbers if number in self._proposals
        }

        async def wait(wanted: Callable[[int], bool]) -> tuple[Proposal, ...]:
            return tuple(
                [
                    await asyncio.shield(proposal)
                    for number, proposal in proposals.items()
                    if wanted(number)
                ]
            )

        return wait
