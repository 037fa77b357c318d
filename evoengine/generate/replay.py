"""Proposals from the stored replies of an earlier run: no model is asked, nothing is paid.

Replies are parsed like those of a live model, so a run can be repeated on another device,
or with a later parser. Trials without replies (starting kernels, tuned ones) are proposed
again as they were.
"""

from __future__ import annotations

from evoengine.generate.conversation import Conversation, Prompt
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
        """Ignored: the replies are already known."""

    async def propose(self, request: Request, replies: Replies) -> Proposal:
        """The earlier run's proposal for this trial; raises Exhausted beyond its end."""
        stored = self._recorded.get(ProposalRow, request.trial)
        if self._recorded.get(ReplyRow, request.trial, 0) is not None:
            proposal = await self._read_again(request, replies)
            return _by_recorded_operator(proposal, stored.proposal) if stored else proposal
        if stored is None:
            raise Exhausted(
                f"the recorded run holds nothing for trial {request.trial}: all of it has been"
                " replayed"
            )
        return stored.proposal

    async def close(self) -> None:
        """Leaves the recorded store open: the caller closes it."""

    async def _read_again(self, request: Request, replies: Replies) -> Proposal:
        """The proposal of the recorded replies, which are stored with the new run as well."""

        async def ask(turn: int, prompt: Prompt) -> Reply | None:
            row = self._recorded.get(ReplyRow, request.trial, turn)
            return None if row is None else await replies.get_or_ask(turn, lambda: _free(row))

        return await Conversation(request, choose(request), ask, self._refuse).proposal()


def _by_recorded_operator(proposal: Proposal, recorded: Proposal) -> Proposal:
    """`proposal` with the parents and the operator that its prompt was rendered with."""
    operator = proposal.operator if proposal.operator == "repair" else recorded.operator
    return proposal.model_copy(update={"operator": operator, "parents": recorded.parents})


async def _free(row: ReplyRow) -> Reply:
    """The recorded reply at no cost: the earlier run paid for it."""
    return row.reply.model_copy(update={"usage": Usage()})


def _make(context: GeneratorContext) -> ReplayGenerator:
    assert context.recorded is not None  # a run without one is refused before it begins
    return ReplayGenerator(context.recorded, context.refuse)


KIND = GeneratorKind(_make)
