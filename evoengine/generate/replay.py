"""Proposals from the stored replies of an earlier run: nothing is asked, nothing is paid.

Replies go through the same reader as those of a live model, so a run can be done again
on another device, or with a later reader. Trials without replies (starting kernels,
tuned ones) are given back as they were proposed.
"""

from __future__ import annotations

from evoengine.generate import parsed_reply
from evoengine.generate.operators import choose
from evoengine.generate.parsed_reply import Refuse, refuse_nothing
from evoengine.generate.registry import GeneratorContext, GeneratorKind
from evoengine.protocols import Exhausted, ProposalRow, Replies, ReplyRow, Request, Store
from evoengine.records import Outcome, Proposal, Reply, Usage


class ReplayGenerator:
    """A protocols.Generator that answers from `recorded`, a store opened on an earlier run;
    `refuse` as for ModelGenerator.
    """

    def __init__(self, recorded: Store, refuse: Refuse = refuse_nothing) -> None:
        self._recorded = recorded
        self._refuse = refuse

    def tell(self, outcome: Outcome) -> None:
        """Nothing is kept: the answers are already known."""

    async def propose(self, request: Request, replies: Replies) -> Proposal:
        """What the earlier run proposed for this trial; raises Exhausted beyond its end."""
        stored = self._recorded.get(ProposalRow, request.trial)
        first = self._recorded.get(ReplyRow, request.trial, 0)
        if first is not None:
            return await self._read_again(
                request, replies, first, stored.proposal if stored else None
            )
        if stored is None:
            raise Exhausted(
                f"the recorded run holds nothing for trial {request.trial}: all of it has been"
                " replayed"
            )
        return stored.proposal

    async def close(self) -> None:
        """Leaves the recorded store to whoever opened it."""

    async def _read_again(
        self, request: Request, replies: Replies, first: ReplyRow, earlier: Proposal | None
    ) -> Proposal:
        choice = choose(request)
        operator, parents = (
            (earlier.operator, earlier.parents) if earlier else (choice.operator, choice.trials)
        )
        made = parsed_reply.read(await _hand_on(replies, first), request, self._refuse)
        second = self._recorded.get(ReplyRow, request.trial, 1)
        if made.source is None and second is not None:
            made = parsed_reply.read(await _hand_on(replies, second), request, self._refuse)
            operator = "repair" if made.source else operator
        return made.proposal(operator, parents)


async def _hand_on(replies: Replies, row: ReplyRow) -> Reply:
    """The recorded reply, stored with the new run as well, at no cost: it was paid for by the old
    one.
    """

    async def free() -> Reply:
        return row.reply.model_copy(update={"usage": Usage()})

    return await replies.get_or_ask(row.turn, free)


def _make(context: GeneratorContext) -> ReplayGenerator:
    assert context.recorded is not None  # a run without one is refused before it begins
    return ReplayGenerator(context.recorded, context.refuse)


KIND = GeneratorKind(_make)
