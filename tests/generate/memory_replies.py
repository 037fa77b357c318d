"""The stored replies of one trial, without a store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from evoengine.records import Reply


@dataclass
class MemoryReplies:
    """A protocols.Replies in memory, with the order of its events."""

    stored: dict[int, Reply] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)
    # of every request: its turn, and the most that it can cost
    sent: list[tuple[int, float | None]] = field(default_factory=list)
    most_tokens: list[int] = field(default_factory=list)  # of every request, reply included
    # number of a request: its reason, and whether it may have been paid for
    failed: dict[int, tuple[str, bool]] = field(default_factory=dict)

    async def get_or_ask(self, turn: int, ask: Callable[[], Awaitable[Reply]]) -> Reply:
        if turn in self.stored:
            self.events.append(f"found {turn}")
            return self.stored[turn]
        self.events.append(f"ask {turn}")
        reply = await ask()
        self.stored[turn] = reply
        self.events.append(f"commit {turn}")
        return reply

    @property
    def has_reply(self) -> bool:
        return 0 in self.stored

    def send(self, turn: int, most_usd: float | None, most_tokens: int) -> int:
        self.sent.append((turn, most_usd))
        self.most_tokens.append(most_tokens)
        return len(self.sent) - 1

    def fail(self, number: int, reason: str, maybe_paid: bool) -> None:
        self.failed[number] = (reason, maybe_paid)
