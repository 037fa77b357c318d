"""The search: proposes, evaluates, settles, and can be killed at any instant.

Several trials are under way at once, yet they settle in the order of their numbers, and
trial n is proposed from exactly the trials up to `horizon(n)`. So what a trial sees does
not depend on timing. A resumed run adds its stored trials through the same code, so that it
goes on as if it had never been stopped.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterator
from functools import partial

from evoengine.candidate import kernel_file
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
from evoengine.search.settled_trials import settled_trials
from evoengine.search.shared_verdicts import SharedVerdicts
from evoengine.search.stored_replies import StoredReplies
from evoengine.task.schema import Task

RECENT = 8  # settled trials in a request; a prompt has no room for more
EVALUATED_IN_MEMORY = 64  # the rest is read from the store when it is needed
INTERRUPTED = "interrupted"
WAITING = "waiting for the verdict on trial {}, which has the same candidate"


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
    ) -> None:
        """`now` returns the current time as rows store it."""
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
        self._first_trial_of: dict[str, int] = {}  # by candidate key
        self._evaluated_cache: OrderedDict[int, Evaluated] = OrderedDict()
        # of the trials in flight
        self._proposals: dict[int, asyncio.Future[Proposal]] = {}
        self._in_flight: dict[int, asyncio.Task[tuple[Proposal, Verdict]]] = {}
        self._shared_verdicts = SharedVerdicts()
        self._replies = StoredReplies(
            store, now, store.spent().usage, lambda total: self.observe(Spent(total))
        )
        self._stop_reason: Callable[[], str] = lambda: INTERRUPTED

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
        for settled in settled_trials(
            self._stored_up_to_horizon(), self.population.would_take_place
        ):
            self._add(settled.first, settled.verified, None)

    def _stored_up_to_horizon(self) -> Iterator[tuple[int, TrialSummary]]:
        """The stored trials up to the horizon of the first one without a proposal."""
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
        stop_now: asyncio.Event | None = None,
        stop_reason: Callable[[], str] = lambda: INTERRUPTED,
    ) -> RunEnded:
        """Searches until the budget is spent, nothing is left to try, or `stop` is set.

        After `stop`, replies that a model is still writing are waited for and stored, because they
        are paid for, unless `stop_now` is set as well. `stop_reason` returns why `stop` was set.
        """
        self._stop_reason = stop_reason
        stopping = asyncio.create_task(stop.wait())
        try:
            ended = await self._search(stopping)
        finally:
            stopping.cancel()
            await self._cancel_in_flight(stop_now)
        self.observe(ended)
        return ended

    # ---------------------------------------------------------------- the loop

    async def _search(self, stopping: asyncio.Task[bool]) -> RunEnded:
        try:
            for trial in range(self._settled, self.config.trials):
                if not await self._settle_through(self.horizon(trial), stopping):
                    return self._interrupted()
                self._start_trial(trial)
            if (
                not await self._settle_through(self.config.trials - 1, stopping)
                and self._settled < self.config.trials
            ):
                return self._interrupted()
        except Exhausted as exhausted:
            return RunEnded(reason=str(exhausted), complete=True)
        return RunEnded(reason="the budget of trials is spent", complete=True)

    def _interrupted(self) -> RunEnded:
        return RunEnded(reason=self._stop_reason(), complete=False)

    async def _settle_through(self, last: int, stopping: asyncio.Task[bool]) -> bool:
        """Settles trials in order up to `last`; returns False if `stopping` is done first."""
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
        """Waits for a trial's verdict, verifies it if it would take a place, and adds it."""
        proposal, verdict = await asyncio.shield(self._in_flight[trial])
        outcome = outcome_of(trial, proposal, verdict)
        verification: Verdict | None = None
        if self.population.would_take_place(outcome):
            verification = await self._verify(trial, proposal)
        verified = outcome_of(trial, proposal, verification) if verification else None
        self._add(
            outcome, verified, Evaluated(outcome, proposal.source or "", verification or verdict)
        )
        del self._in_flight[trial], self._proposals[trial]
        self._shared_verdicts.forget(trial)

    def _add(self, outcome: Outcome, verified: Outcome | None, evaluated: Evaluated | None) -> None:
        """Adds a settled trial to population and generator; used live and on resume."""
        place = self.population.add(outcome, verified)
        final = outcome.after(verified)
        if evaluated is not None:
            self._keep(outcome.trial, Evaluated(final, evaluated.source, evaluated.verdict))
        self._first_trial_of.setdefault(
            _candidate_key(outcome.source_digest, outcome.tunables), outcome.trial
        )
        self._recent.append(outcome.trial)
        self._settled = outcome.trial + 1
        self.generator.tell(final)
        self.observe(TrialSettled(final, place, self.population.elites))

    # ---------------------------------------------------------------- one trial

    def _start_trial(self, trial: int) -> None:
        request = self._request(trial)
        self._proposals[trial] = asyncio.get_running_loop().create_future()
        self._in_flight[trial] = asyncio.create_task(
            self._run_trial(trial, request, self._proposals[trial])
        )

    async def _run_trial(
        self, trial: int, request: Request, proposed: asyncio.Future[Proposal]
    ) -> tuple[Proposal, Verdict]:
        """Proposes and evaluates one trial; steps whose results are stored are skipped."""
        began = self.now()
        try:
            proposal = await self._propose(trial, request)
        except BaseException:
            proposed.cancel()
            raise
        proposed.set_result(proposal)
        stored = self.store.get(VerdictRow, trial, FIRST)
        if stored is not None:
            if stored.verdict.status is not Status.rejected:
                self._shared_verdicts.add(
                    _candidate_key(digest(proposal.source or ""), proposal.tunables),
                    trial,
                    stored.verdict,
                )
            return proposal, stored.verdict
        verdict = await self._evaluate(trial, proposal)
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

    async def _evaluate(self, trial: int, proposal: Proposal) -> Verdict:
        """The first verdict of a proposal; rejected without a candidate or for a repeated one."""
        if proposal.source is None:
            reason, _, detail = (proposal.problem or "no candidate").partition("\n")
            return Verdict(status=Status.rejected, reason=reason, detail=detail)
        try:
            candidate = kernel_file.parse(proposal.source, f"trial {trial}").tuned(
                proposal.tunables
            )
        except CandidateError as error:
            return Verdict(status=Status.rejected, reason=str(error))
        key = _candidate_key(candidate.source_digest, proposal.tunables)
        earlier = self._first_trial_of.get(key)
        if earlier is None:
            progress = self._progress(trial, proposal.label or candidate.plan.name)
            return await self._shared_verdicts.get_or_evaluate(
                key,
                trial,
                partial(self.executor.evaluate, candidate, progress),
                on_wait=lambda first: progress(WAITING.format(first)),
            )
        if earlier > self.horizon(trial):  # it was in flight when this one was proposed
            return _stored_first_verdict(self.store, earlier)
        return Verdict(
            status=Status.rejected,
            reason=f"the same as trial {earlier}",
            tier=candidate.plan.precision,
        )

    async def _verify(self, trial: int, proposal: Proposal) -> Verdict:
        """The verification: a verdict by a process that has run no other candidate."""
        stored = self.store.get(VerdictRow, trial, VERIFY)
        if stored is not None:
            return stored.verdict
        assert proposal.source is not None
        began = self.now()
        candidate = kernel_file.parse(proposal.source, f"trial {trial}").tuned(proposal.tunables)
        verdict = await self.executor.evaluate(
            candidate, self._progress(trial, proposal.label, "verify: "), verify=True
        )
        self.store.append(VerdictRow(trial, VERIFY, verdict, began, self.now()))
        return verdict

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
        elites = self.population.elites
        return Request(
            trial=trial,
            seed=derived_seed(self.config.seed, trial),
            task=self.task,
            environment=self.environment,
            seeds=tuple(
                self._evaluated_trial(number)
                for number in range(min(len(self.seeds), self._settled))
            ),
            elites=tuple((elite, self._evaluated_trial(elite.outcome.trial)) for elite in elites),
            recent=tuple(self._evaluated_trial(number) for number in self._recent),
            pending=self._pending(trial),
        )

    def _pending(self, trial: int) -> Callable[[], Awaitable[tuple[Proposal, ...]]]:
        """Request.pending of `trial`: waits for the proposals after its horizon."""
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

    def _evaluated_trial(self, trial: int) -> Evaluated:
        if trial not in self._evaluated_cache:
            self._keep(trial, _load_evaluated(self.store, trial))
        self._evaluated_cache.move_to_end(trial)
        return self._evaluated_cache[trial]

    def _keep(self, trial: int, evaluated: Evaluated) -> None:
        self._evaluated_cache[trial] = evaluated
        while len(self._evaluated_cache) > EVALUATED_IN_MEMORY:
            self._evaluated_cache.popitem(last=False)


def _candidate_key(source_digest: str, tunables: dict[str, int]) -> str:
    """Equal for identical candidates; "" without a candidate."""
    return f"{source_digest} {digest_json(tunables)}" if source_digest else ""


def _stored_first_verdict(store: Store, trial: int) -> Verdict:
    row = store.get(VerdictRow, trial, FIRST)
    assert row is not None  # callers pass trials that have one
    return row.verdict


def _load_evaluated(store: Store, trial: int) -> Evaluated:
    row, first = store.get(ProposalRow, trial), _stored_first_verdict(store, trial)
    verification = store.get(VerdictRow, trial, VERIFY)
    assert row is not None  # `trial` has a verdict
    verified = outcome_of(trial, row.proposal, verification.verdict) if verification else None
    outcome = outcome_of(trial, row.proposal, first).after(verified)
    verdict = verification.verdict if verification else first
    return Evaluated(outcome, row.proposal.source or "", verdict)
