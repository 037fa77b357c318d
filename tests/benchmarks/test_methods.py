"""The simulated model, and searches that ask it."""

from __future__ import annotations

import asyncio
import json
import statistics
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import methods
from benchmarks.methods import SEARCHES, RunRow, Search, rows_of, run, trials_to
from benchmarks.simulated_kernels import (
    FIRST_GUESS_SLOWDOWN,
    VALUES,
    SimulatedKernel,
    shown_kernels,
)
from benchmarks.simulated_model import MODELS, SimulatedEndpoint, starting_kernel
from benchmarks.simulated_times import SCORE_NOISE, SimulatedTimes, true_score
from evoengine.candidate.kernel_file import parse
from evoengine.config import PromptSettings
from evoengine.generate.method_registry import MODULES
from evoengine.protocols import ProposalRow
from evoengine.records import RaceResult
from evoengine.store.memory_store import MemoryStore

PARENT = SimulatedKernel(0.5, 0.3, (512, 2, 4), (256, 4, 2))
PROMPT = "# What to do now\n\nMake this kernel faster.\n\n```cuda\n{}```\n"


def replies(prompt: str, model: str = "steady", count: int = 300) -> list[SimulatedKernel]:
    """The kernels in `count` replies to the same prompt."""
    endpoint = SimulatedEndpoint(MODELS[model], seed=1)

    async def ask() -> list[SimulatedKernel]:
        return [shown_kernels((await endpoint.ask(prompt)).text)[0] for _ in range(count)]

    return asyncio.run(ask())


def without_clock(row: RunRow) -> RunRow:
    return replace(row, processor_s=0.0)


@pytest.mark.parametrize(
    "search", [Search("full", 0.25), Search("islands")], ids=lambda it: it.name
)
def test_a_run_follows_from_its_seed(search: Search) -> None:
    one, same, other = (run("steady", search, seed, trials=20) for seed in (3, 3, 4))
    assert without_clock(one) == without_clock(same)
    assert one.best != other.best


@pytest.mark.parametrize("method", MODULES)
def test_with_the_null_model_no_method_finds_a_winner_beyond_noise(method: str) -> None:
    runs = [run("null", Search(method), seed, trials=20) for seed in range(3)]
    assert min(min(it.best) for it in runs) >= 1.0 - 1e-6, "sources state six digits"
    errors = [it.measured / it.best[-1] - 1 for it in runs]
    # what is measured is a ratio to the true start: one noise each
    assert abs(statistics.fmean(errors)) < 4 * SCORE_NOISE / len(runs) ** 0.5


def test_with_the_null_model_tuning_finds_what_the_first_guess_left_and_no_more() -> None:
    found = run("null", Search("full", 0.5), seed=1)
    assert found.best[-1] == pytest.approx(1 / FIRST_GUESS_SLOWDOWN)


def test_what_tuning_found_is_shown_to_the_model_and_stays_in_its_next_kernels() -> None:
    store, start = MemoryStore(), starting_kernel("null", seed=3)
    endpoint = SimulatedEndpoint(MODELS["null"], seed=3)
    engine = methods.make_engine(start, Search("full", 0.5), 3, methods.TRIALS, endpoint, store)
    asyncio.run(methods.started_and_run(engine))
    proposals = [row.proposal for it, _ in store.trials() if (row := store.get(ProposalRow, it))]
    written = [it.source for it in proposals if it.operator in ("mutate", "crossover", "repair")]
    kernels = [shown_kernels(source)[0] for source in written if source]
    assert kernels[0].first != start.optimum
    # others are new designs, or children of kernels that were not tuned
    assert any(kernel.first == kernel.optimum == start.optimum for kernel in kernels)


def test_a_prompt_that_shows_the_parent_brings_children_of_its_quality() -> None:
    children = [kernel.quality for kernel in replies(PROMPT.format(PARENT.source(7)))]
    assert max(children) <= 0.5 * 1.05 and min(children) < 0.5
    better = sum(quality < 0.5 for quality in children) / len(children)
    assert better == pytest.approx(MODELS["steady"].better, abs=0.1)


def test_a_prompt_that_hides_the_parent_brings_none_of_its_quality() -> None:
    hidden = [kernel.quality for kernel in replies(PROMPT.format("// its source is not shown\n"))]
    low, high = MODELS["steady"].fresh
    assert low <= min(hidden) and max(hidden) <= high


def test_a_search_whose_templates_hide_the_parent_gets_none_of_its_quality(tmp_path: Path) -> None:
    for operator in ("mutate", "crossover"):
        (tmp_path / f"{operator}.jinja").write_text("# What to do now\n\nMake it faster.\n")

    def best_of_three_runs(prompts: PromptSettings) -> float:
        best = []
        for seed in range(3):
            store, start = MemoryStore(), starting_kernel("steady", seed=seed)
            endpoint = SimulatedEndpoint(MODELS["steady"], seed=seed)
            engine = methods.make_engine(
                start, Search("free"), seed, methods.TRIALS, endpoint, store, prompts
            )
            asyncio.run(methods.started_and_run(engine))
            best.append(methods.first_places(store)[-1])
        return min(best)

    shown = best_of_three_runs(PromptSettings())
    hidden = best_of_three_runs(PromptSettings(folder=str(tmp_path)))
    assert hidden >= MODELS["steady"].fresh[0] > shown


def test_each_trial_of_best_of_n_is_a_first_sample_and_no_better_than_one() -> None:
    best = run("steady", Search("best_of_n"), seed=1).best[-1]
    free = run("steady", Search("free"), seed=1).best[-1]
    assert best >= MODELS["steady"].fresh[0] * (1 - 1e-6) > free


@pytest.mark.parametrize("seed", range(5))
def test_the_first_guess_of_a_design_is_slower_by_the_known_factor(seed: int) -> None:
    kernel = starting_kernel("steady", seed)
    first, best = (dict(zip(VALUES, it, strict=True)) for it in (kernel.first, kernel.optimum))
    assert kernel.score(first) / kernel.score(best) == pytest.approx(FIRST_GUESS_SLOWDOWN)


def test_a_kernel_is_read_from_its_source_as_it_was_written() -> None:
    assert shown_kernels(f"before\n{PARENT.source(7)}after") == [PARENT]
    candidate = parse(PARENT.source(7))
    assert tuple(candidate.tunables[name] for name in VALUES) == PARENT.first


def test_equal_kernels_seldom_win_races_and_much_faster_ones_always() -> None:
    times = SimulatedTimes(seed=1)
    slow, fast = (parse(replace(PARENT, quality=it).source(7)) for it in (0.5, 0.45))
    equal = [times.race_of(slow, slow).result for _ in range(400)]
    assert equal.count(RaceResult.won) / 400 == pytest.approx(0.025, abs=0.025)
    assert all(times.race_of(fast, slow).result is RaceResult.won for _ in range(50))


def test_scores_scatter_around_the_true_one_as_stated() -> None:
    times, candidate = SimulatedTimes(seed=1), parse(PARENT.source(7))
    scores = [times.verdict_of(candidate, verify=False).score for _ in range(400)]
    values = [score.value / true_score(candidate) for score in scores if score]
    assert statistics.fmean(values) == pytest.approx(1, abs=0.002)
    assert statistics.stdev(values) == pytest.approx(SCORE_NOISE, rel=0.15)


def test_a_plateau_ends_a_run_of_the_null_model_early() -> None:
    found = run("null", Search("full", plateau=15), seed=1)
    assert (found.ended, found.trials < methods.TRIALS) == ("plateau", True)


def test_every_method_is_compared() -> None:
    assert {search.method for search in SEARCHES} == set(MODULES)


def test_trials_to_a_mark_count_from_the_starting_kernel() -> None:
    assert trials_to([1.0, 0.9, 0.8], 0.85) == 2
    assert trials_to([1.0, 0.9, 0.8], 0.7) is None


def test_the_benchmark_writes_a_row_a_search_and_the_raw_runs(tmp_path: Path) -> None:
    file = tmp_path / "methods.json"
    methods.main(
        ["--count", "1", "--jobs", "1", "--trials", "4", "--model", "null", "--json", str(file)]
    )
    written = json.loads(file.read_text())
    names = [search.name for search in SEARCHES]
    assert [row["search"] for row in written["rows"]] == names
    assert [it["search"] for it in written["runs"]] == names


def test_a_run_that_never_came_near_counts_as_longer_than_all() -> None:
    row = run("null", Search("free"), seed=1, trials=3)
    near, far = replace(row, best=(1.0, 0.5, 0.5)), replace(row, best=(1.0, 1.0, 0.9))
    assert rows_of([near, far, far])[0]["after trials"] == "never"
    assert rows_of([near, near, far])[0]["after trials"] == "1"
