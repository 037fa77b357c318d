"""What the methods of search make of the same simulated model.

    python -m benchmarks.methods [--count N] [--jobs N] [--trials N] [--model NAME ...]
                                 [--json FILE]

Every run is a search by the real engine, generator and prompts, in memory; the model
(benchmarks/simulated_model.py) and the times of its kernels (benchmarks/simulated_times.py) are
simulated. So what is compared is machinery: whether a method brings good kernels before the model,
whether tuning and a plateau do what they are for. It says nothing about real models, or about which
method is better with one.

Shown for each model and search, over --count runs with the seeds 0, 1, ...:

* the share of runs whose best kernel came within 5 % of the best that any run with that model
  found, and after how many trials (the median over all runs; 'never' where half did not),
* the median of the trials until the first place took 0.8 of the starting kernel's time,
* the true time of the kernel in the first place at the end / that of the starting kernel,
* how much the run's last, unselected measurement of it differs from its true time,
* the tokens of prompts and replies (estimated), and the share of replies with a kernel.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path

from benchmarks.simulated_kernels import TASK, SimulatedKernel
from benchmarks.simulated_model import MODELS, SimulatedEndpoint, starting_kernel
from benchmarks.simulated_times import SimulatedTimes, true_score
from benchmarks.table import Row, machine, publish
from evoengine.config import ModelSettings, PromptSettings, RunConfig
from evoengine.evaluate.scripted.scripted_executor import SCRIPTED_GPU, ScriptedExecutor
from evoengine.events import RunEnded
from evoengine.generate.llm import ModelGenerator
from evoengine.generate.method_registry import method_of
from evoengine.generate.tuned_model import TunedModelGenerator
from evoengine.paths import find_task
from evoengine.population.elites import Population
from evoengine.protocols import FINAL, Store, VerdictRow
from evoengine.records import TIMING_VERSION, Proposal
from evoengine.search.engine import Engine
from evoengine.search.settled_trials import fold_into_population
from evoengine.search.trial_candidate import candidate_of, stored_proposal
from evoengine.store.memory_store import MemoryStore
from evoengine.task.load import load_task
from evoengine.task.schema import Task

TRIALS = 45
PLACES = 3
NEAR = 1.05  # within 5 % of the best
MARK = 0.8  # of the starting kernel's time: a mark that the same search reaches early or late


@dataclass(frozen=True)
class Search:
    """The settings in which runs differ."""

    method: str
    tune_share: float = 0.0
    plateau: int | None = None

    @property
    def name(self) -> str:
        tuned = f", tune share {self.tune_share:g}" if self.tune_share else ""
        return f"{self.method}{tuned}{f', plateau {self.plateau}' if self.plateau else ''}"


SEARCHES = (
    *(Search(name) for name in ("best_of_n", "free", "insight", "full", "islands")),
    Search("full", 0.25),
    Search("full", 0.5),
    Search("full", 0.5, plateau=15),
)


@dataclass(frozen=True)
class RunRow:
    """What one run came to. Times are true ones / that of the starting kernel."""

    model: str
    search: str
    seed: int
    ended: str  # the kind of its end
    trials: int  # that were settled
    best: tuple[float, ...]  # of the first place after each trial
    measured: float  # of the last one, as the run measured it at its end
    prompt_tokens: int
    reply_tokens: int
    replies: int
    without_kernel: int  # of the replies
    processor_s: float


def run(model: str, search: Search, seed: int, trials: int = TRIALS) -> RunRow:
    """One whole run."""
    began = time.process_time()
    endpoint, store = SimulatedEndpoint(MODELS[model], seed), MemoryStore()
    start = starting_kernel(model, seed)
    engine = make_engine(start, search, seed, trials, endpoint, store)
    ended = asyncio.run(started_and_run(engine))
    usage = store.spent().usage
    best, measured = first_places(store), _measured(engine)
    return RunRow(
        model=model,
        search=search.name,
        seed=seed,
        ended=ended.kind.value,
        trials=engine.settled,
        best=tuple(value / best[0] for value in best),
        measured=measured / best[0],
        prompt_tokens=usage.prompt_tokens,
        reply_tokens=usage.completion_tokens,
        replies=endpoint.replies,
        without_kernel=endpoint.without_kernel,
        processor_s=time.process_time() - began,
    )


def make_engine(
    start: SimulatedKernel,
    search: Search,
    seed: int,
    trials: int,
    endpoint: SimulatedEndpoint,
    store: Store,
    prompts: PromptSettings = PromptSettings(),  # noqa: B008 - frozen
) -> Engine:
    """The real engine and generator over what is simulated."""
    task, settings = _task(), ModelSettings(model="simulated")
    config = RunConfig(
        task=str(find_task(TASK)),
        seed=seed,
        trials=trials,
        places=PLACES,
        generator="openai",
        model=settings,
        method=search.method,
        tune_share=search.tune_share,
        plateau=search.plateau,
        prompts=prompts,
    )
    model = ModelGenerator(
        settings,
        find_task(TASK),
        method=method_of(search.method),
        prompts=prompts,
        endpoint=endpoint,
    )
    times = SimulatedTimes(seed)
    return Engine(
        task=task,
        config=config,
        environment=SCRIPTED_GPU,
        seeds=[Proposal(operator="seed", source=start.source(design=0), label="start")],
        generator=TunedModelGenerator(model, search.tune_share) if search.tune_share else model,
        executor=ScriptedExecutor(task, verdict_of=times.verdict_of, race_of=times.race_of),
        store=store,
    )


async def started_and_run(engine: Engine) -> RunEnded:
    """How the run of `engine` ended."""
    await engine.executor.start()
    try:
        return await engine.run(asyncio.Event())
    finally:
        await engine.generator.close()


@cache
def _task() -> Task:
    return load_task(find_task(TASK))


def first_places(store: Store) -> list[float]:
    """The true score of the kernel in the first place after each settled trial."""
    population = Population.of_run(PLACES, SCRIPTED_GPU, TIMING_VERSION)
    found = []
    for _ in fold_into_population(store.trials(), population):
        trial = population.elites[0].outcome.trial
        found.append(true_score(candidate_of(trial, stored_proposal(store, trial))))
    return found


def _measured(engine: Engine) -> float:
    """The score of the first place as the run measured it at its end."""
    row = engine.store.get(VerdictRow, engine.population.elites[0].outcome.trial, FINAL)
    assert row is not None and row.verdict.score is not None
    return row.verdict.score.value


def run_all(models: Sequence[str], count: int, trials: int, jobs: int) -> list[RunRow]:
    """`count` runs of every search with every one of `models`, in `jobs` processes."""
    asked = [
        (model, search, seed, trials)
        for model in models
        for search in SEARCHES
        for seed in range(count)
    ]
    # spawned: a fork of a process with threads may hang
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        return list(pool.map(run, *zip(*asked, strict=True), chunksize=4))


def rows_of(runs: Sequence[RunRow]) -> list[Row]:
    """A row for each model and search, in the order of `runs`."""
    found: dict[tuple[str, str], list[RunRow]] = {}
    for it in runs:
        found.setdefault((it.model, it.search), []).append(it)
    best = {
        model: min(it.best[-1] for it in runs if it.model == model)
        for model in {it.model for it in runs}
    }
    return [_row(model, group, best[model] * NEAR) for (model, _), group in found.items()]


def _row(model: str, runs: list[RunRow], near: float) -> Row:
    finals = [it.best[-1] for it in runs]
    low, middle, high = quartiles(finals)
    reached = [trials_to(it.best, near) for it in runs]
    errors = [it.measured / it.best[-1] - 1 for it in runs]
    replies = sum(it.replies for it in runs)
    with_kernel = replies - sum(it.without_kernel for it in runs)
    return {
        "model": model,
        "search": runs[0].search,
        "runs": len(runs),
        "within 5 %": f"{100 * sum(it is not None for it in reached) / len(runs):.0f} %",
        "after trials": _median_trials(reached),
        f"{MARK:g} after trials": _median_trials([trials_to(it.best, MARK) for it in runs]),
        "final best": f"{middle:.3f} ({low:.3f} to {high:.3f})",
        "measured - true": f"{100 * statistics.fmean(errors):+.2f} %",
        "trials": statistics.median(it.trials for it in runs),
        "prompt tokens": round(statistics.median(it.prompt_tokens for it in runs)),
        "reply tokens": round(statistics.median(it.reply_tokens for it in runs)),
        "replies with a kernel": f"{100 * with_kernel / replies:.0f} %",
        "CPU s": statistics.median(it.processor_s for it in runs),
    }


def trials_to(best: Sequence[float], near: float) -> int | None:
    """After how many trials, the starting kernel not counted, the first place was at most `near`;
    None: never.
    """
    return next((number for number, value in enumerate(best) if value <= near), None)


def _median_trials(reached: Sequence[int | None]) -> str:
    """The lower median, with runs that never came there above all others."""
    ranked = sorted(reached, key=lambda it: math.inf if it is None else it)
    middle = ranked[(len(ranked) - 1) // 2]
    return "never" if middle is None else str(middle)


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """The quartiles, the second of which is the median."""
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.methods", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--count", type=int, default=100, help="runs of each search (default %(default)s)"
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count(), help="processes (default: the cores)"
    )
    parser.add_argument(
        "--trials", type=int, default=TRIALS, help="of each run (default %(default)s)"
    )
    parser.add_argument(
        "--model",
        nargs="+",
        choices=MODELS,
        default=list(MODELS),
        help="simulated models (default: all)",
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write machine, rows and all runs there as well"
    )
    options = parser.parse_args(arguments)
    where = machine()
    runs = run_all(options.model, options.count, options.trials, options.jobs)
    rows = rows_of(runs)
    publish(where, rows, None)
    if options.json is not None:
        raw = {"machine": where, "rows": rows, "runs": [asdict(it) for it in runs]}
        options.json.write_text(json.dumps(raw) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
