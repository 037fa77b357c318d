"""The cost and the tokens of replies, and the caps on them.

Before a request is sent, the most that it should take is set aside; a request that might
not fit beside those in flight waits for them, and one that cannot fit at all ends the
run. A request whose answer never came may have been paid for: its whole amount counts
against the caps from then on.

A cap holds as long as the endpoint keeps `max_tokens`. With an endpoint that ignores it,
the requests in flight can exceed a cap: then the user is notified and nothing more is
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
from evoengine.records import EndKind, Usage

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


@dataclass(frozen=True)
class Amount:
    """What requests take: USD, and the tokens of prompts and replies together."""

    usd: float = 0.0
    tokens: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.usd + other.usd, self.tokens + other.tokens)


class Hold:
    """The amount that one request in flight has set aside."""

    def __init__(self, most: Amount) -> None:
        self.most = most
        self.paid: Usage | None = None
        self.lost = False

    def pay(self, usage: Usage) -> None:
        """Records that the request was answered and cost `usage`."""
        self.paid = usage

    def lose(self) -> None:
        """Records that the request may have been paid for, although its answer never came."""
        self.lost = True


class Ledger:
    """Counts the cost and the tokens of replies, and sets aside the most that requests in flight
    can take.
    """

    def __init__(
        self, settings: ModelSettings, before: Spending, notify: Callable[[str], None]
    ) -> None:
        """`before` is what earlier processes have spent; replies without a price then are counted
        at today's, requests without a count of tokens at the longest reply that is asked for.
        """
        self.price = price_of(settings)
        unpriced = self.usage(before.unpriced.prompt_tokens, before.unpriced.completion_tokens)
        self.spent = before.usage + Usage(cost_usd=unpriced.cost_usd)
        lost = before.unanswered
        self.lost = Amount(
            lost.most_usd + lost.unpriced * self.usage(0, settings.max_tokens).cost_usd,
            lost.most_tokens + lost.uncounted * settings.max_tokens,
        )
        self._notify = notify
        self._cap_usd = settings.cost_cap_usd
        self._token_cap = settings.token_cap
        self._asked_tokens = settings.max_tokens
        # of the longest reply so far, or as many as are asked for
        self._most_tokens = max(settings.max_tokens, before.longest_reply)
        self._exceeded: set[EndKind] = set()  # the caps that the user knows to be exceeded
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
        """Sets aside the most that asking `prompt` can take; raises Exhausted when a cap leaves no
        room for it.
        """
        worst = self._worst(prompt)
        while self._caps_below(self._most_spent + self._held + worst):
            if not self._holds:
                raise self._exhausted(worst, prompt)
            await self._freed.wait()
            worst = self._worst(prompt)
        hold = Hold(worst)
        self._holds.add(hold)
        try:
            yield hold
        finally:
            self._release(hold)

    def _worst(self, prompt: str) -> Amount:
        return _amount(self.usage(most_tokens(prompt) + MESSAGE_TOKENS, self._most_tokens))

    @property
    def _held(self) -> Amount:
        return sum((hold.most for hold in self._holds), Amount())

    @property
    def _most_spent(self) -> Amount:
        """What all requests took, certain and possible."""
        return _amount(self.spent) + self.lost

    def _caps_below(self, amount: Amount) -> list[EndKind]:
        """The caps that `amount` is above."""
        above = {
            EndKind.cost: self._cap_usd is not None and amount.usd > self._cap_usd,
            EndKind.tokens: self._token_cap is not None and amount.tokens > self._token_cap,
        }
        return [kind for kind, exceeded in above.items() if exceeded]

    def _exhausted(self, worst: Amount, prompt: str) -> Exhausted:
        kind = self._caps_below(self._most_spent + worst)[0]
        lost = self._shown(self.lost, kind) if self._is_lost(kind) else ""
        spent = _amount(self.spent)
        begin = f"{self._cap(kind)}: {self._shown(spent, kind)} spent" + (
            f" and up to {lost} of requests without an answer" if lost else ""
        )
        if kind in self._caps_below(spent):
            return Exhausted(
                f"{begin}: it is exceeded, because replies were longer than asked for; no more"
                " requests are sent",
                kind,
            )
        verb = "cost" if kind is EndKind.cost else "take"
        return Exhausted(
            f"{begin}, the next request can {verb} up to {self._shown(worst, kind)} (a prompt of"
            f" {most_tokens(prompt):,} bytes, a reply of up to {self._most_tokens:,} tokens)",
            kind,
        )

    def _is_lost(self, kind: EndKind) -> bool:
        return bool(self.lost.usd if kind is EndKind.cost else self.lost.tokens)

    def _cap(self, kind: EndKind) -> str:
        if kind is EndKind.cost:
            return f"cost cap of ${self._cap_usd:.2f}"
        return f"cap of {self._token_cap:,} tokens"

    def _shown(self, amount: Amount, kind: EndKind) -> str:
        return f"${amount.usd:.4f}" if kind is EndKind.cost else f"{amount.tokens:,} tokens"

    def _release(self, hold: Hold) -> None:
        self._holds.discard(hold)
        if hold.paid:
            self.spent += hold.paid
            self._learn(hold.paid)
        elif hold.lost:
            self.lost += hold.most
        self._freed.set()  # all that wait check again
        self._freed = asyncio.Event()

    def _learn(self, paid: Usage) -> None:
        """Set aside more from now on where a reply was longer than `max_tokens`: others may be."""
        if paid.completion_tokens > self._most_tokens:
            self._most_tokens = paid.completion_tokens
            is_capped = self._cap_usd is not None or self._token_cap is not None
            also = "; as much is set aside for every request from now on" if is_capped else ""
            self._notify(
                f"the endpoint ignores max_tokens: asked for {self._asked_tokens}, it sent"
                f" {paid.completion_tokens}{also}"
            )
        for kind in self._caps_below(self._most_spent):
            if kind not in self._exceeded:
                self._exceeded.add(kind)
                self._notify(
                    f"the {self._cap(kind)} is exceeded, {self._shown(self._most_spent, kind)} so"
                    " far: no more requests are sent"
                )


def _amount(usage: Usage) -> Amount:
    return Amount(usage.cost_usd, usage.prompt_tokens + usage.completion_tokens)
