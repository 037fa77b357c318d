"""Proposals from a language model behind any OpenAI-compatible endpoint.

Every trial is a conversation of at most two turns: a prompt by one of the operators,
and one repair turn when the reply holds no usable kernel. A reply is stored before it
is read, so a run that was killed continues from what it has already paid for.

When the endpoint is not there from the start, refuses, or stays unwell after all
retries, GeneratorError stops the run; all that was stored stays, and a resume goes on.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from evoengine.config import ModelSettings
from evoengine.generate import draft
from evoengine.generate.draft import Draft, Refuse, refuse_nothing
from evoengine.generate.ledger import Ledger, most_tokens
from evoengine.generate.operators import choose
from evoengine.generate.prompt import Prompts
from evoengine.generate.retry import Retries, Transient
from evoengine.records import Outcome, Proposal, Reply, Usage
from evoengine.seams import Replies, Request

if TYPE_CHECKING:
    from evoengine.generate.endpoint import Answer


def check_settings(settings: ModelSettings, environ: Mapping[str, str]) -> None:
    """Raises GeneratorError or UsageError for settings with which nothing could ever be asked; sends nothing."""
    from evoengine.generate.endpoint import checked_target

    checked_target(settings, environ)
    Ledger(settings, Usage(), lambda _: None)


class ModelGenerator:
    """A seams.Generator that asks a model.

    `spent` is what the run's stored replies have cost: the cap of `settings` counts it.
    `refuse` raises CandidateError for code that may not be compiled; its words go into the repair turn.
    `notify` is told what a user should see: an unknown price, an attempt that failed.
    """

    def __init__(
        self,
        settings: ModelSettings,
        task_path: Path,
        spent: Usage = Usage(),  # noqa: B008 - frozen
        notify: Callable[[str], None] = lambda text: None,
        refuse: Refuse = refuse_nothing,
        environ: Mapping[str, str] = os.environ,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: random.Random | None = None,
    ) -> None:
        from evoengine.generate.endpoint import Endpoint  # here, because the openai package takes half a second to import

        self._settings = settings
        self._refuse = refuse
        self._prompts = Prompts(task_path)
        self._ledger = Ledger(settings, spent, notify)
        self._endpoint = Endpoint(settings, environ)
        self._retries = Retries(settings.retries, sleep, jitter or random.Random(), notify)  # noqa: S311 - spreads requests, hides nothing

    @property
    def spent(self) -> Usage:
        """What all replies of the run have cost, earlier processes included."""
        return self._ledger.spent

    def tell(self, outcome: Outcome) -> None:
        """Nothing is kept: what a prompt needs of the past stands in the request."""

    async def propose(self, request: Request, replies: Replies) -> Proposal:
        """A candidate by the operator that the request's seed chooses."""
        choice = choose(request)
        prompt = self._prompts.render(choice, request)
        reply = await replies.get_or_ask(0, lambda: self._ask(prompt))
        made = draft.read(reply, request, self._refuse)
        operator = choice.operator
        if made.source is None:
            made = await self._repair(prompt, reply, made, request, replies)
            operator = "repair" if made.source else operator
        return made.proposal(operator, choice.trials)

    async def close(self) -> None:
        """Closes the connections to the endpoint."""
        await self._endpoint.close()

    async def _repair(self, prompt: str, reply: Reply, made: Draft, request: Request, replies: Replies) -> Draft:
        again = self._prompts.repair(prompt, reply, made)
        repaired = await replies.get_or_ask(1, lambda: self._ask(again))
        return draft.read(repaired, request, self._refuse)

    async def _ask(self, prompt: str) -> Reply:
        return await self._retries.run(lambda: self._attempt(prompt))

    async def _attempt(self, prompt: str) -> Reply:
        async with self._ledger.hold(prompt) as hold:
            try:
                answer = await self._endpoint.ask(prompt)
            except Transient as failure:
                if failure.maybe_paid:
                    hold.lose()
                raise
            usage = self._usage(prompt, answer)
            hold.settle(usage)
        return Reply(model=self._settings.model, prompt=prompt, text=answer.text, usage=usage, finish_reason=answer.finish_reason)

    def _usage(self, prompt: str, answer: Answer) -> Usage:
        """What the endpoint counted; where it counts nothing, the most that the texts can have."""
        prompt_tokens = most_tokens(prompt) if answer.prompt_tokens is None else answer.prompt_tokens
        completion_tokens = most_tokens(answer.text) if answer.completion_tokens is None else answer.completion_tokens
        return self._ledger.usage(prompt_tokens, completion_tokens)
