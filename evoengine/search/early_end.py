"""The ends of a run that its settled trials decide: a plateau, and a share of the roofline.

A fold over settled trials, so that a killed and resumed run decides the same. Once an end is
reached, no trial is proposed that may see the trial that reached it; those already under way are
settled, because they are paid for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from evoengine.config import RunConfig
from evoengine.generate.method_registry import ON_PLATEAU
from evoengine.generate.operators import PLATEAU
from evoengine.population.elites import Population
from evoengine.records import Elite, EndKind, Verdict
from evoengine.search.gains import Gains
from evoengine.search.roofline import roofline_share
from evoengine.task.schema import Task

LONG_WITHOUT_GAIN = PLATEAU  # trials after which the progress says so, once


@dataclass(frozen=True)
class ReachedEnd:
    """An end, and the settled trial that reached it."""

    trial: int
    kind: EndKind
    reason: str


class EarlyEnd:
    """Whether a run has reached such an end."""

    def __init__(
        self,
        config: RunConfig,
        task: Task,
        seeds: int,
        verdict_of: Callable[[int], Verdict],
        limits_from: int = 0,
    ) -> None:
        """`verdict_of` gives the verdict that counts of a settled trial. The limits of `config`
        hold from trial `limits_from` on: with the earlier ones the run went on.
        """
        self._plateau = config.plateau
        asks = config.generator == "openai"
        self._on_plateau = ON_PLATEAU.get(config.method, "") if asks else ""
        self._share = config.stop_at_roofline
        self._task = task
        self._verdict_of = verdict_of
        # a search has not begun before its starting kernels are settled
        self._limits_from = max(limits_from, seeds)
        self._shares: dict[int, float | None] = {}  # of the first places seen so far, by trial
        self.gains = Gains(seeds)
        self.reached: ReachedEnd | None = None

    def add(self, trial: int, population: Population) -> None:
        """Notes the elites after settled trial number `trial`."""
        self.gains.add(population)
        if self.reached is None and trial >= self._limits_from - 1:
            self.reached = self._roofline(trial, population.elites) or self._plateau_at(trial)

    @property
    def reason(self) -> str:
        """Why the run has ended, with what the trials brought that were under way then."""
        reached, gains = self.reached, self.gains
        assert reached is not None
        if reached.kind is not EndKind.plateau:
            return reached.reason
        if gains.last is not None and gains.last > reached.trial:
            return (
                f"no gain in {self._plateau} trials up to trial {reached.trial}; trial"
                f" {gains.last}, which was under way then, brought one: a larger --plateau goes on"
            )
        return f"no gain in the last {gains.trials_without} trials (--plateau {self._plateau})"

    @property
    def news(self) -> str:
        """What the progress says after the trial settled last: once, that there is no gain for
        long; mostly nothing.
        """
        gains = self.gains
        if gains.trials_without != LONG_WITHOUT_GAIN:
            return ""
        last = "" if gains.last is None else f"; the last one was trial {gains.last}"
        ends = "" if self._plateau is None else f"; {self._plateau} in a row end the run"
        anew = f"; {self._on_plateau}" if self._on_plateau else ""
        return f"no gain in the last {LONG_WITHOUT_GAIN} trials{last}{anew}{ends}"

    def _plateau_at(self, trial: int) -> ReachedEnd | None:
        if self._plateau is None or self.gains.trials_without < self._plateau:
            return None
        return ReachedEnd(trial, EndKind.plateau, "")

    def _roofline(self, trial: int, elites: Iterable[Elite]) -> ReachedEnd | None:
        """The first place of any tier that reaches the share of the roofline."""
        if self._share is None:
            return None
        for elite in elites:
            share = self._share_of(elite.outcome.trial) if elite.place == 1 else None
            if share is not None and share >= self._share:
                return ReachedEnd(trial, EndKind.roofline, self._reason_of(elite, share))
        return None

    def _share_of(self, trial: int) -> float | None:
        if trial not in self._shares:
            self._shares[trial] = roofline_share(self._task, self._verdict_of(trial))
        return self._shares[trial]

    def _reason_of(self, elite: Elite, share: float) -> str:
        latency = elite.outcome.latency_us
        assert latency is not None  # it has a share
        return (
            f"trial {elite.outcome.trial} of {elite.tier} takes {latency.value:.4g} us, and the"
            f" device allows no less than {share * latency.value:.4g} us: {share:.2f} of the"
            f" roofline (--stop-at-roofline {self._share:g})"
        )
