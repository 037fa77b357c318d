"""What replies cost, and the cap that they never exceed.

Before a request is sent, the most that it can cost is set aside; a request that might
not fit beside those in flight waits for them, and one that cannot fit at all ends the
run. A request whose answer never came may have been paid for: its whole amount counts
against the cap from then on (in this process; nothing of it can be stored).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from evoengine.config import ModelSettings
from evoengine.errors import UsageError
from evoengine.records import Usage
from evoengine.seams import Exhausted

MESSAGE_TOKENS = 64  # around one message: roles and separators; OpenAI's cookbook counts 3 to 7

# USD per million tokens (prompt, completion): OpenAI's standard tier, without cache discounts.
# Source: https://developers.openai.com/api/docs/pricing as quoted by dated tables of March to June 2026.
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
        """What so many tokens cost."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6


def price_of(settings: ModelSettings) -> Price | None:
    """The price in the settings, else the one in the table; None when neither knows the model."""
    prompt, completion = settings.usd_per_million_prompt, settings.usd_per_million_completion
    if prompt is not None and completion is not None:
        return Price(prompt, completion)
    if prompt is not None or completion is not None:
        raise UsageError("a price needs both usd_per_million_prompt and usd_per_million_completion, got one of them")
    name = re.sub(r"-\d{4}-\d{2}-\d{2}$", "", settings.model.rpartition("/")[2])  # vendor prefix and snapshot date
    return Price(*PRICES[name]) if name in PRICES else None


def most_tokens(text: str) -> int:
    """No fewer than `text` has: a byte-level tokenizer never makes more tokens than bytes."""
    return len(text.encode())


class Hold:
    """The amount that one request in flight has set aside."""

    def __init__(self, usd: float) -> None:
        self.usd = usd
        self.paid: Usage | None = None
        self.lost = False

    def settle(self, usage: Usage) -> None:
        """The request was answered and cost `usage`."""
        self.paid = usage

    def lose(self) -> None:
        """The request may have been paid for, but its answer never came."""
        self.lost = True


class Ledger:
    """Counts what replies cost. `spent` is what the stored replies of earlier processes cost."""

    def __init__(self, settings: ModelSettings, spent: Usage, notify: Callable[[str], None]) -> None:
        self.price = price_of(settings)
        self.spent = spent
        self.lost_usd = 0.0
        self._cap_usd = settings.cost_cap_usd
        self._max_tokens = settings.max_tokens
        self._holds: set[Hold] = set()
        self._freed = asyncio.Event()
        if self.price is None and self._cap_usd is not None:
            raise UsageError(
                f"a cost cap of ${self._cap_usd:.2f} cannot be kept: the price of model {settings.model!r} is unknown; "
                "give it with --price, e.g. --price 2/8 for $2 a million prompt and $8 a million completion tokens"
            )
        if self.price is None:
            notify(f"price of model {settings.model} unknown: cost is not counted")

    def usage(self, prompt_tokens: int, completion_tokens: int) -> Usage:
        """So many tokens with their cost; 0 where the price is unknown."""
        cost = self.price.cost_usd(prompt_tokens, completion_tokens) if self.price else 0.0
        return Usage(prompt_tokens=prompt_tokens, completion_tokens=completion_tokens, cost_usd=cost)

    @asynccontextmanager
    async def hold(self, prompt: str) -> AsyncIterator[Hold]:
        """Sets aside the most that asking `prompt` can cost; raises Exhausted when the cap leaves no room for it."""
        worst = self.usage(most_tokens(prompt) + MESSAGE_TOKENS, self._max_tokens).cost_usd
        while not self._fits(worst):
            if not self._holds:
                raise Exhausted(
                    f"cost cap of ${self._cap_usd:.2f}: ${self.spent.cost_usd + self.lost_usd:.4f} spent, "
                    f"the next request can cost up to ${worst:.4f}"
                )
            await self._freed.wait()
        hold = Hold(worst)
        self._holds.add(hold)
        try:
            yield hold
        finally:
            self._release(hold)

    def _fits(self, usd: float) -> bool:
        if self._cap_usd is None:
            return True
        return self.spent.cost_usd + self.lost_usd + sum(hold.usd for hold in self._holds) + usd <= self._cap_usd

    def _release(self, hold: Hold) -> None:
        self._holds.discard(hold)
        if hold.paid:
            self.spent += hold.paid
        elif hold.lost:
            self.lost_usd += hold.usd
        self._freed.set()  # all that wait look again
        self._freed = asyncio.Event()
