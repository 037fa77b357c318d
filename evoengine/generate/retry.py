"""How often a request is sent again, and how long is waited before.

Exponential backoff with jitter; a wait that the endpoint asks for is kept.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from evoengine.errors import GeneratorError

FIRST_WAIT_S = 1.0  # doubled for every further attempt
LONGEST_WAIT_S = 60.0  # of our own choice
LONGEST_ASKED_WAIT_S = 600.0  # a daily quota asks for hours: a run that waits for it looks hung, one that stops can be resumed

T = TypeVar("T")


class Transient(Exception):  # noqa: N818 - a reason to try again, not yet an error
    """One attempt failed in a way that another may not."""

    def __init__(self, message: str, retry_after_s: float | None = None, maybe_paid: bool = False) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.maybe_paid = maybe_paid  # the endpoint may have worked on it and charge for it


@dataclass(frozen=True)
class Retries:
    """The policy with what it needs of the outside: a way to sleep, a source of jitter, someone to tell."""

    retries: int
    sleep: Callable[[float], Awaitable[None]]
    rng: random.Random
    notify: Callable[[str], None]

    async def run(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """What `attempt` returns; raises GeneratorError once the retries are spent."""
        for number in range(self.retries + 1):
            try:
                return await attempt()
            except Transient as failure:
                if number == self.retries:
                    given_up = f"given up after {number + 1} attempts, resume the run when the endpoint is well again"
                    raise GeneratorError(f"{failure}; {given_up}") from None
                wait_s = self._wait_s(number, failure)
                self.notify(f"{failure}; attempt {number + 2} of {self.retries + 1} in {wait_s:.1f} s")
            await self.sleep(wait_s)
        raise AssertionError("the last attempt returns or raises")

    def _wait_s(self, number: int, failure: Transient) -> float:
        asked = failure.retry_after_s
        if asked is not None and asked > LONGEST_ASKED_WAIT_S:
            too_long = f"it asks to wait {asked:.0f} s, a run waits at most {LONGEST_ASKED_WAIT_S:.0f} s: resume it later"
            raise GeneratorError(f"{failure}; {too_long}")
        if asked is not None:
            return asked + self.rng.uniform(0, FIRST_WAIT_S)  # those in flight must not all come back at once
        return min(LONGEST_WAIT_S, FIRST_WAIT_S * float(2**number)) * self.rng.uniform(0.5, 1.0)
