"""A generator that asks a model, and between replies tunes what the model has written.

Which trials tune follows from their numbers (`tuning_slots`). Such a trial gives another
configuration to one of the promising structures (`halving`, `tpe`), without tokens; where nothing
is left to tune, it asks like the others.

A tuning trial never waits for a reply: of the trials in flight it needs to know what other tuning
trials propose, and that is decided before any of them asks.
"""

from __future__ import annotations

import asyncio
import bisect
from dataclasses import dataclass, replace
from random import Random
from typing import Protocol

from evoengine.generate.halving import next_kernel
from evoengine.generate.tpe import next_point
from evoengine.generate.tunable_kernels import TunableKernels, joined_twins
from evoengine.generate.tuning_slots import TuningSlots
from evoengine.protocols import Replies, Request
from evoengine.records import Outcome, Proposal

TUNE = "tune"  # the operator of a tuned configuration
WITHOUT_ASKING = ("seed", TUNE)  # operators of trials for which nothing was asked


class AskingGenerator(Protocol):
    """A protocols.Generator whose proposals come from replies.

    `ask` is `propose` for the trial that is number `asked`, from 0, of those that ask.
    """

    def tell(self, outcome: Outcome) -> None: ...

    async def propose(self, request: Request, replies: Replies) -> Proposal: ...

    async def ask(self, request: Request, replies: Replies, asked: int) -> Proposal: ...

    async def close(self) -> None: ...


@dataclass(frozen=True)
class _InFlight:
    """What the trials between the horizon of a request and its trial do."""

    tuned: tuple[Proposal, ...]
    asking: int


class TunedModelGenerator:
    """A protocols.Generator: `model` in most trials, the tuner in a `share` of them."""

    def __init__(self, model: AskingGenerator, share: float) -> None:
        self._model = model
        self._share = share
        self._known = TunableKernels()
        self._asked: list[int] = []  # the settled trials that asked, in order
        self._proposing: set[int] = set()  # the trials in flight, but for those stored before
        # What the tuning trials in flight propose; None: nothing is left to tune, so it asks.
        self._decisions: dict[int, asyncio.Future[Proposal | None]] = {}

    def tell(self, outcome: Outcome) -> None:
        self._model.tell(outcome)
        self._known.tell(outcome)
        self._decisions.pop(outcome.trial, None)  # from now on it is settled
        self._proposing.discard(outcome.trial)
        if outcome.operator not in WITHOUT_ASKING:
            self._asked.append(outcome.trial)

    async def propose(self, request: Request, replies: Replies) -> Proposal:
        self._proposing.add(request.trial)
        slots = TuningSlots(len(request.seeds), self._share)
        if slots.has(request.trial):
            tuned = await self._decide(request, slots, replies.has_reply)
            if tuned is not None:
                return tuned
            request = replace(request, nothing_to_tune=True)
        in_flight = await self._in_flight(request, slots)
        asked = bisect.bisect_left(self._asked, request.settled) + in_flight.asking
        return await self._model.ask(request, replies, asked)

    async def close(self) -> None:
        await self._model.close()

    async def _decide(
        self, request: Request, slots: TuningSlots, has_reply: bool
    ) -> Proposal | None:
        """What a tuning trial proposes; None where nothing is left to tune, or where the trial has
        a reply, which was paid for, because its run had another share before a resume.
        """
        decision: asyncio.Future[Proposal | None] = asyncio.get_running_loop().create_future()
        self._decisions[request.trial] = decision
        try:
            tuned = (await self._in_flight(request, slots)).tuned
            decision.set_result(None if has_reply else self._tuned(request, slots, tuned))
        finally:
            if not decision.done():
                decision.cancel()
        return decision.result()

    async def _in_flight(self, request: Request, slots: TuningSlots) -> _InFlight:
        """Waits for the decisions of the tuning trials before this one.

        What was proposed before a resume, perhaps with another share, is in the store, and thus in
        `pending` at once.
        """
        before = [trial for trial in range(request.settled, request.trial) if slots.has(trial)]
        ours = {trial: self._decisions[trial] for trial in before if trial in self._decisions}
        stored = await request.pending(
            lambda trial: trial not in ours and (slots.has(trial) or trial not in self._proposing)
        )
        decided = [await asyncio.shield(decision) for decision in ours.values()]
        tuned = tuple(
            proposal
            for proposal in (*stored, *decided)
            if proposal is not None and proposal.operator == TUNE
        )
        in_flight = request.trial - max(request.settled, slots.first)
        return _InFlight(tuned, in_flight - len(tuned))

    def _tuned(
        self, request: Request, slots: TuningSlots, pending: tuple[Proposal, ...]
    ) -> Proposal | None:
        rng = Random(request.seed)  # noqa: S311 - must repeat, need not be secret
        found = (
            self._known.kernel(structure.source, structure, request, pending)
            for structure in request.structures
        )
        kernels = joined_twins(kernel for kernel in found if kernel is not None)
        while kernels:
            kernel = next_kernel(kernels, slots.before(request.trial), rng)
            point = next_point(kernel, request.seed, rng)
            if point is not None:
                return kernel.proposal(point)
            kernels.remove(kernel)
        return None
