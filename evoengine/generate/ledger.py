"""The cost of replies, and the cap on it.

Before a request is sent, the most that it should cost is set aside; a request that might
not fit beside those in flight waits for them, and one that cannot fit at all ends the
run. A request whose answer never came may have been paid for: its whole amount counts
against the cap from then on.

The cap holds as long as the endpoint keeps `max_tokens`. With an endpoint that ignores it,
the requests in flight can exceed the cap: then the user is notified and nothing more is
asked. Before that, as much is set aside for every request as the longest reply needed.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from evoengine.config import ModelSettings
from evoengine.errors import UsageError
from evoengine.protocols import Exhausted, Spending
from evoengine.records import Usage

MESSAGE_TOKENS = 64  # roles and separators of one message; OpenAI's cookbook counts 3 to 7

# USD per million tokens (prompt, completion): OpenAI's standard tier, without cache discounts.
# Source: https://developers.openai.com/api/docs/pricing as quoted by dated tables of March to June
# 2026.
PRICES_AS_OF = "June 2026"
PRICES = {
    "gpt-4.1": (2.00, 8.00),
    "gpt-4.1-mini": (0.40, 1.60),
    "gpt-4.1-nano": (0.10, 0.40),
    "gpt-4o": (2.50, 10.00),
    "gpt-4o-mini": (0.15, 0.60),
    "o3": (2.00, 8.00),
    "o4-mini": (1.10, 4.40),
    "gpt-5": (1.25, 10.00),
    "gpt-5-mini": (0.25, 2.00),
    "gpt-5-nano": (0.05, 0.40),
    "gpt-5.1": (1.25, 10.00),
    "gpt-5.2": (1.75, 14.00),
    "gpt-5.4": (2.50, 15.00),
    "gpt-5.4-mini": (0.75, 4.50),
    "gpt-5.5": (5.00, 30.00),
}


@dataclass(frozen=True)
class Price:
    """USD per million tokens."""

    prompt: float
    completion: float

    def cost_usd(self, prompt_tokens: int, completion_tokens: int) -> float:
        """The cost of so many tokens."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6


def price_of(settings: ModelSettings) -> Price | None:
    """The price in the settings, else the one in the table; None where there is neither."""
    prompt, completion = settings.usd_per_million_prompt, settings.usd_per_million_completion
    if prompt is not None and completion is not None:
        return Price(prompt, completion)
    if prompt is not None or completion is not None:
        raise UsageError(
            "a price needs both usd_per_million_prompt and usd_per_million_completion, got one of"
            " them"
        )
    # vendor prefix and snapshot date
    name = re.sub(r"-\d{4}-\d{2}-\d{2}$", "", settings.model.rpartition("/")[2])
    return Price(*PRICES[name]) if name in PRICES else None


def most_tokens(text: str) -> int:
    """At least the tokens of `text`: a byte-level tokenizer never makes more tokens than bytes."""
    return len(text.encode())


class Hold:
    """The amount that one request in flight has set aside."""

    def __init__(self, usd: float) -> None:
        self.usd = usd
        self.paid: Usage | None = None
        self.lost = False

    def pay(self, usage: Usage) -> None:
        """Records that the request was answered and cost `usage`."""
        self.paid = usage

    def lose(self) -> None:
        """Records that the request may have been paid for, although its answer never came."""
        self.lost = True


class Ledger:
    """Counts the cost of replies, and sets aside the most that requests in flight can cost."""

    def __init__(
        self, settings: ModelSettings, before: Spending, notify: Callable[[str], None]
    ) -> None:
        """`before` is what earlier processes have spent; replies without a price then are counted
        at today's.
        """
        self.price = price_of(settings)
        unpriced = self.usage(before.unpriced.prompt_tokens, before.unpriced.completion_tokens)
        self.spent = before.usage + Usage(cost_usd=unpriced.cost_usd)
        self.lost_usd = (
            before.unanswered.most_usd
            + before.unanswered.unpriced * self.usage(0, settings.max_tokens).cost_usd
        )
        self._notify = notify
        self._cap_usd = settings.cost_cap_usd
        self._asked_tokens = settings.max_tokens
        # of the longest reply so far, or as many as are asked for
        self._most_tokens = max(settings.max_tokens, before.longest_reply)
        self._notified_of_cap = False  # whether the user knows that the cap is exceeded
        self._holds: set[Hold] = set()
        self._freed = asyncio.Event()
        if self.price is None and self._cap_usd is not None:
            raise UsageError(
                f"a cost cap of ${self._cap_usd:.2f} cannot be kept: the price of model"
                f" {settings.model!r} is unknown; give it with --price, e.g. --price 2/8 for $2 a"
                " million prompt and $8 a million completion tokens"
            )
        if self.price is None:
            notify(
                f"price of model {settings.model} unknown: cost is not counted; give it with"
                " --price"
            )

    def usage(self, prompt_tokens: int, completion_tokens: int) -> Usage:
        """So many tokens with their cost; 0 where the price is unknown."""
        cost = self.price.cost_usd(prompt_tokens, completion_tokens) if self.price else 0.0
        return Usage(
            prompt_tokens=prompt_tokens, completion_tokens=completion_tokens, cost_usd=cost
        )

    @asynccontextmanager
    async def hold(self, prompt: str) -> AsyncIterator[Hold]:
        """Sets aside the most that asking `prompt` can cost; raises Exhausted when the cap leaves
        no room for it.
        """
        while not self._fits(worst := self._worst_usd(prompt)):
            if not self._holds:
                raise Exhausted(self._exhausted(worst))
            await self._freed.wait()
        hold = Hold(worst)
        self._holds.add(hold)
        try:
            yield hold
        finally:
            self._release(hold)

    def _worst_usd(self, prompt: str) -> float:
        return self.usage(most_tokens(prompt) + MESSAGE_TOKENS, self._most_tokens).cost_usd

    @property
    def _most_spent_usd(self) -> float:
        """The cost of all requests, certain and possible."""
        return self.spent.cost_usd + self.lost_usd

    def _fits(self, usd: float) -> bool:
        if self._cap_usd is None:
            return True
        return self._most_spent_usd + sum(hold.usd for hold in self._holds) + usd <= self._cap_usd

    def _exhausted(self, worst_usd: float) -> str:
        lost = (
            f" and up to ${self.lost_usd:.4f} of requests without an answer"
            if self.lost_usd
            else ""
        )
        begin = f"cost cap of ${self._cap_usd:.2f}: ${self.spent.cost_usd:.4f} spent{lost}"
        if self._cap_usd is not None and self.spent.cost_usd > self._cap_usd:
            return (
                f"{begin}: it is exceeded, because replies were longer than asked for; no more"
                " requests are sent"
            )
        return f"{begin}, the next request can cost up to ${worst_usd:.4f}"

    def _release(self, hold: Hold) -> None:
        self._holds.discard(hold)
        if hold.paid:
            self.spent += hold.paid
            self._learn(hold.paid)
        elif hold.lost:
            self.lost_usd += hold.usd
        self._freed.set()  # all that wait check again
        self._freed = asyncio.Event()

    def _learn(self, paid: Usage) -> None:
        """Set aside more from now on where a reply was longer than `max_tokens`: others may be."""
        if paid.completion_tokens > self._most_tokens:
            self._most_tokens = paid.completion_tokens
            also = (
                "; as much is set aside for every request from now on"
                if self._cap_usd is not None
                else ""
            )
            self._notify(
                f"the endpoint ignores max_tokens: asked for {self._asked_tokens}, it sent"
                f" {paid.completion_tokens}{also}"
            )
        if (
            self._cap_usd is not None
            and self._most_spent_usd > self._cap_usd
            and not self._notified_of_cap
        ):
            self._notified_of_cap = True
            self._notify(
                f"the cost cap of ${self._cap_usd:.2f} is exceeded,"
                f" ${self._most_spent_usd:.4f} so far: no more requests are sent"
            )
