"""The replies of a run: every request is a row before it leaves, every reply one before anybody
reads it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from evoengine.protocols import FailureRow, ReplyRow, RequestRow, Store
from evoengine.records import Reply, Usage


class StoredReplies:
    """All that goes to a model and comes from it, for the trials of one run."""

    def __init__(
        self,
        store: Store,
        now: Callable[[], str],
        spent: Usage,
        tell_spent: Callable[[Usage], None],
    ) -> None:
        """`spent` is what the stored replies have cost; `tell_spent` is told the sum after each
        further one.
        """
        self._store = store
        self._now = now
        self._spent = spent
        self._tell_spent = tell_spent
        self._asks: set[asyncio.Task[Reply]] = set()
        self._sent: set[asyncio.Task[Reply]] = set()  # the asks with a request under way
        self._landing = False

    def of(self, trial: int) -> TrialReplies:
        """Those of one trial."""
        return TrialReplies(self, trial)

    async def get_or_ask(self, trial: int, turn: int, ask: Callable[[], Awaitable[Reply]]) -> Reply:
        """The reply of one turn: the stored one, or a new one."""
        stored = self._store.get(ReplyRow, trial, turn)
        if stored is not None:
            return stored.reply
        task = asyncio.create_task(self._ask(trial, turn, ask))
        self._asks.add(task)
        task.add_done_callback(self._asked)
        return await asyncio.shield(task)

    def send(self, trial: int, number: int, turn: int, most_usd: float | None) -> int:
        """Commits a request of `trial` that is about to leave, under the first number from `number`
        on that is free; the number.
        """
        if self._landing:
            raise asyncio.CancelledError("the run has stopped: nothing more is sent")
        # an earlier process has sent some
        while self._store.get(RequestRow, trial, number) is not None:
            number += 1
        self._store.append(RequestRow(trial, number, turn, most_usd, self._now()))
        self._sent |= self._asks & {asyncio.current_task()}
        return number

    def fail(self, row: FailureRow) -> None:
        """Commits that a request brought no reply."""
        self._store.append(row)
        task = asyncio.current_task()
        self._sent -= {task}
        if self._landing and task is not None:
            task.cancel()  # it would wait, and send again

    async def land(self, drop: asyncio.Event | None) -> None:
        """Waits for the replies under way, which are paid for, and stores them; `drop` gives them
        up.

        A request that was not sent yet, because it waits for an unwell endpoint or for room below
        the cap, is not sent any more.
        """
        self._landing = True
        for ask in self._asks - self._sent:
            ask.cancel()
        dropping = asyncio.create_task(drop.wait()) if drop else None
        while self._asks and not (dropping and dropping.done()):
            await asyncio.wait(
                {*self._asks, *([dropping] if dropping else [])},
                return_when=asyncio.FIRST_COMPLETED,
            )
        for ask in self._asks:
            ask.cancel()
        await asyncio.gather(*self._asks, return_exceptions=True)
        if dropping:
            dropping.cancel()

    def _asked(self, task: asyncio.Task[Reply]) -> None:
        self._asks.discard(task)
        self._sent.discard(task)
        if not task.cancelled():
            # the trial that waits has it too; one that was cancelled meanwhile needs it no more
            task.exception()

    async def _ask(self, trial: int, turn: int, ask: Callable[[], Awaitable[Reply]]) -> Reply:
        reply = await ask()
        self._store.append(ReplyRow(trial, turn, reply))
        self._spent = self._spent + reply.usage
        self._tell_spent(self._spent)
        return reply


class TrialReplies:
    """protocols.Replies of one trial."""

    def __init__(self, replies: StoredReplies, trial: int) -> None:
        self._replies = replies
        self._trial = trial
        self._next = 0  # number of a request

    async def get_or_ask(self, turn: int, ask: Callable[[], Awaitable[Reply]]) -> Reply:
        return await self._replies.get_or_ask(self._trial, turn, ask)

    def send(self, turn: int, most_usd: float | None) -> int:
        number = self._replies.send(self._trial, self._next, turn, most_usd)
        self._next = number + 1
        return number

    def fail(self, number: int, reason: str, maybe_paid: bool) -> None:
        self._replies.fail(FailureRow(self._trial, number, reason, maybe_paid))
