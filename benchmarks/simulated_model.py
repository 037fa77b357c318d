"""A language model that is simulated: it answers prompts with kernels whose speed is simulated.

It sees a prompt's text and nothing else, as a real one does. What it was shown in full it can
change: with stated chances the result is better, not better, wrong, or no kernel at all. It learns
nothing from the lessons of earlier trials. So it says how the machinery of a search uses replies,
and nothing about real models.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from random import Random

from benchmarks.simulated_kernels import (
    SimulatedKernel,
    drawn_values,
    first_guess,
    shown_kernels,
)
from evoengine.digest import derived_seed
from evoengine.generate.endpoint import EndpointAnswer
from evoengine.generate.token_estimate import estimated_tokens
from evoengine.records import Status

# From the package's templates: what only their prompts hold.
REPAIR, FIRST_SAMPLE = "# Your last reply cannot be used", "from first principles"
MISSPELLED = "launhces:"  # in a header that is refused before anything is compiled
LAUNCHES = "launches:"


@dataclass(frozen=True)
class Chances:
    """What becomes of a reply; what is left of 1 is a kernel that is no better than its parent."""

    better: float  # that a changed kernel is better
    gain: tuple[float, float]  # the part of the way to its floor that a better one goes
    fresh: tuple[float, float]  # the quality of a first sample
    floors: tuple[float, float]  # of first samples
    moved: float  # that a better one has another best value of one tunable
    no_kernel: float = 0.06
    not_compiled: float = 0.12
    wrong: float = 0.12
    repaired: float = 0.8  # that a repair turn brings a kernel
    drift: tuple[float, float] = (1.0, 1.05)  # the quality of one that is no better / its parent's


# The starting kernel has the quality 1 and the floor of START.
START_FLOOR = 0.6
MODELS = {
    "steady": Chances(0.40, (0.05, 0.25), (0.9, 1.4), (0.3, 0.8), moved=0.5),
    "rare": Chances(0.06, (0.5, 0.9), (0.9, 1.4), (0.3, 0.8), moved=0.5),
    "null": Chances(0.0, (0.0, 0.0), (1.0, 1.4), (1.0, 1.0), moved=0.0),
}


def starting_kernel(model: str, seed: int) -> SimulatedKernel:
    """The kernel with which a run of the model called `model` begins."""
    luck = Random(derived_seed(seed, "start"))  # noqa: S311 - must repeat, need not be secret
    optimum = drawn_values(luck)
    floor = 1.0 if model == "null" else START_FLOOR
    return SimulatedKernel(1.0, floor, optimum, first_guess(optimum, luck))


class SimulatedEndpoint:
    """An endpoint, in this process, that answers as the model with these `chances`.

    A reply follows from `seed`, the prompt, and how often the same prompt was asked before.
    """

    notice = ""

    def __init__(self, chances: Chances, seed: int) -> None:
        self._chances = chances
        self._seed = seed
        self._asked: Counter[str] = Counter()
        self.replies = 0
        self.without_kernel = 0  # of the replies

    async def ask(self, prompt: str) -> EndpointAnswer:
        """The reply to `prompt`, with estimated tokens."""
        luck = Random(derived_seed(self._seed, self._asked[prompt], prompt))  # noqa: S311 - must repeat
        self._asked[prompt] += 1
        text = self._repair(prompt, luck) if REPAIR in prompt else self._reply(prompt, luck)
        self.replies += 1
        self.without_kernel += MISSPELLED in text
        return EndpointAnswer(text, "stop", estimated_tokens(prompt), estimated_tokens(text))

    async def close(self) -> None:
        """Nothing is open."""

    def _reply(self, prompt: str, luck: Random) -> str:
        source = self._kernel(prompt, luck).source(luck.getrandbits(32))
        if luck.random() < self._chances.no_kernel:
            source = source.replace(LAUNCHES, MISSPELLED, 1)
        return _fenced(source)

    def _repair(self, prompt: str, luck: Random) -> str:
        """The kernel of the last reply, which the prompt shows, with its fault or without."""
        begin = prompt.rindex("/* evoengine\n", 0, prompt.index(MISSPELLED))
        source = prompt[begin : prompt.index("\n```", begin)]
        if luck.random() < self._chances.repaired:
            source = source.replace(MISSPELLED, LAUNCHES)
        return _fenced(source)

    def _kernel(self, prompt: str, luck: Random) -> SimulatedKernel:
        shown = shown_kernels(prompt)
        is_new = FIRST_SAMPLE in prompt or not shown
        kernel = self._fresh(luck) if is_new else self._changed(shown, luck)
        return replace(kernel, fault=self._fault(luck))

    def _fresh(self, luck: Random) -> SimulatedKernel:
        quality, floor = luck.uniform(*self._chances.fresh), luck.uniform(*self._chances.floors)
        optimum = drawn_values(luck)
        return SimulatedKernel(quality, min(floor, quality), optimum, first_guess(optimum, luck))

    def _changed(self, shown: list[SimulatedKernel], luck: Random) -> SimulatedKernel:
        """The best one that is shown, changed; its floor is the lowest of those shown."""
        best = min(shown, key=lambda kernel: kernel.quality)
        best = replace(best, floor=min(kernel.floor for kernel in shown))
        if luck.random() >= self._chances.better:
            return replace(best, quality=best.quality * luck.uniform(*self._chances.drift))
        way = luck.uniform(*self._chances.gain)
        better = replace(best, quality=best.quality - way * (best.quality - best.floor))
        return _with_moved_optimum(better, luck) if luck.random() < self._chances.moved else better

    def _fault(self, luck: Random) -> str:
        drawn = luck.random()
        if drawn < self._chances.not_compiled:
            return Status.compile_error
        if drawn < self._chances.not_compiled + self._chances.wrong:
            return Status.wrong_result
        return "none"


def _with_moved_optimum(kernel: SimulatedKernel, luck: Random) -> SimulatedKernel:
    """`kernel` with the best value of one tunable drawn anew."""
    drawn, number = drawn_values(luck), luck.randrange(len(kernel.optimum))
    moved = tuple(drawn[it] if it == number else best for it, best in enumerate(kernel.optimum))
    return replace(kernel, optimum=moved)


def _fenced(source: str) -> str:
    return f"```cuda\n{source.rstrip()}\n```\n\n## Thoughts\n- simulated\n"
