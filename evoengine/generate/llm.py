"""Proposals from a language model behind any OpenAI-compatible endpoint.

Every trial is a conversation of at most two turns: a prompt by one of the operators,
and one repair turn when the reply holds no usable kernel. A reply is stored before it
is read, so a run that was killed continues from what it has already paid for.

A request that the endpoint refuses, or fails on again and again while it answers others,
costs its trial only. When the endpoint is not there from the start, refuses the key, fails
for longer than the run's patience, or when reply after reply holds no kernel,
GeneratorError stops the run; all that was stored stays, and a resume continues.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from evoengine.config import ModelSettings, PromptSettings, RunConfig
from evoengine.errors import GeneratorError
from evoengine.generate import reply_text
from evoengine.generate.circuit_breaker import CircuitBreaker, RequestRefused, Transient
from evoengine.generate.conversation import Conversation, Prompt
from evoengine.generate.endpoint_address import address_of
from evoengine.generate.ledger import Ledger, most_tokens
from evoengine.generate.method import Method
from evoengine.generate.method_registry import method_of
from evoengine.generate.methods.full import METHOD as FULL
from evoengine.generate.parsed_reply import Refuse, refuse_nothing
from evoengine.generate.prompt_templates import Prompts
from evoengine.generate.registry import GeneratorContext, GeneratorKind
from evoengine.generate.tuned_model import TunedModelGenerator
from evoengine.protocols import Generator, Replies, Request, Spending
from evoengine.records import Outcome, Proposal, Reply, Unanswered, Usage

if TYPE_CHECKING:
    from evoengine.generate.endpoint import EndpointAnswer


def check_settings(settings: ModelSettings, environ: Mapping[str, str]) -> None:
    """Raises GeneratorError or UsageError for settings with which no request could be sent; sends
    nothing.
    """
    address_of(settings.base_url, environ)
    Ledger(settings, Spending(), lambda _: None)


class AnsweringEndpoint(Protocol):
    """What a ModelGenerator asks; generate/endpoint.py has the real one.

    `notice` is for the user, once. `ask` raises Transient, RequestRefused or GeneratorError.
    """

    notice: str

    async def ask(self, prompt: str) -> EndpointAnswer: ...

    async def close(self) -> None: ...


class ModelGenerator:
    """A protocols.Generator that asks a model.

    `before` is what earlier processes of the run have spent, or may have: the cap of `settings`
    counts it. `refuse` raises CandidateError for code that may not be compiled; its words go into
    the repair turn. `notify` gets messages for the user: an unknown price, a failed attempt. With
    `endpoint`, that is asked in place of the one that `environ` names.
    """

    def __init__(
        self,
        settings: ModelSettings,
        task_path: Path,
        before: Spending = Spending(),  # noqa: B008 - frozen
        notify: Callable[[str], None] = lambda text: None,
        refuse: Refuse = refuse_nothing,
        environ: Mapping[str, str] = os.environ,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: random.Random | None = None,
        clock: Callable[[], float] = time.monotonic,
        method: Method = FULL,
        prompts: PromptSettings = PromptSettings(),  # noqa: B008 - frozen
        endpoint: AnsweringEndpoint | None = None,
    ) -> None:
        self._settings = settings
        self._refuse = refuse
        self._method = method
        self._prompts = Prompts(task_path, prompts)
        self._ledger = Ledger(settings, before, notify)
        self._endpoint = endpoint or _endpoint(settings, environ)
        self._circuit = CircuitBreaker(
            settings.retries, settings.patience_s, notify, sleep, jitter, clock
        )
        # in an earlier process; then the settings work, and a refusal is of one request
        self._was_answered = before.usage != Usage()
        self._without_kernel = 0  # requests of this process in a row without a kernel
        self._refusal = ""  # of the last request, where it was refused
        if self._endpoint.notice:
            notify(self._endpoint.notice)
        if before.unanswered.requests:
            notify(_possibly_paid(before.unanswered, self._ledger.lost.usd))

    @property
    def spent(self) -> Usage:
        """The cost of all replies of the run, earlier processes included."""
        return self._ledger.spent

    def tell(self, outcome: Outcome) -> None:
        """Ignored: the request holds all that a prompt needs."""

    async def propose(self, request: Request, replies: Replies) -> Proposal:
        """A candidate by the operator that the method chooses."""

        async def ask(turn: int, prompt: Prompt) -> Reply:
            return await self._reply(replies, turn, prompt(self._prompts))

        choice = self._method.choose(request)
        visible = self._method.visible(request, choice)
        return await Conversation(visible, choice, ask, self._refuse).proposal()

    async def ask(self, request: Request, replies: Replies, asked: int) -> Proposal:
        """As `propose`: which trial of those that ask it is decides nothing."""
        return await self.propose(request, replies)

    async def close(self) -> None:
        """Closes the connections to the endpoint."""
        await self._endpoint.close()

    async def _reply(self, replies: Replies, turn: int, prompt: str) -> Reply:
        """The reply of a turn. Only one that was asked now counts among those without a kernel."""
        asked: list[bool] = []

        async def ask() -> Reply:
            asked.append(True)
            return await self._ask(replies, turn, prompt)

        reply = await replies.get_or_ask(turn, ask)
        if asked:
            self._count(reply)
        return reply

    def _count(self, reply: Reply) -> None:
        self._refusal = ""
        has_kernel = reply_text.read(reply.text).kernel is not None
        self._without_kernel = 0 if has_kernel else self._without_kernel + 1

    async def _ask(self, replies: Replies, turn: int, prompt: str) -> Reply:
        limit = self._settings.replies_without_kernel
        if self._without_kernel >= limit:
            why = (
                f"; the last one: {self._refusal}"
                if self._refusal
                else ": read some replies under trials/"
            )
            raise GeneratorError(
                f"the last {self._without_kernel} requests to {self._settings.model} brought no"
                f" kernel; no more requests are sent{why}; then resume, perhaps with another"
                " --model"
            )
        try:
            return await self._circuit.run(lambda: self._attempt(replies, turn, prompt))
        except RequestRefused as refused:
            self._without_kernel += 1
            self._refusal = str(refused)
            if not (self._was_answered or self._circuit.answers):
                raise GeneratorError(str(refused)) from None
            raise

    async def _attempt(self, replies: Replies, turn: int, prompt: str) -> Reply:
        async with self._ledger.hold(prompt) as hold:
            most = hold.most
            number = replies.send(turn, most.usd if self._ledger.price else None, most.tokens)
            try:
                answer = await self._endpoint.ask(prompt)
            except Transient as failure:
                replies.fail(number, str(failure), failure.maybe_paid)
                if failure.maybe_paid:
                    hold.lose()
                raise
            except (RequestRefused, GeneratorError) as refused:
                replies.fail(number, str(refused), maybe_paid=False)
                raise
            usage = self._usage(prompt, answer)
            hold.pay(usage)
        return Reply(
            model=self._settings.model,
            prompt=prompt,
            text=answer.text,
            usage=usage,
            finish_reason=answer.finish_reason,
        )

    def _usage(self, prompt: str, answer: EndpointAnswer) -> Usage:
        """The tokens as the endpoint counts them, else the most that the texts can have."""
        prompt_tokens = (
            most_tokens(prompt) if answer.prompt_tokens is None else answer.prompt_tokens
        )
        completion_tokens = (
            most_tokens(answer.text)
            if answer.completion_tokens is None
            else answer.completion_tokens
        )
        return self._ledger.usage(prompt_tokens, completion_tokens)


def _endpoint(settings: ModelSettings, environ: Mapping[str, str]) -> AnsweringEndpoint:
    # here, because the openai package takes half a second to import
    from evoengine.generate.endpoint import Endpoint

    return Endpoint(settings, environ)


def _possibly_paid(unanswered: Unanswered, most_usd: float) -> str:
    count = unanswered.requests
    what = (
        "request of an earlier process was" if count == 1 else "requests of earlier processes were"
    )
    cost = f", for up to ${most_usd:.4f}" if most_usd else ""
    return (
        f"{count} {what} never answered and may have been paid for{cost}; caps on cost and"
        " tokens count that"
    )


def _make(context: GeneratorContext) -> Generator:
    config = context.config
    model = ModelGenerator(
        config.model,
        Path(config.task),
        context.store.spent(),
        context.notify,
        context.refuse,
        context.environ,
        method=method_of(config.method),
        prompts=config.prompts,
    )
    return TunedModelGenerator(model, config.tune_share) if config.tune_share else model


def _check(config: RunConfig, environ: Mapping[str, str]) -> None:
    check_settings(config.model, environ)
    Prompts(Path(config.task), config.prompts)  # raises for templates that cannot be used


KIND = GeneratorKind(_make, _check)
