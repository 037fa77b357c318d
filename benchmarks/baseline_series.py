"""Measurements of a baseline against itself, by a process that opens CUDA, as rows of a table."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.baseline_itself import ItselfMeasured
from benchmarks.shares import figure_row, half_width, holds, median_percent, share_row
from benchmarks.table import Row
from evoengine.records import Interval

HOLDING_PERCENT = 93.0  # 186 of 200
SILENCE_S = 120.0  # without a measurement; the first one waits for references
ROOT = Path(__file__).resolve().parent.parent


@dataclass
class BaselineSeries:
    """The measurements of one task."""

    task_name: str
    command: Sequence[str] = (sys.executable, "-m", "benchmarks.baseline_itself")
    silence_s: float = SILENCE_S
    found: list[Interval] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    async def take(self, count: int) -> None:
        """Adds up to `count` measurements; a process that fails or is silent is a problem, and what
        it measured before stays.
        """
        process = await asyncio.create_subprocess_exec(
            *self.command,
            self.task_name,
            "--count",
            str(count),
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None and process.stderr is not None
        said = asyncio.create_task(process.stderr.read())
        try:
            while line := await asyncio.wait_for(process.stdout.readline(), self.silence_s):
                self._add(ItselfMeasured.model_validate_json(line))
        except TimeoutError:
            self.problems.append(f"no measurement for {self.silence_s:g} s")
        finally:
            killed = not process.stdout.at_eof() and process.returncode is None
            if killed:
                process.kill()
            code, errors = await process.wait(), (await said).decode(errors="replace")
        if code and not killed:
            print(errors, file=sys.stderr)
            self.problems.append((errors.strip().splitlines() or [f"exit status {code}"])[-1])

    def _add(self, measured: ItselfMeasured) -> None:
        if measured.ratio is None:
            self.problems.append(f"{measured.case}: {measured.problem}")
        else:
            self.found.append(measured.ratio)

    @staticmethod
    def rows(subject: str, parts: Sequence[BaselineSeries], note: str, is_whole: bool) -> list[Row]:
        """The rows of all measurements of `parts`; the goal stands in those of the whole."""
        ratios = [ratio for part in parts for ratio in part.found]
        return [
            share_row(
                "baseline / itself: intervals that hold 1",
                subject,
                [holds(ratio, 1.0) for ratio in ratios],
                at_least=HOLDING_PERCENT if is_whole else None,
                note=note,
                samples=[ratio.value for ratio in ratios],
            ),
            figure_row(
                "baseline / itself: median half-width",
                subject,
                median_percent([half_width(ratio) for ratio in ratios]),
            ),
        ]
