"""A direction for each first sample, so that those in flight together do not try the same.

Which one a trial has follows from the run's seed and the trial's number, so a trial knows those of
its siblings without waiting for their replies. Directions are drawn without repetition until all
have been drawn, and then anew.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from evoengine.digest import derived_seed
from evoengine.protocols import Request

BEGINNING = "- "  # of a line with a direction


@dataclass(frozen=True)
class DirectionDraw:
    """Whose directions a prompt names: numbers count the trials that ask.

    A tuning trial that asks has the number of the next trial that does; so it draws half a round
    `ahead`, where none of those in flight beside it is.
    """

    run_seed: int
    own: int
    siblings: tuple[int, ...] = ()  # first samples in flight
    ahead: bool = False

    def of(self, directions: Sequence[str]) -> str:
        """The direction of this trial; "" where there are none."""
        return drawn(directions, self.run_seed, self.own, self.ahead) if directions else ""

    def of_siblings(self, directions: Sequence[str]) -> list[str]:
        """The other directions that are being tried, each once."""
        found = [drawn(directions, self.run_seed, number) for number in self.siblings]
        return [text for text in dict.fromkeys(found) if text != self.of(directions)]


def direction_draw(request: Request, siblings: Sequence[int]) -> DirectionDraw:
    """The draw of this trial; `siblings` are the numbers of first samples in flight."""
    return DirectionDraw(request.run_seed, request.asking, tuple(siblings), request.nothing_to_tune)


def drawn(directions: Sequence[str], run_seed: int, number: int, ahead: bool = False) -> str:
    """Direction number `number` of a run: each round is another order of all of them. With `ahead`
    the one half a round after it, in the same round.
    """
    round_number, place = divmod(number, len(directions))
    place = (place + len(directions) // 2) % len(directions) if ahead else place
    order = list(directions)
    random.Random(derived_seed(run_seed, "directions", round_number)).shuffle(order)  # noqa: S311 - reproducible on purpose
    return order[place]


def directions_in(text: str) -> list[str]:
    """The directions in the rendered template."""
    lines = (line.strip() for line in text.splitlines())
    return [line.removeprefix(BEGINNING) for line in lines if line.startswith(BEGINNING)]
