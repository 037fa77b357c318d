"""Races whose result is known: of a kernel against itself, and against itself idling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.holding_kernel import HoldingKernel
from benchmarks.idling import SHARE, IdleCalibration, idling
from benchmarks.shares import figure_row, median_percent, share_row
from benchmarks.table import Row
from evoengine.candidate import kernel_file
from evoengine.protocols import Executor
from evoengine.records import Race, RaceResult

PROMOTED_PERCENT = 5.0
WINNING_PERCENT = 90.0


@dataclass
class EqualRaces:
    """Newcomers with the machine code of the holder, each under a name of its own."""

    executor: Executor
    source: str
    found: list[list[Race]] = field(default_factory=list)  # those of each newcomer
    problems: list[str] = field(default_factory=list)

    async def take(self, count: int) -> None:
        """Adds the races of `count` newcomers."""
        holder = HoldingKernel(self.executor, kernel_file.parse(self.source))
        for _ in range(count):
            newcomer = kernel_file.parse(same_code(self.source, len(self.found)))
            self.found.append(await holder.races(newcomer))

    @staticmethod
    def rows(subject: str, parts: Sequence[EqualRaces], note: str, is_whole: bool) -> list[Row]:
        """The rows of all newcomers of `parts`; the goal stands in those of the whole."""
        found = [races for part in parts for races in part.found]
        return [
            share_row(
                "equal newcomers that win",
                subject,
                [has_won(races) for races in found],
                at_most=PROMOTED_PERCENT if is_whole else None,
                note=_joined(note, _voids(found)),
                samples=_ratios(found),
            ),
            figure_row(
                "median of |newcomer / holder - 1|",
                subject,
                median_percent([abs(ratio - 1) for ratio in _ratios(found)]),
            ),
        ]


@dataclass
class FasterRaces:
    """A kernel against itself, idling for a share of its time."""

    executor: Executor
    source: str
    found: list[list[Race]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    calibration: IdleCalibration | None = None

    async def take(self, count: int) -> None:
        """Finds the time to idle, and adds `count` times the races of the kernel that does not."""
        self.calibration = IdleCalibration(self.executor, self.source)
        await self.calibration.run()
        clocks, share = self.calibration.best
        if not self.calibration.reached:
            self.problems.append(f"idling {clocks} clocks makes it {100 * share:.2f} % slower")
        holder = HoldingKernel(self.executor, kernel_file.parse(idling(self.source, clocks)))
        newcomer = kernel_file.parse(idling(self.source, 0))
        for _ in range(count):
            self.found.append(await holder.races(newcomer))

    @staticmethod
    def rows(subject: str, parts: Sequence[FasterRaces], note: str, is_whole: bool) -> list[Row]:
        """The rows of all newcomers of `parts`; the goal stands in those of the whole."""
        found = [races for part in parts for races in part.found]
        rows = [
            share_row(
                f"newcomers that win against a holder that idles {100 * SHARE:g} %",
                subject,
                [has_won(races) for races in found],
                at_least=WINNING_PERCENT if is_whole else None,
                note=_joined(note, _voids(found)),
                samples=_ratios(found),
            ),
            figure_row(
                "by which the holder is slower, median of these races",
                subject,
                median_percent([1 / ratio - 1 for ratio in _ratios(found)]),
            ),
        ]
        tried = [part.calibration for part in parts if part.calibration and part.calibration.tried]
        if len(parts) == 1 and tried:
            clocks, share = tried[0].best
            note = f"idling {clocks} clocks, round {len(tried[0].tried)}"
            rows.append(
                figure_row(
                    "by which the holder is slower, as calibrated", subject, 100 * share, note=note
                )
            )
        return rows


def same_code(source: str, number: int) -> str:
    """The same machine code under another digest: a comment more."""
    return f"{source}\n// newcomer {number}\n"


def has_won(races: Sequence[Race]) -> bool:
    """Whether a newcomer beats the holder; races that were void so far do not count."""
    return bool(races) and races[-1].result is RaceResult.won


def _ratios(found: Sequence[Sequence[Race]]) -> list[float]:
    """Of every newcomer's last race that has one: its time / the holder's."""
    return [races[-1].ratio.value for races in found if races and races[-1].ratio is not None]


def _voids(found: Sequence[Sequence[Race]]) -> str:
    races = [race for one in found for race in one]
    voids = [race.reason for race in races if race.result is RaceResult.void]
    return f"{len(voids)} of {len(races)} races void, the last: {voids[-1]}" if voids else ""


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)
