"""Pairs of verdicts on one kernel: whether they differ by no more than their intervals say."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.holding_kernel import UnusableVerdict, score_of, verified
from benchmarks.shares import (
    agree,
    difference,
    figure_row,
    half_width,
    median_percent,
    share_row,
)
from benchmarks.table import Row
from evoengine.candidate import kernel_file
from evoengine.protocols import Executor
from evoengine.records import Interval

AGREEING_PERCENT = 93.0
HALF_WIDTH_PERCENT = 1.0


@dataclass
class VerdictPairs:
    """Pairs of verdicts, each of a process of its own, on one kernel."""

    executor: Executor
    source: str
    found: list[tuple[Interval, Interval]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    async def take(self, count: int) -> None:
        """Adds `count` pairs; one with a verdict that is not correct is a problem instead."""
        candidate = kernel_file.parse(self.source)
        for _ in range(count):
            try:
                one = score_of(await verified(self.executor, candidate))
                other = score_of(await verified(self.executor, candidate))
            except UnusableVerdict as unusable:
                self.problems.append(str(unusable))
            else:
                self.found.append((one, other))

    @staticmethod
    def rows(subject: str, parts: Sequence[VerdictPairs], note: str, is_whole: bool) -> list[Row]:
        """The rows of all pairs of `parts`; the goals stand in those of the whole."""
        pairs = [pair for part in parts for pair in part.found]
        differences = [difference(*pair) for pair in pairs]
        widths = [half_width(interval) for pair in pairs for interval in pair]
        spread = 100 * statistics.stdev(differences) if len(differences) > 1 else None
        return [
            share_row(
                "pairs of verdicts that differ by no more than their intervals",
                subject,
                [agree(*pair) for pair in pairs],
                at_least=AGREEING_PERCENT if is_whole else None,
                note=note,
                samples=differences,
            ),
            figure_row(
                "median half-width of a verdict",
                subject,
                median_percent(widths),
                at_most=HALF_WIDTH_PERCENT if is_whole else None,
            ),
            figure_row("standard deviation of the difference", subject, spread),
        ]
