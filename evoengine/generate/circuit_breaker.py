"""The circuit breaker of one endpoint: while it fails, all requests wait, and one at a time tries
again.

The back-off is exponential, with jitter; a wait that the endpoint asks for is kept.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from evoengine.duration import duration
from evoengine.errors import GeneratorError

FIRST_WAIT_S = 1.0  # doubled for every further attempt
LONGEST_WAIT_S = 60.0  # unless the endpoint asks for a longer wait
REMIND_EVERY_S = 300.0  # during an outage: a run that prints nothing looks hung
SHORT_S = 10.0  # the end of a shorter outage, over after one attempt, is not reported

T = TypeVar("T")


class Transient(Exception):  # noqa: N818 - a reason to try again, not yet an error
    """One attempt failed, but another one may succeed."""

    def __init__(
        self,
        message: str,
        retry_after_s: float | None = None,
        maybe_paid: bool = False,
        rate_limited: bool = False,
    ) -> None:
        super().__init__(message)
        # not the fault of this request: any other would have failed, too
        self.rate_limited = rate_limited
        self.retry_after_s = retry_after_s
        self.maybe_paid = maybe_paid  # the endpoint may have worked on it and charge for it


class RequestRefused(Exception):  # noqa: N818 - ends one request, not the run
    """The endpoint works, but refuses this request, or fails on it again and again."""


@dataclass
class _Outage:
    """A time without an answer, from its first failure on."""

    since: float
    failures: int = 0  # requests that fail together count once
    notified: float = field(default=0.0)  # when the user was last notified


class CircuitBreaker:
    """Runs attempts: all at once while the endpoint answers, else one at a time."""

    def __init__(
        self,
        retries: int,
        patience_s: float,
        notify: Callable[[str], None],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: random.Random | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`retries` is how often one request is sent again while others are answered, `patience_s`
        how long an outage may last.
        """
        self.answers = 0  # so far
        self._retries = retries
        self._patience_s = patience_s
        self._notify = notify
        self._sleep = sleep
        self._rng = rng or random.Random()  # noqa: S311 - spreads requests, hides nothing
        self._clock = clock
        self._outage: _Outage | None = None
        # as the endpoint asked; an answer to another request does not end this wait
        self._not_before = 0.0
        self._wait_until = 0.0
        self._trying = asyncio.Lock()
        self._given_up = ""

    async def run(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """The result of `attempt`.

        Raises GeneratorError once an outage has lasted longer than `patience_s`, RequestRefused
        where this request alone fails, again and again, while others are answered.
        """
        failures = 0  # a failure counts if another request was answered since the one before
        answers = sys.maxsize
        while True:
            async with self._turn():
                number = self._outage.failures if self._outage else 0
                try:
                    result = await attempt()
                except Transient as failure:
                    failures += self.answers > answers and not failure.rate_limited
                    answers = self.answers
                    if failures >= max(1, self._retries):
                        times = f"{failures + 1} times while other requests were answered"
                        raise RequestRefused(
                            f"{failure}; this request failed {times}, and is given up"
                        ) from None
                    self._fail(failure, number)
                else:
                    self._answer()
                    return result

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Enter at once while the endpoint answers; else after the wait, one request at a time."""
        self._check()
        if self._outage is None and self._not_before <= self._clock():
            yield
            return
        async with self._trying:
            self._check()
            wait_s = (
                max(self._wait_until if self._outage else 0.0, self._not_before) - self._clock()
            )
            if wait_s > 0:
                await self._sleep(wait_s)
            if self._outage is not None:
                yield
                return
        yield

    def _check(self) -> None:
        if self._given_up:
            raise GeneratorError(self._given_up)

    def _fail(self, failure: Transient, number: int) -> None:
        """Count a failure; `number` is the outage's count when the attempt began, so that requests
        that fail together count once.
        """
        now = self._clock()
        if failure.retry_after_s is not None:
            self._not_before = max(self._not_before, now + failure.retry_after_s)
        if self._outage is None:
            self._outage = _Outage(since=now)
        if number != self._outage.failures:
            return
        wait_s = self._wait_s(self._outage.failures, failure)
        self._outage.failures += 1
        self._wait_until = now + wait_s
        if self._wait_until - self._outage.since > self._patience_s:
            self._give_up(failure, self._outage)
        self._report(failure, self._outage, wait_s)

    def _give_up(self, failure: Transient, outage: _Outage) -> None:
        patience = duration(self._patience_s)
        if failure.retry_after_s is not None and failure.retry_after_s > self._patience_s:
            why = f"it asks to wait {failure.retry_after_s:.0f} s, the run's patience is {patience}"
        else:
            attempts = (
                f"{outage.failures} attempt{'s' * (outage.failures != 1)} in"
                f" {duration(self._clock() - outage.since)}"
            )
            why = f"given up after {attempts}, the run's patience is {patience} (--patience)"
        self._given_up = f"{failure}; {why}: resume the run when the endpoint works again"
        raise GeneratorError(self._given_up) from None

    def _report(self, failure: Transient, outage: _Outage, wait_s: float) -> None:
        now = self._clock()
        if outage.failures == 1:
            patience = duration(self._patience_s)
            self._notify(
                f"{failure}; all requests wait, the next attempt is in {wait_s:.1f} s; given up"
                f" after {patience}"
            )
        elif now - outage.notified >= REMIND_EVERY_S:
            self._notify(
                f"{failure}; no answer for {duration(now - outage.since)}, {outage.failures}"
                " attempts"
            )
        else:
            return
        outage.notified = now

    def _answer(self) -> None:
        self.answers += 1
        outage, self._outage = self._outage, None
        if outage is None:
            return
        lasted_s = self._clock() - outage.since
        if outage.failures > 1 or lasted_s > SHORT_S:
            self._notify(f"the endpoint answers again after {duration(lasted_s)}; the run goes on")

    def _wait_s(self, failures: int, failure: Transient) -> float:
        if failure.retry_after_s is not None:
            # so that requests in flight do not all come back at once
            return failure.retry_after_s + self._rng.uniform(0, FIRST_WAIT_S)
        return min(LONGEST_WAIT_S, FIRST_WAIT_S * float(2**failures)) * self._rng.uniform(0.5, 1.0)
