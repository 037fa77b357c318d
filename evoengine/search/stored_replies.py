"""The replies of a run: a request is stored before it is sent, a reply before it is read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from evoengine.protocols import FailureRow, ReplyRow, RequestRow, Store
from evoengine.records import Reply, Usage


class StoredReplies:
    """Sends and stores the requests to a model, and its replies, of the trials of one run."""

    def __init__(
        self,
        store: Store,
        now: Callable[[], str],
        spent: Usage,
        on_spent: Callable[[Usage], None],
    ) -> None:
        """`spent` is the usage of the stored replies; `on_spent` is called with the new
        sum after each further reply.
        """
        self._store = store
        self._now = now
        self._spent = spent
        self._on_spent = on_spent
        self._asks: set[asyncio.Task[Reply]] = set()
        self._sent: set[asyncio.Task[Reply]] = set()  # those of `_asks` that have sent a request
        self._finishing = False  # no more requests are sent

    def of(self, trial: int) -> TrialReplies:
        """The replies of one trial."""
        return TrialReplies(self, trial)

    async def get_or_ask(self, trial: int, turn: int, ask: Callable[[], Awaitable[Reply]]) -> Reply:
        """The stored reply of one turn, or a new one."""
        stored = self._store.get(ReplyRow, trial, turn)
        if stored is not None:
            return stored.reply
        task = asyncio.create_task(self._ask(trial, turn, ask))
        self._asks.add(task)
        task.add_done_callback(self._asked)
        return await asyncio.shield(task)

    def has_reply(self, trial: int) -> bool:
        """Whether a reply to the first request of `trial` is stored."""
        return self._store.get(ReplyRow, trial, 0) is not None

    def send(
        self, trial: int, number: int, turn: int, most_usd: float | None, most_tokens: int
    ) -> int:
        """Commits a request that is about to be sent, under the first free number from `number` on;
        returns that number.
        """
        if self._finishing:
            raise asyncio.CancelledError("the run has stopped: no more requests are sent")
        # before a resume, an earlier process may have sent some
        while self._store.get(RequestRow, trial, number) is not None:
            number += 1
        self._store.append(RequestRow(trial, number, turn, most_usd, most_tokens, self._now()))
        self._sent |= self._asks & {asyncio.current_task()}
        return number

    def fail(self, row: FailureRow) -> None:
        """Commits that a request failed."""
        self._store.append(row)
        task = asyncio.current_task()
        self._sent -= {task}
        if self._finishing and task is not None:
            task.cancel()  # otherwise it would retry

    async def finish(self, stop_now: asyncio.Event | None) -> None:
        """Waits for the outstanding replies, which are paid for, and stores them, until `stop_now`
        is set.

        Requests that wait for a failing endpoint or for room below the cost cap are not sent.
        """
        self._finishing = True
        for ask in self._asks - self._sent:
            ask.cancel()
        stopping_now = asyncio.create_task(stop_now.wait()) if stop_now else None
        while self._asks and not (stopping_now and stopping_now.done()):
            await asyncio.wait(
                {*self._asks, *([stopping_now] if stopping_now else [])},
                return_when=asyncio.FIRST_COMPLETED,
            )
        for ask in self._asks:
            ask.cancel()
        await asyncio.gather(*self._asks, return_exceptions=True)
        if stopping_now:
            stopping_now.cancel()

    def _asked(self, task: asyncio.Task[Reply]) -> None:
        self._asks.discard(task)
        self._sent.discard(task)
        if not task.cancelled():
            # marks it as retrieved: the trial raises it too, unless it was cancelled meanwhile
            task.exception()

    async def _ask(self, trial: int, turn: int, ask: Callable[[], Awaitable[Reply]]) -> Reply:
        reply = await ask()
        self._store.append(ReplyRow(trial, turn, reply))
        self._spent = self._spent + reply.usage
        self._on_spent(self._spent)
        return reply


class TrialReplies:
    """The replies of one trial, as protocols.Replies."""

    def __init__(self, replies: StoredReplies, trial: int) -> None:
        self._replies = replies
        self._trial = trial
        self._next = 0  # the number of the next request

    async def get_or_ask(self, turn: int, ask: Callable[[], Awaitable[Reply]]) -> Reply:
        return await self._replies.get_or_ask(self._trial, turn, ask)

    @property
    def has_reply(self) -> bool:
        return self._replies.has_reply(self._trial)

    def send(self, turn: int, most_usd: float | None, most_tokens: int) -> int:
        number = self._replies.send(self._trial, self._next, turn, most_usd, most_tokens)
        self._next = number + 1
        return number

    def fail(self, number: int, reason: str, maybe_paid: bool) -> None:
        self._replies.fail(FailureRow(self._trial, number, reason, maybe_paid))
