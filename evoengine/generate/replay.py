"""Proposals from the stored replies of an earlier run: no model is asked, nothing is paid.

Replies are parsed like those of a live model, so a run can be repeated on another device, or with a
later parser. Without tuning, a trial gets the replies of the trial with its number, and one without
replies (a starting kernel, a tuned one) is proposed again as it was. Beside a tuner, which proposes
for this device, the k-th trial that asks gets the replies of the k-th one that asked: on the device
of the earlier run that is the trial with its number, and elsewhere no reply is left out.
"""

from __future__ import annotations

from functools import cached_property

from evoengine.config import RunConfig
from evoengine.generate.conversation import Conversation, Prompt
from evoengine.generate.method import Method
from evoengine.generate.method_registry import method_of
from evoengine.generate.methods.full import METHOD as FULL
from evoengine.generate.parsed_reply import Refuse, refuse_nothing
from evoengine.generate.registry import GeneratorContext, GeneratorKind
from evoengine.generate.tuned_model import WITHOUT_ASKING, TunedModelGenerator
from evoengine.protocols import (
    Exhausted,
    Generator,
    ProposalRow,
    Replies,
    ReplyRow,
    Request,
    Store,
    TrialSummary,
)
from evoengine.records import Outcome, Proposal, Reply, RunInfo, Usage


class ReplayGenerator:
    """A protocols.Generator that answers from `recorded`, a store opened on an earlier run;
    `refuse` as for ModelGenerator.
    """

    def __init__(
        self, recorded: Store, refuse: Refuse = refuse_nothing, method: Method = FULL
    ) -> None:
        self._recorded = recorded
        self._refuse = refuse
        self._method = method  # of the earlier run

    @cached_property
    def asked(self) -> tuple[int, ...]:
        """The trials of the earlier run that asked, in order."""
        return tuple(
            trial for trial, summary in self._recorded.trials() if self._has_asked(trial, summary)
        )

    def tell(self, outcome: Outcome) -> None:
        """Ignored: the replies are already known."""

    async def propose(self, request: Request, replies: Replies) -> Proposal:
        """The earlier run's proposal for this trial; raises Exhausted beyond its end."""
        return await self._propose_again(request, replies, request.trial)

    async def ask(self, request: Request, replies: Replies, asked: int) -> Proposal:
        """The proposal of the earlier run's trial that was number `asked` of those that asked;
        raises Exhausted beyond the last one.
        """
        if asked >= len(self.asked):
            raise Exhausted(
                f"all {len(self.asked)} trials of the recorded run that asked have been replayed"
            )
        return await self._propose_again(request, replies, self.asked[asked])

    async def close(self) -> None:
        """Leaves the recorded store open: the caller closes it."""

    def _has_asked(self, trial: int, summary: TrialSummary) -> bool:
        if self._recorded.get(ReplyRow, trial, 0) is not None:
            return True
        row = self._recorded.get(ProposalRow, trial) if summary.proposed else None
        return row is not None and row.proposal.operator not in WITHOUT_ASKING

    async def _propose_again(self, request: Request, replies: Replies, trial: int) -> Proposal:
        """The proposal of trial number `trial` of the earlier run."""
        stored = self._recorded.get(ProposalRow, trial)
        if self._recorded.get(ReplyRow, trial, 0) is not None:
            proposal = await self._read_again(request, replies, trial)
            proposal = _by_recorded_operator(proposal, stored.proposal) if stored else proposal
        elif stored is not None:
            proposal = stored.proposal
        else:
            raise Exhausted(
                f"the recorded run holds nothing for trial {trial}: all of it has been replayed"
            )
        # the numbers of its parents are the earlier run's
        return proposal if trial == request.trial else proposal.model_copy(update={"parents": ()})

    async def _read_again(self, request: Request, replies: Replies, trial: int) -> Proposal:
        """The proposal of the recorded replies, which are stored with the new run as well."""

        async def ask(turn: int, prompt: Prompt) -> Reply | None:
            row = self._recorded.get(ReplyRow, trial, turn)
            return None if row is None else await replies.get_or_ask(turn, lambda: _free(row))

        choice = self._method.choose(request)
        visible = self._method.visible(request, choice)
        return await Conversation(visible, choice, ask, self._refuse).proposal()


def _by_recorded_operator(proposal: Proposal, recorded: Proposal) -> Proposal:
    """`proposal` with the parents and the operator that its prompt was rendered with."""
    operator = proposal.operator if proposal.operator == "repair" else recorded.operator
    return proposal.model_copy(update={"operator": operator, "parents": recorded.parents})


async def _free(row: ReplyRow) -> Reply:
    """The recorded reply at no cost: the earlier run paid for it."""
    return row.reply.model_copy(update={"usage": Usage()})


def _make(context: GeneratorContext) -> Generator:
    assert context.recorded is not None  # a run without one is refused before it begins
    info, share = context.recorded.get(RunInfo), context.config.tune_share
    method = RunConfig.model_validate(info.config).method if info else "full"
    replay = ReplayGenerator(context.recorded, context.refuse, method_of(method))
    # a run in which no model was asked has nothing to tune between
    return TunedModelGenerator(replay, share) if share and replay.asked else replay


KIND = GeneratorKind(_make)
