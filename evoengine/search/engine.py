"""The search: proposes, evaluates, settles, and can be killed at any instant.

Several trials are under way at once, yet they settle in the order of their numbers, and
trial n is proposed from exactly the trials up to `horizon(n)`. So what a trial sees does
not depend on timing, and a resumed run, which goes through the same fold over the stored
trials, sees the same.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterator
from functools import partial

from evoengine.candidate import kernel_file as candidates
from evoengine.config import RunConfig
from evoengine.digest import derived_seed, digest, digest_json
from evoengine.errors import CandidateError
from evoengine.events import Observer, RunEnded, Spent, TrialMoved, TrialSettled
from evoengine.population.elites import Population, resolution_of
from evoengine.protocols import (
    FIRST,
    VERIFY,
    Evaluated,
    Executor,
    Exhausted,
    Generator,
    ProposalRow,
    Request,
    Store,
    TrialSummary,
    VerdictRow,
)
from evoengine.records import Environment, Outcome, Proposal, Status, Verdict, outcome_of
from evoengine.search.clock import utc_now
from evoengine.search.fold import settled_trials
from evoengine.search.shared_verdicts import SharedVerdicts
from evoengine.search.stored_replies import StoredReplies
from evoengine.task.schema import Task

RECENT = 8  # settled trials that a generator is shown; a prompt holds no more
KEPT_EVALUATED = 64  # in memory; the rest is read from the store when it is needed
INTERRUPTED = "interrupted"
WAITING = "waiting for the verdict on trial {}, which is the same"


class Engine:
    """One run over its protocols."""

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
    ) -> None:
        """`now` is the time as rows keep it."""
        self.task = task
        self.config = config
        self.environment = environment
        self.seeds = seeds  # the starting kernels: the first trials
        self.generator = generator
        self.executor = executor
        self.store = store
        self.observe = observe
        self.now = now
        self.population = Population(config.places, resolution_of(environment))
        self._settled = 0
        self._recent: deque[int] = deque(maxlen=RECENT)
        self._tried: dict[str, int] = {}  # source and tunables -> the trial that had them first
        self._kept: OrderedDict[int, Evaluated] = OrderedDict()
        self._proposals: dict[int, asyncio.Future[Proposal]] = {}  # of the trials in flight
        self._flights: dict[int, asyncio.Task[tuple[Proposal, Verdict]]] = {}
        self._shared = SharedVerdicts()
        self._replies = StoredReplies(
            store, now, store.spent().usage, lambda total: self.observe(Spent(total))
        )
        self._why: Callable[[], str] = lambda: INTERRUPTED

    @property
    def settled(self) -> int:
        """How many trials are settled."""
        return self._settled

    def horizon(self, trial: int) -> int:
        """The last trial that is settled when `trial` is proposed; all before it are, too, and none
        after it.
        """
        window = trial - self.config.in_flight
        return max(window, len(self.seeds) - 1) if trial >= len(self.seeds) else window

    def next_request(self) -> tuple[Request, bool]:
        """What a generator is told of the first trial of which nothing is stored, after `restore`.

        False with it while trials that it follows from are to be settled first, which may change
        it.
        """
        known = {trial for trial, _ in self.store.trials()}
        trial = next(number for number in itertools.count(len(self.seeds)) if number not in known)
        return self._request(trial), self._settled == self.horizon(trial) + 1

    def restore(self) -> None:
        """Folds the stored trials, as far as a run that was never stopped would have settled them.

        Trials between the horizon and the first open one stay in flight: their verdicts
        are stored, but the next proposal must not see them yet.
        """
        for settled in settled_trials(self._seen_by_the_next(), self.population.would_take_place):
            self._fold(settled.first, settled.verified, None)

    def _seen_by_the_next(self) -> Iterator[tuple[int, TrialSummary]]:
        """The stored trials up to the horizon of the first that is still to be proposed."""
        stored: deque[tuple[int, TrialSummary]] = deque()
        for number, (trial, summary) in enumerate(self.store.trials()):
            if trial != number or not summary.proposed:
                return
            stored.append((trial, summary))
            while stored and stored[0][0] <= self.horizon(trial + 1):
                yield stored.popleft()

    async def run(
        self,
        stop: asyncio.Event,
        drop: asyncio.Event | None = None,
        why: Callable[[], str] = lambda: INTERRUPTED,
    ) -> RunEnded:
        """Searches until the budget is spent, nothing is left to try, or `stop` is set; `why` tells
        then what set it.

        After `stop`, replies that a model is still writing are waited for and stored, because they
        are paid for, unless `drop` is set as well.
        """
        self._why = why
        stopping = asyncio.create_task(stop.wait())
        try:
            ended = await self._search(stopping)
        finally:
            stopping.cancel()
            await self._land(drop)
        self.observe(ended)
        return ended

    # ---------------------------------------------------------------- the loop

    async def _search(self, stopping: asyncio.Task[bool]) -> RunEnded:
        try:
            for trial in range(self._settled, self.config.trials):
                if not await self._settle_through(self.horizon(trial), stopping):
                    return self._interrupted()
                self._launch(trial)
            if (
                not await self._settle_through(self.config.trials - 1, stopping)
                and self._settled < self.config.trials
            ):
                return self._interrupted()
        except Exhausted as nothing_left:
            return RunEnded(reason=str(nothing_left), complete=True)
        return RunEnded(reason="the budget of trials is spent", complete=True)

    def _interrupted(self) -> RunEnded:
        return RunEnded(reason=self._why(), complete=False)

    async def _settle_through(self, last: int, stopping: asyncio.Task[bool]) -> bool:
        """Settles trials in order up to `last`; false when `stopping` came first."""
        while self._settled <= last:
            settling = asyncio.create_task(self._settle(self._settled))
            await asyncio.wait({settling, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not settling.done():
                settling.cancel()
                await asyncio.gather(settling, return_exceptions=True)
                return False
            settling.result()
        return not stopping.done()

    async def _settle(self, trial: int) -> None:
        """Folds trial `trial`, verified first where it would take a place."""
        proposal, verdict = await asyncio.shield(self._flights[trial])
        outcome = outcome_of(trial, proposal, verdict)
        verification: Verdict | None = None
        if self.population.would_take_place(outcome):
            verification = await self._verify(trial, proposal)
        verified = outcome_of(trial, proposal, verification) if verification else None
        self._fold(
            outcome, verified, Evaluated(outcome, proposal.source or "", verification or verdict)
        )
        del self._flights[trial], self._proposals[trial]
        self._shared.forget(trial)

    def _fold(
        self, outcome: Outcome, verified: Outcome | None, evaluated: Evaluated | None
    ) -> None:
        """The one way into population and generator, live and on resume."""
        place = self.population.add(outcome, verified)
        final = outcome.after(verified)
        if evaluated is not None:
            self._keep(outcome.trial, Evaluated(final, evaluated.source, evaluated.verdict))
        self._tried.setdefault(_key(outcome.source_digest, outcome.tunables), outcome.trial)
        self._recent.append(outcome.trial)
        self._settled = outcome.trial + 1
        self.generator.tell(final)
        self.observe(TrialSettled(final, place, self.population.elites))

    # ---------------------------------------------------------------- one trial

    def _launch(self, trial: int) -> None:
        request = self._request(trial)
        self._proposals[trial] = asyncio.get_running_loop().create_future()
        self._flights[trial] = asyncio.create_task(
            self._fly(trial, request, self._proposals[trial])
        )

    async def _fly(
        self, trial: int, request: Request, announced: asyncio.Future[Proposal]
    ) -> tuple[Proposal, Verdict]:
        """Proposes and judges one trial; what is stored already is not done again."""
        began = self.now()
        try:
            proposal = await self._propose(trial, request)
        except BaseException:
            announced.cancel()
            raise
        announced.set_result(proposal)
        stored = self.store.get(VerdictRow, trial, FIRST)
        if stored is not None:
            if stored.verdict.status is not Status.rejected:
                self._shared.know(
                    _key(digest(proposal.source or ""), proposal.tunables), trial, stored.verdict
                )
            return proposal, stored.verdict
        verdict = await self._judge(trial, proposal)
        self.store.append(VerdictRow(trial, FIRST, verdict, began, self.now()))
        return proposal, verdict

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

    async def _judge(self, trial: int, proposal: Proposal) -> Verdict:
        """A verdict in every case: a proposal without a candidate and a repeated one are
        rejected.
        """
        if proposal.source is None:
            reason, _, detail = (proposal.problem or "no candidate").partition("\n")
            return Verdict(status=Status.rejected, reason=reason, detail=detail)
        try:
            candidate = candidates.parse(proposal.source, f"trial {trial}").tuned(proposal.tunables)
        except CandidateError as error:
            return Verdict(status=Status.rejected, reason=str(error))
        key = _key(candidate.source_digest, proposal.tunables)
        earlier = self._tried.get(key)
        if earlier is None:
            progress = self._progress(trial, proposal.label or candidate.plan.name)
            evaluate, wait_for = (
                partial(self.executor.evaluate, candidate, progress),
                lambda first: progress(WAITING.format(first)),
            )
            return await self._shared.judge(key, trial, evaluate, wait_for)
        if earlier > self.horizon(trial):  # it was in flight when this one was proposed
            return _first_verdict(self.store, earlier)
        return Verdict(
            status=Status.rejected,
            reason=f"the same as trial {earlier}",
            tier=candidate.plan.precision,
        )

    async def _verify(self, trial: int, proposal: Proposal) -> Verdict:
        """The verification: a verdict by a process in which no other candidate has run."""
        stored = self.store.get(VerdictRow, trial, VERIFY)
        if stored is not None:
            return stored.verdict
        assert proposal.source is not None
        began = self.now()
        candidate = candidates.parse(proposal.source, f"trial {trial}").tuned(proposal.tunables)
        verdict = await self.executor.evaluate(
            candidate, self._progress(trial, proposal.label, "verify: "), verify=True
        )
        self.store.append(VerdictRow(trial, VERIFY, verdict, began, self.now()))
        return verdict

    def _progress(self, trial: int, label: str, prefix: str = "") -> Callable[[str], None]:
        return lambda step: self.observe(TrialMoved(trial, f"{prefix}{step}", label))

    async def _land(self, drop: asyncio.Event | None) -> None:
        """Ends what is in flight; nothing that was committed is touched."""
        for flight in self._flights.values():
            flight.cancel()
        await asyncio.gather(*self._flights.values(), return_exceptions=True)
        await self._replies.land(drop)

    # ---------------------------------------------------------------- what a generator sees

    def _request(self, trial: int) -> Request:
        elites = self.population.elites
        return Request(
            trial=trial,
            seed=derived_seed(self.config.seed, trial),
            task=self.task,
            environment=self.environment,
            seeds=tuple(
                self._evaluated(number) for number in range(min(len(self.seeds), self._settled))
            ),
            elites=tuple((elite, self._evaluated(elite.outcome.trial)) for elite in elites),
            recent=tuple(self._evaluated(number) for number in self._recent),
            pending=self._pending(trial),
        )

    def _pending(self, trial: int) -> Callable[[], Awaitable[tuple[Proposal, ...]]]:
        """The proposals between the horizon and `trial`, for generators that must not repeat
        them.
        """
        numbers = range(max(self.horizon(trial) + 1, 0), trial)

        async def wait() -> tuple[Proposal, ...]:
            return tuple(
                [
                    await asyncio.shield(self._proposals[number])
                    for number in numbers
                    if number in self._proposals
                ]
            )

        return wait

    def _evaluated(self, trial: int) -> Evaluated:
        if trial not in self._kept:
            self._keep(trial, _load_evaluated(self.store, trial))
        self._kept.move_to_end(trial)
        return self._kept[trial]

    def _keep(self, trial: int, evaluated: Evaluated) -> None:
        self._kept[trial] = evaluated
        while len(self._kept) > KEPT_EVALUATED:
            self._kept.popitem(last=False)


def _key(source_digest: str, tunables: dict[str, int]) -> str:
    return f"{source_digest} {digest_json(tunables)}" if source_digest else ""


def _first_verdict(store: Store, trial: int) -> Verdict:
    row = store.get(VerdictRow, trial, FIRST)
    assert row is not None  # only settled trials are asked for
    return row.verdict


def _load_evaluated(store: Store, trial: int) -> Evaluated:
    row, first = store.get(ProposalRow, trial), _first_verdict(store, trial)
    verification = store.get(VerdictRow, trial, VERIFY)
    assert row is not None  # as above
    verified = outcome_of(trial, row.proposal, verification.verdict) if verification else None
    outcome = outcome_of(trial, row.proposal, first).after(verified)
    verdict = verification.verdict if verification else first
    return Evaluated(outcome, row.proposal.source or "", verdict)
