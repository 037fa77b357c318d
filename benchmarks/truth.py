"""Whether the intervals of verdicts and the results of races are true, on the present GPU.

    python -m benchmarks.truth [PART ...] [--count N] [--only KERNEL ...] [--json FILE]

Everything is measured where the answer is known:

* `pairs`: two verdicts on one kernel, each of a process of its own, differ by no more than both
  intervals say (goal: 93 % of the pairs; median half-width 1 %).
* `baseline`: a baseline is timed against itself in the candidate's place; the interval holds 1.00
  (goal: 186 of 200).
* `equal`: newcomers with the holder's machine code race against it (goal: 5 % win).
* `faster`: a kernel races against itself idling 2 % of its time longer (goal: 90 % win). How long
  that is, is found by races first, and shown.
* `searched`: a search among N equal kernels reports of its best elite what separate verdicts say of
  the kernel; beside it, what selection saw.

N is shared out among the kernels, or tasks for `baseline`; `searched` has N trials for each kernel.
A goal stands in the rows of all kernels together. What fails is a note in its row, and the rest
goes on. The raw figures of shares are in the JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

from benchmarks.baseline_series import BaselineSeries
from benchmarks.equal_search import EqualSearch
from benchmarks.repeated_races import EqualRaces, FasterRaces
from benchmarks.table import Row, machine, publish, table
from benchmarks.verdict import plain_baselines
from benchmarks.verdict_pairs import VerdictPairs
from evoengine import atomic_files
from evoengine.evaluate.cuda_driver import cuda_devices
from evoengine.paths import find_kernel, find_task
from evoengine.protocols import Executor
from evoengine.records import Environment
from evoengine.search.make_executor import find_device, make_executor
from evoengine.task.load import load_task
from evoengine.task.schema import Task

SUBJECTS = {
    "sdpa_mma": "sdpa_h200",
    "sdpa_v2c_wmma": "sdpa_h200",
    "matmul_fp16": "matmul_fp16",
    "layernorm": "layernorm",
}
DEVICE = "cuda"
CLOSE_S = 60.0  # to end an executor that broke
ALL = "all"


class RepeatedMeasurement(Protocol):
    """Measurements of one kind on one subject."""

    problems: list[str]

    async def take(self, count: int) -> None:
        """Adds `count` measurements; what was measured before an exception stays."""
        ...

    def rows(self, subject: str, parts: Sequence[Self], note: str, is_whole: bool) -> list[Row]:
        """The rows of all series in `parts`, which is all that was measured if `is_whole`."""
        ...


@dataclass(frozen=True)
class Judging:
    """A kernel of a task, with a started executor."""

    source: str
    task: Task
    environment: Environment
    executor: Executor


@dataclass(frozen=True)
class Part:
    """One kind of measurement."""

    count: int  # by default
    series: Callable[[Judging], RepeatedMeasurement]
    is_shared: bool = True  # whether a count is shared out among the kernels


PARTS = {
    "pairs": Part(60, lambda it: VerdictPairs(it.executor, it.source)),
    "equal": Part(100, lambda it: EqualRaces(it.executor, it.source)),
    "faster": Part(60, lambda it: FasterRaces(it.executor, it.source)),
    "searched": Part(
        120,
        lambda it: EqualSearch(it.executor, it.source, it.task, it.environment),
        is_shared=False,
    ),
}
BASELINE, BASELINE_COUNT = "baseline", 200


@asynccontextmanager
async def judging(kernel: str) -> AsyncIterator[Judging]:
    """A kernel with an executor of its own: what breaks it breaks no other measurement."""
    path = find_task(SUBJECTS[kernel])
    task = load_task(path)
    executor = make_executor(task, path, find_device(DEVICE, task), (), plain_baselines(task))
    try:
        environment = (await executor.start()).environment
        source = find_kernel(kernel).read_text(encoding="utf-8")
        yield Judging(source, task, environment, executor)
    finally:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(executor.close(), CLOSE_S)


def shared_out(count: int, among: int) -> list[int]:
    """`count` as `among` whole numbers that differ by 1 at most."""
    return [count // among + (number < count % among) for number in range(among)]


async def rows_of_part(name: str, options: argparse.Namespace) -> AsyncIterator[list[Row]]:
    """The rows of each subject, and then those of all together."""
    subjects = list(_subjects(name, options))
    is_whole = len(subjects) == 1
    done: list[RepeatedMeasurement] = []
    failed = 0
    for subject, count in subjects:
        found: list[RepeatedMeasurement] = []
        notes = []
        try:
            await _take(name, subject, count, found)
        except Exception as error:  # noqa: BLE001 - what fails on one subject must not end the rest
            notes = [f"{type(error).__name__}: {error}"]
            failed += 1
        if not found:
            yield [{"measured": name, "subject": subject, "kept": False, "note": notes[0]}]
            continue
        done += found
        note = " ".join("; ".join([*notes, *_told(found[0].problems)]).split())
        yield found[0].rows(subject, found, note, is_whole)
    if done and not is_whole:
        note = f"{failed} of {len(subjects)} subjects failed" if failed else ""
        yield done[0].rows(ALL, done, note, is_whole=True)


async def _take(name: str, subject: str, count: int, found: list[RepeatedMeasurement]) -> None:
    """Measures; the series stands in `found` before its first measurement."""
    if name == BASELINE:
        found.append(BaselineSeries(subject))
        await found[0].take(count)
        return
    async with judging(subject) as it:
        found.append(PARTS[name].series(it))
        await found[0].take(count)


def _subjects(name: str, options: argparse.Namespace) -> Iterator[tuple[str, int]]:
    """The subjects of a part, each with its number of measurements, which is not 0."""
    kernels = list(dict.fromkeys(options.only))
    if name == BASELINE:
        names = list(dict.fromkeys(SUBJECTS[kernel] for kernel in kernels))
        counts = shared_out(options.count or BASELINE_COUNT, len(names))
    else:
        names, count = kernels, options.count or PARTS[name].count
        is_shared = PARTS[name].is_shared
        counts = shared_out(count, len(names)) if is_shared else [count] * len(names)
    yield from ((one, count) for one, count in zip(names, counts, strict=True) if count)


def _told(problems: Sequence[str]) -> list[str]:
    """Problems as one text: their number, and the last."""
    return [f"{len(problems)} problems, the last: {problems[-1]}"] if problems else []


async def measure(options: argparse.Namespace, where: dict[str, str]) -> list[Row]:
    """All rows; those of a subject are printed, and written to the file, as soon as they are
    known.
    """
    rows: list[Row] = []
    for name in options.parts:
        async for part in rows_of_part(name, options):
            rows += part
            print(f"\n{table(part)}", file=sys.stderr, flush=True)
            if options.json is not None:
                text = json.dumps({"machine": where, "rows": rows}, indent=1)
                atomic_files.write_text(options.json, text + "\n")
    return rows


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    names = [*PARTS, BASELINE]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.truth",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of: {', '.join(names)}")
    parser.add_argument("--count", type=int, metavar="N", help="measurements of each part")
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="KERNEL",
        choices=SUBJECTS,
        default=list(SUBJECTS),
        help=f"some of: {', '.join(SUBJECTS)}",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there as well")
    options = parser.parse_args(arguments)
    options.parts = list(dict.fromkeys(options.parts)) or names
    if unknown := [name for name in options.parts if name not in names]:
        parser.error(f"no part {unknown[0]!r}; known: {', '.join(names)}")
    if options.count is not None and options.count < 1:
        parser.error(f"--count must be >= 1, got {options.count}")
    return options


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and prints."""
    options = parse_arguments(arguments)
    found = cuda_devices()
    if not found.names:
        raise SystemExit(f"this benchmark needs a CUDA device: {found.problem}")
    where = machine(device=found.names[0])
    publish(where, asyncio.run(measure(options, where)), options.json)


if __name__ == "__main__":
    main()
