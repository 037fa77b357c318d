"""What all requests to one endpoint share while it is unwell: they wait together, and one at a time
tries whether it answers again.

A circuit breaker with exponential back-off and jitter; a wait that the endpoint asks for is kept.
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
LONGEST_WAIT_S = 60.0  # of our own choice
REMIND_EVERY_S = 300.0  # of a long outage: a run that says nothing looks hung
SHORT_S = 10.0  # an outage that was over sooner and after one attempt is not worth a second line

T = TypeVar("T")


class Transient(Exception):  # noqa: N818 - a reason to try again, not yet an error
    """One attempt failed in a way that another may not."""

    def __init__(
        self,
        message: str,
        retry_after_s: float | None = None,
        maybe_paid: bool = False,
        rate_limited: bool = False,
    ) -> None:
        super().__init__(message)
        # says nothing about the request: another one would have met it, too
        self.rate_limited = rate_limited
        self.retry_after_s = retry_after_s
        self.maybe_paid = maybe_paid  # the endpoint may have worked on it and charge for it


class RequestRefused(Exception):  # noqa: N818 - ends one request, not the run
    """The endpoint answers, but not to this request: it refuses it, or fails on it again and
    again.
    """


@dataclass
class _Outage:
    """The time since the last answer, from the first failure on."""

    since: float
    failures: int = 0  # one for each attempt of the circuit, however many requests were under way
    said: float = field(default=0.0)  # when the user was last told


class CircuitBreaker:
    """Runs attempts; closed while the endpoint answers."""

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
        # what the endpoint has asked for; an answer to another request does not end it
        self._not_before = 0.0
        self._wait_until = 0.0
        self._trying = asyncio.Lock()
        self._given_up = ""

    async def run(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """What `attempt` returns.

        Raises GeneratorError once an outage has lasted longer than patience, RequestRefused
        where this request alone fails, again and again, while others are answered.
        """
        # counted are those with an answer to somebody else since the one before
        failures, answers = (
            0,
            sys.maxsize,
        )
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
        """At once while the endpoint is well; else after the wait, one request at a time."""
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
        """`number` is how many failures the outage had when the attempt was made: those that fail
        together count once.
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
        self._tell(failure, self._outage, wait_s)

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
        self._given_up = f"{failure}; {why}: resume the run when the endpoint is well again"
        raise GeneratorError(self._given_up) from None

    def _tell(self, failure: Transient, outage: _Outage, wait_s: float) -> None:
        now = self._clock()
        if outage.failures == 1:
            patience = duration(self._patience_s)
            self._notify(
                f"{failure}; all requests wait, the next attempt is in {wait_s:.1f} s; given up"
                f" after {patience}"
            )
        elif now - outage.said >= REMIND_EVERY_S:
            self._notify(
                f"{failure}; no answer for {duration(now - outage.since)}, {outage.failures}"
                " attempts"
            )
        else:
            return
        outage.said = now

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
            # those in flight must not all come back at once
            return failure.retry_after_s + self._rng.uniform(0, FIRST_WAIT_S)
        return min(LONGEST_WAIT_S, FIRST_WAIT_S * float(2**failures)) * self._rng.uniform(0.5, 1.0)
