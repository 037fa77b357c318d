"""One verdict for identical candidates in flight: the first that comes is judged, the others have
what it has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from evoengine.records import Verdict


class SharedVerdicts:
    """The verdicts of the trials in flight, under way or found, by what tells candidates apart.

    Which one of identical candidates is judged depends on timing; the verdict of all is the same.
    """

    def __init__(self) -> None:
        self._by_key: dict[
            str, tuple[int, asyncio.Future[Verdict]]
        ] = {}  # with the trial that is judged for all

    async def judge(
        self,
        key: str,
        trial: int,
        evaluate: Callable[[], Awaitable[Verdict]],
        wait_for: Callable[[int], None],
    ) -> Verdict:
        """What `evaluate` finds for `trial`; where a trial with the same `key` is in flight, its
        verdict: `wait_for` is told which.
        """
        while key in self._by_key:
            first, promised = self._by_key[key]
            if not promised.done():
                wait_for(first)
            await asyncio.wait({promised})
            if not promised.cancelled():
                return promised.result()
        promised = self._promise(key, trial)
        try:
            verdict = await evaluate()
        except BaseException:
            del self._by_key[key]
            promised.cancel()
            raise
        promised.set_result(verdict)
        return verdict

    def know(self, key: str, trial: int, verdict: Verdict) -> None:
        """`trial` in flight has this verdict already."""
        if key not in self._by_key:
            self._promise(key, trial).set_result(verdict)

    def forget(self, trial: int) -> None:
        """`trial` is settled: who needs its verdict finds it in the store."""
        self._by_key = {key: item for key, item in self._by_key.items() if item[0] != trial}

    def _promise(self, key: str, trial: int) -> asyncio.Future[Verdict]:
        promised: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
        self._by_key[key] = trial, promised
        return promised
