"""From source to full verdict on a GPU, compiler cold and worker warm; and the same job as a torch
extension.

    python -m benchmarks.verdict [--repeats N] [--only KERNEL ...] [--skip-extension] [--json FILE]

Needs a CUDA device, takes about four minutes, of which the extension's compiler has one or two.
Candidates come one at a time. Each repetition is a source that no cache has seen and compiles into
an empty cache folder. One verdict of every kernel comes before the measured ones: it starts the
compiler processes and has the task's references computed. Shown are the seconds of

* a full verdict on every packaged starting kernel of three tasks (mark: median 1.0 s for a
  fast candidate; sdpa_h200 checks 5 cases and 3 hidden ones on 9 input sets each),
* some as a search judges them, which times the cases of the objective alone: those that
  use tensor cores and layernorm, while a place is free (mark: 0.7 s) and coarsely, where no place
  can be won (mark: 0.4 s, layernorm 0.37 s),
* a wrong candidate (mark: its compilation and 0.03 s; its diagnosis, which keeps no other one
  waiting in a search, is a column of its own and not counted),
* an uncompilable candidate (mark: median 0.3 s),
* the next verdict after a worker was killed, from the kill on: with the process that stands
  by, and when that one was lost as well (mark: 8 s),
* the layernorm kernel through torch.utils.cpp_extension.load_inline, compiled, checked on
  the same input sets and timed, in a process of its own; how long that process takes to
  start and to compute the references is not counted. And the ratio of both ways.

Where a baseline is torch.compile, the first of the others is timed against, because its own
compilation would take most of the benchmark. The figures mean nothing without the machine: name the
GPU, the processor and the versions that are printed above the table.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.subjects import (
    FLAWS,
    KERNELS,
    endless,
    numbers,
    renewed,
    trapping,
    uncompilable,
    wrong,
)
from benchmarks.table import Row, machine, publish, table
from evoengine.candidate import kernel_file as candidates
from evoengine.evaluate.compile.pool import CompilePool
from evoengine.evaluate.cuda_driver import cuda_devices
from evoengine.evaluate.device.grader_device import cuda_device
from evoengine.evaluate.local_executor import LocalExecutor
from evoengine.paths import find_kernel, find_task
from evoengine.protocols import SearchBar
from evoengine.records import Environment, Status, Verdict
from evoengine.search.make_executor import COMPILERS
from evoengine.task.load import load_task
from evoengine.task.schema import Task

VERDICT_MARK_S = 1.0
SEARCH_MARK_S = 0.7  # of a candidate that may take a place
COARSE_MARK_S = 0.4  # of one that can take none
COARSE_MARKS_S = {"layernorm": 0.37}  # where it is another
SEARCHED = {"sdpa_v2c_wmma_qk", "sdpa_v2c_wmma", "sdpa_mma", "matmul_fp16", "layernorm"}
FREE_PLACE = SearchBar()
NO_PLACE = SearchBar(score=1e-3)  # no kernel is a thousand times faster than its baseline
REFUSAL_MARK_S = 0.3
WRONG_MARK_S = 0.03  # beside the compilation
KILLED_MARK_S = 8.0
SPARE_S = 8.0  # by then the process that stands by is warm, and disturbs no more
KILLS = 2  # repetitions of what needs two waits for the spare
SILENCE_S = 2.0  # allowed to an endless kernel here; the wait is not part of any figure
PHASES = ("compile", "check", "timing")
DIAGNOSIS = "forensics"
ROOT = Path(__file__).resolve().parent.parent
PEER = "layernorm"
PEER_LIMIT_S = 300.0


@dataclass
class Series:
    """Repetitions of one measurement; with `bar`, of verdicts in a search."""

    what: str
    expected: Status = Status.correct
    mark_s: float | None = None
    beside_compile: bool = False  # whether the mark is of all but compilation
    bar: SearchBar | None = None
    total_s: list[float] = field(default_factory=list)
    phases_s: list[dict[str, float]] = field(default_factory=list)
    surprise: str = ""  # the first verdict that was not the expected one

    def add(self, seconds: float, verdict: Verdict) -> None:
        self.total_s.append(seconds)
        self.phases_s.append(verdict.phases_s)
        if verdict.status is not self.expected and not self.surprise:
            self.surprise = f"{verdict.status}: {verdict.reason}"
        if verdict.is_coarse is not (self.bar is NO_PLACE) and not self.surprise:
            self.surprise = "timed to the end" if self.bar is NO_PLACE else "timed coarsely"

    def row(self) -> Row:
        """The medians; the phases of verdicts that have them."""
        phases = {f"{name}_s": self._phase(name) for name in (*PHASES, DIAGNOSIS)}
        marked_s = statistics.median(self._marked_s())
        beside = "compile + " if self.beside_compile else ""
        return {
            "measured": self.what,
            "runs": len(self.total_s),
            "median_s": statistics.median(self.total_s),
            "min_s": min(self.total_s),
            "max_s": max(self.total_s),
            **phases,
            "marked_s": None if self.mark_s is None else marked_s,
            "mark": "" if self.mark_s is None else f"<= {beside}{self.mark_s:g}",
            "kept": None if self.mark_s is None else self._is_kept(self.mark_s),
            "note": self.surprise,
            "samples_s": self.total_s,
        }

    def _marked_s(self) -> list[float]:
        """What the mark is about: a diagnosis is not."""
        pairs = zip(self.total_s, self.phases_s, strict=True)
        return [total - phases.get(DIAGNOSIS, 0.0) for total, phases in pairs]

    def _is_kept(self, mark_s: float) -> bool:
        seconds = self._marked_s()
        if self.beside_compile:
            pairs = zip(seconds, self.phases_s, strict=True)
            seconds = [one - phases.get("compile", 0.0) for one, phases in pairs]
        return statistics.median(seconds) <= mark_s and not self.surprise

    def _phase(self, name: str) -> float | None:
        seconds = [phases[name] for phases in self.phases_s if name in phases]
        return statistics.median(seconds) if seconds else None


class Bench:
    """One task with its executor; every source that it judges is new to all caches."""

    def __init__(self, task: Task, executor: LocalExecutor, number: Iterator[int]) -> None:
        self.task = task
        self.executor = executor
        self._number = number
        self.last_step = 0.0  # when the worker last said what it does

    async def judge(self, source: str, bar: SearchBar | None = None) -> tuple[float, Verdict]:
        """Seconds from source to verdict, and the verdict; with a bar, as a search judges it."""
        text = renewed(source, next(self._number))
        start = time.monotonic()
        verdict = await self.executor.evaluate(candidates.parse(text), self._stepped, search=bar)
        return time.monotonic() - start, verdict

    def _stepped(self, _: str) -> None:
        self.last_step = time.monotonic()


@asynccontextmanager
async def bench(
    task_name: str, folder: Path, number: Iterator[int], silence_s: float | None = None
) -> AsyncIterator[tuple[Bench, Environment]]:
    """A started executor for the task, its cache below `folder`."""
    path = find_task(task_name)
    task = load_task(path)
    if silence_s is not None:
        task = task.model_copy(
            update={"limits": task.limits.model_copy(update={"launch_s": silence_s})}
        )
    pool = CompilePool(COMPILERS, folder / "cubins")
    executor = LocalExecutor(task, str(path), pool, cuda_device(0), plain_baselines(task))
    try:
        environment = (await executor.start()).environment
        yield Bench(task, executor, number), environment
    finally:
        await executor.close()


def plain_baselines(task: Task) -> dict[str, str] | None:
    """The first baseline that is not compiled, for every case; None, to find the fastest, where
    none is compiled.
    """
    plain = [name for name in task.baselines if name != "torch.compile"]
    return None if len(plain) == len(task.baselines) else dict.fromkeys(task.cases, plain[0])


async def measure_kernels(
    task_name: str, kernels: Sequence[str], repeats: int, folder: Path, number: Iterator[int]
) -> tuple[list[Row], Environment]:
    """Verdicts on the kernels of one task: right, wrong and uncompilable ones."""
    async with bench(task_name, folder, number) as (subject, environment):
        sources = {name: find_kernel(name).read_text(encoding="utf-8") for name in kernels}
        started = time.monotonic()
        work = [
            (Series(f"{task_name}: {name}", mark_s=VERDICT_MARK_S), source)
            for name, source in sources.items()
        ]
        first = Series(
            f"{task_name}: {kernels[0]}, the first verdict of a process, references computed"
        )
        first.add(*await subject.judge(sources[kernels[0]]))
        for source in list(sources.values())[1:]:
            await subject.judge(source)
        for name in (name for name in kernels if name in SEARCHED):
            work += [(series, sources[name]) for series in _in_a_search(task_name, name)]
        for name in (name for name in kernels if name in FLAWS):
            work.append(
                (
                    Series(
                        f"{task_name}: {name}, wrong",
                        Status.wrong_result,
                        WRONG_MARK_S,
                        beside_compile=True,
                    ),
                    wrong(name, sources[name]),
                )
            )
            work.append(
                (
                    Series(
                        f"{task_name}: {name}, uncompilable", Status.compile_error, REFUSAL_MARK_S
                    ),
                    uncompilable(sources[name]),
                )
            )
        await asyncio.sleep(max(0.0, SPARE_S - (time.monotonic() - started)))
        for _ in range(repeats):
            for series, source in work:
                series.add(*await subject.judge(source, series.bar))
        return [first.row(), *(series.row() for series, _ in work)], environment


def _in_a_search(task_name: str, kernel: str) -> list[Series]:
    """A kernel's verdicts while a place is free, and where it can win none."""
    coarse_s = COARSE_MARKS_S.get(kernel, COARSE_MARK_S)
    return [
        Series(f"{task_name}: {kernel}, a place is free", mark_s=SEARCH_MARK_S, bar=FREE_PLACE),
        Series(f"{task_name}: {kernel}, no place to win", mark_s=coarse_s, bar=NO_PLACE),
    ]


async def measure_kills(
    task_name: str, kernel: str, folder: Path, number: Iterator[int]
) -> list[Row]:
    """How long until a worker that was lost judges again."""
    source = find_kernel(kernel).read_text(encoding="utf-8")
    warm = Series(
        f"{kernel}: after an endless kernel was killed, to the next verdict", mark_s=KILLED_MARK_S
    )
    cold = Series(
        f"{kernel}: after two crashes in a row, to the next verdict", mark_s=KILLED_MARK_S
    )
    async with bench(task_name, folder, number, SILENCE_S) as (subject, _):
        await subject.judge(source)
        for _ in range(KILLS):
            await asyncio.sleep(SPARE_S)
            _expect(await subject.judge(endless(subject.task)), Status.timeout)
            killed = subject.last_step + SILENCE_S
            _, verdict = await subject.judge(source)
            warm.add(time.monotonic() - killed, verdict)
        await asyncio.sleep(SPARE_S)
        for _ in range(2):  # the second crash takes the process that stood by
            _expect(await subject.judge(trapping(subject.task)), Status.crash)
        crashed = subject.last_step
        _, verdict = await subject.judge(source)
        cold.add(time.monotonic() - crashed, verdict)
    return [warm.row(), cold.row()]


def _expect(judged: tuple[float, Verdict], status: Status) -> None:
    verdict = judged[1]
    if verdict.status is not status:
        raise SystemExit(
            f"expected {status} of a kernel that breaks its worker, got {verdict.status}:"
            f" {verdict.reason}"
        )


def measure_extension(folder: Path, ours_s: float) -> list[Row]:
    """The peers' way, and the ratio to `ours_s`; a machine without nvcc and a C++ compiler gets a
    row that says so.
    """
    what = f"{PEER} through load_inline"
    command = [sys.executable, "-m", "benchmarks.extension", "--folder", str(folder)]
    try:
        done = subprocess.run(  # noqa: S603 - our own program
            command, cwd=ROOT, capture_output=True, text=True, timeout=PEER_LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return [{"measured": what, "note": f"not done after {PEER_LIMIT_S:g} s"}]
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        print(done.stderr, file=sys.stderr)
        return [{"measured": what, "note": f"not measured: {last}"}]
    return extension_rows(what, json.loads(done.stdout.splitlines()[-1]), ours_s)


def extension_rows(what: str, phases_s: dict[str, float], ours_s: float) -> list[Row]:
    """The peer's phases, summed and against ours."""
    total_s = sum(phases_s[name] for name in PHASES)
    times = {"median_s": total_s, "min_s": total_s, "max_s": total_s}
    spent = {f"{name}_s": phases_s[name] for name in PHASES}
    note = f"starting the process took {phases_s['start']:.1f} s more"
    ratio: Row = {
        "measured": f"{what} / evoengine",
        "median_s": total_s / ours_s,
        "note": "a ratio",
    }
    return [{"measured": what, "runs": 1, **times, **spent, "note": note}, ratio]


async def measure(options: argparse.Namespace, folder: Path) -> tuple[list[Row], Environment]:
    """Every row; each part is printed on standard error as soon as it is known."""
    number, rows, began = numbers(), list[Row](), time.monotonic()

    def report(part: list[Row]) -> None:
        rows.extend(part)
        print(
            f"\nafter {time.monotonic() - began:.0f} s\n{table(part)}", file=sys.stderr, flush=True
        )

    chosen = {
        task: [name for name in names if name in options.only] for task, names in KERNELS.items()
    }
    for task, kernels in chosen.items():
        if kernels:
            part, environment = await measure_kernels(
                task, kernels, options.repeats, folder, number
            )
            report(part)
    task, kernels = next((task, kernels) for task, kernels in chosen.items() if kernels)
    report(await measure_kills(task, kernels[-1], folder, number))
    ours = [row["median_s"] for row in rows if row["measured"] == f"{PEER}: {PEER}"]
    if not options.skip_extension and ours:
        (folder / "extension").mkdir()
        report(measure_extension(folder / "extension", float(str(ours[0]))))
    return rows, environment


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    names = [name for kernels in KERNELS.values() for name in kernels]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.verdict", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--repeats",
        type=int,
        default=5,
        help="measured verdicts on each kernel (default %(default)s)",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="KERNEL",
        choices=names,
        default=names,
        help=f"some of: {', '.join(names)}",
    )
    parser.add_argument(
        "--skip-extension",
        action="store_true",
        help=f"leave load_inline out; it also needs {PEER} among the kernels",
    )
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write machine and rows, with every sample, there as well",
    )
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    options = parse_arguments(arguments)
    found = cuda_devices()
    if not found.names:
        raise SystemExit(
            f"this benchmark needs a CUDA device: {found.problem}; benchmarks.loop runs without one"
        )
    where = machine()
    with tempfile.TemporaryDirectory(prefix="evoengine-verdict-") as folder:
        rows, environment = asyncio.run(measure(options, Path(folder)))
    publish({"device": environment.device, **where, **environment.versions}, rows, options.json)
    if any(row.get("note") and row.get("mark") for row in rows):
        raise SystemExit("a verdict was not the expected one: see the notes")


if __name__ == "__main__":
    main()
