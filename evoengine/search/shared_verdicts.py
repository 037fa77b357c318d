"""One verdict for identical candidates: the first is evaluated, the others wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from evoengine.records import Verdict


class SharedVerdicts:
    """Verdicts, finished or not, by candidate key, until they are forgotten.

    Which of several identical candidates is evaluated depends on timing; all get its verdict, so
    its key must hold all that decides the verdict.
    """

    def __init__(self) -> None:
        # key -> the trial that is evaluated for all, and its verdict
        self._by_key: dict[str, tuple[int, asyncio.Future[Verdict]]] = {}

    async def get_or_evaluate(
        self,
        key: str,
        trial: int,
        evaluate: Callable[[], Awaitable[Verdict]],
        on_wait: Callable[[int], None],
    ) -> Verdict:
        """The verdict of a trial with the same `key`, else of `evaluate()`.

        `on_wait` is called with the number of the trial that is waited for.
        """
        while key in self._by_key:
            first, verdict_future = self._by_key[key]
            if not verdict_future.done():
                on_wait(first)
            await asyncio.wait({verdict_future})
            if not verdict_future.cancelled():
                return verdict_future.result()
        verdict_future = self._add_future(key, trial)
        try:
            verdict = await evaluate()
        except BaseException:
            del self._by_key[key]
            verdict_future.cancel()
            raise
        verdict_future.set_result(verdict)
        return verdict

    def add(self, key: str, trial: int, verdict: Verdict) -> None:
        """Adds the stored verdict of a trial."""
        if key not in self._by_key:
            self._add_future(key, trial).set_result(verdict)

    def forget(self, trial: int) -> None:
        """Removes the verdict of a trial."""
        self._by_key = {key: item for key, item in self._by_key.items() if item[0] != trial}

    def _add_future(self, key: str, trial: int) -> asyncio.Future[Verdict]:
        verdict_future: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
        self._by_key[key] = trial, verdict_future
        return verdict_future
