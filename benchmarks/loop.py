"""What the search loop itself costs, without compiler, device or model.

    python -m benchmarks.loop [--trials N] [--tuned N] [--folder FOLDER] [--json FILE]

A run of --trials trials goes through the real engine into a real database in a new folder
below FOLDER (the system's temporary one unless said otherwise: commits wait for its disk),
with verdicts of the size of real ones, all of them correct, and with replies stored as if a
model had written them. Shown are

* the trials settled a second, over parts of the run (mark: 200),
* the memory of the process (mark: it grows by no more than 32 MiB from the first tenth on),
* how long a new engine takes to open the run and to restore itself from it (mark: 2 s),
* the same with the built-in tuner, which builds a model of every outcome it knows for each
  proposal and is therefore slower; its proposals a second, and its restoring.

Marks are for 20,000 trials. The figures mean nothing without the machine and its disk:
name them, and what else was running.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.scripted import Renaming, correct_verdicts
from benchmarks.table import Row, machine, publish
from evoengine import __version__
from evoengine.config import RunConfig
from evoengine.evaluate.scripted.scripted_executor import SCRIPTED_GPU, ScriptedExecutor
from evoengine.events import Event, Observer, RunEnded, TrialSettled
from evoengine.generate.tune import TuneGenerator
from evoengine.paths import RunPaths, find_kernel, find_task
from evoengine.protocols import Generator, Store
from evoengine.records import Proposal, RunInfo
from evoengine.search.engine import Engine
from evoengine.store.run_folder import open_run
from evoengine.task.load import load_task
from evoengine.task.schema import Task

TASK = "sdpa_h200"
RATE_MARK = 200.0  # trials a second
RESUME_MARK_S = 2.0
GROWTH_MARK_MIB = 32.0
RESUMES = 3
PARTS = (0.1, 0.5, 1.0)  # of the run: where memory and speed are looked at


class Watch:
    """An observer that looks at clock and memory when certain trials settle."""

    def __init__(self, at: list[int]) -> None:
        self._at = at
        self._start, self._used = time.perf_counter(), time.process_time()
        self.seconds: list[float] = []
        self.processor_s: list[
            float
        ] = []  # less than the above where disk or other programs were waited for
        self.resident_mib: list[float] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, TrialSettled) and event.outcome.trial + 1 in self._at:
            self.seconds.append(time.perf_counter() - self._start)
            self.processor_s.append(time.process_time() - self._used)
            self.resident_mib.append(resident_mib())


def resident_mib() -> float:
    """The memory of this process that is in RAM now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def build_engine(
    task: Task,
    seeds: list[Proposal],
    generator: Generator,
    store: Store,
    trials: int,
    observe: Observer,
) -> Engine:
    """An engine over the scripted parts."""
    return Engine(
        task=task,
        config=RunConfig(task=task.name, trials=trials, generator="openai"),
        environment=SCRIPTED_GPU,
        seeds=seeds,
        generator=generator,
        executor=ScriptedExecutor(task, verdict_of=correct_verdicts(task)),
        store=store,
        observe=observe,
    )


def load() -> tuple[Task, list[Proposal]]:
    """A packaged task and its starting kernels."""
    path = find_task(TASK)
    task = load_task(path)
    files = [find_kernel(name, path.parent) for name in task.seeds_from]
    return task, [
        Proposal(operator="seed", source=file.read_text(encoding="utf-8"), label=file.stem)
        for file in files
    ]


def search(root: Path, generator: Generator, trials: int, watch: Watch) -> None:
    """A whole run in the new folder `root`."""
    task, seeds = load()
    with open_run(RunPaths(root), create=True) as folder:
        folder.store.append(_info(root.name, task))
        engine = build_engine(task, seeds, generator, folder.store, trials, watch)
        ended = asyncio.run(_started_and_run(engine))
        if not ended.complete or engine.settled != trials:
            raise SystemExit(
                f"the run ended early, after {engine.settled} of {trials} trials: {ended.reason}"
            )


async def _started_and_run(engine: Engine) -> RunEnded:
    await engine.executor.start()
    return await engine.run(asyncio.Event())


def resume_s(root: Path, generator: Generator, trials: int) -> float:
    """The seconds from a folder to an engine that could go on."""
    task, seeds = load()
    start = time.perf_counter()
    with open_run(RunPaths(root)) as folder:
        engine = build_engine(task, seeds, generator, folder.store, trials, lambda _: None)
        engine.restore()
        seconds = time.perf_counter() - start
    # The last few wait in the store for the proposals that must not see them yet.
    if engine.settled <= trials - engine.config.in_flight:
        raise SystemExit(f"only {engine.settled} of {trials} trials came back")
    return seconds


def measure_run(root: Path, trials: int) -> list[Row]:
    """Speed, memory and resume of a run with replies."""
    at = sorted({max(1, int(part * trials)) for part in PARTS})
    watch = Watch(at)
    search(root, Renaming(replies=True), trials, watch)
    rows = _rates(at, watch)
    for settled, mib in zip(at, watch.resident_mib, strict=True):
        rows.append(_row(f"memory after {settled:,} trials", mib, "MiB"))
    rows.append(
        _row(
            f"growth of memory from {at[0]:,} trials on",
            watch.resident_mib[-1] - watch.resident_mib[0],
            "MiB",
            at_most=GROWTH_MARK_MIB,
        )
    )
    rows.append(
        _row("database", sum(file.stat().st_size for file in root.iterdir()) / 2**20, "MiB")
    )
    rows.append(_resume(root, trials, tuned=False))
    return [*rows, _resume(root, trials, tuned=True)]


def measure_tuned(root: Path, trials: int) -> list[Row]:
    """Speed of a run with the built-in tuner."""
    watch = Watch([trials])
    search(root, TuneGenerator(), trials, watch)
    return [
        _row(f"with the tuner: trials a second over {trials:,}", trials / watch.seconds[-1], "1/s")
    ]


def _rates(at: list[int], watch: Watch) -> list[Row]:
    rows, before = [], (0, 0.0, 0.0)
    for settled, seconds, processor_s in zip(at, watch.seconds, watch.processor_s, strict=True):
        first, start, used = before
        count, part = settled - first, f"{first:,} to {settled:,}"
        rows.append(
            _row(f"trials a second, {part}", count / (seconds - start), "1/s", at_least=RATE_MARK)
        )
        rows.append(
            _row(f"processor time a trial, {part}", (processor_s - used) * 1000 / count, "ms")
        )
        before = settled, seconds, processor_s
    return rows


def _resume(root: Path, trials: int, tuned: bool) -> Row:
    samples = [
        resume_s(root, TuneGenerator() if tuned else Renaming(replies=True), trials)
        for _ in range(RESUMES)
    ]
    what = f"resume of {trials:,} trials{', the tuner told' if tuned else ''}"
    return _row(what, statistics.median(samples), "s", at_most=RESUME_MARK_S, samples=samples)


def _row(
    what: str,
    value: float,
    unit: str,
    at_least: float | None = None,
    at_most: float | None = None,
    samples: list[float] | None = None,
) -> Row:
    mark = (
        f">= {at_least:g}"
        if at_least is not None
        else f"<= {at_most:g}"
        if at_most is not None
        else ""
    )
    kept = (
        None
        if not mark
        else (at_least is None or value >= at_least) and (at_most is None or value <= at_most)
    )
    return {
        "measured": what,
        "value": value,
        "unit": unit,
        "mark": mark,
        "kept": kept,
        **({"samples": samples} if samples else {}),
    }


def _info(name: str, task: Task) -> RunInfo:
    return RunInfo(
        name=name,
        task_path=str(find_task(TASK)),
        config={},
        task=task.model_dump(mode="json"),
        environment=SCRIPTED_GPU.model_dump(mode="json"),
        baselines={},
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        version=__version__,
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.loop", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--trials", type=int, default=20_000, help="of the main run (default %(default)s)"
    )
    parser.add_argument(
        "--tuned",
        type=int,
        default=300,
        help="trials of the run with the tuner; 0 leaves it out (default %(default)s)",
    )
    parser.add_argument(
        "--folder", type=Path, help="where the runs are written and removed again; its disk counts"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write machine and rows there as well"
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="evoengine-loop-", dir=options.folder) as folder:
        where = machine(folder=str(Path(folder).parent))
        rows = measure_run(Path(folder) / "main", options.trials)
        if options.tuned:
            rows += measure_tuned(Path(folder) / "tuned", options.tuned)
    publish(where, rows, options.json)


if __name__ == "__main__":
    main()
