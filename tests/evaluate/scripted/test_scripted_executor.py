"""The executor to try a generator with: its rule, and the example in its docstring."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import textwrap
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from evoengine.candidate import kernel_file
from evoengine.config import RunConfig
from evoengine.evaluate.scripted.scripted_executor import (
    SCRIPTED_EMULATOR,
    SCRIPTED_GPU,
    ScriptedExecutor,
)
from evoengine.evaluate.scripted.scripted_verdict import VerdictRule
from evoengine.records import Status, Verdict
from evoengine.search.engine import Engine
from evoengine.store.memory_store import MemoryStore
from tests.scale_task import kernel, load_scale_task
from tests.search.scripted_generator import SEEDS, ScriptedGenerator

RULE = VerdictRule()


def verdicts(executor: ScriptedExecutor, count: int = 200, verify: bool = False) -> list[Verdict]:
    async def run() -> list[Verdict]:
        await executor.start()
        candidates = [kernel_file.parse(kernel(f"variant_{number}")) for number in range(count)]
        return [await executor.evaluate(item, lambda _: None, verify) for item in candidates]

    return asyncio.run(run())


def test_the_example_in_the_docstring_searches(tmp_path: Path) -> None:
    text = inspect.cleandoc(ScriptedExecutor.__doc__ or "")
    lines = [line for line in text.splitlines() if line.startswith("    ")]
    task = load_scale_task(tmp_path)
    names = {
        "asyncio": asyncio, "Engine": Engine, "MemoryStore": MemoryStore, "RunConfig": RunConfig,
        "ScriptedExecutor": ScriptedExecutor, "task": task, "seeds": SEEDS,
        "generator": ScriptedGenerator(),
    }  # fmt: skip
    exec(textwrap.dedent("\n".join(lines)), names)  # noqa: S102 - our own docstring
    engine = names["engine"]
    assert isinstance(engine, Engine)
    assert len(list(engine.store.trials())) == 40 and engine.population.elites


def test_the_same_candidate_has_the_same_verdict(tmp_path: Path) -> None:
    task = load_scale_task(tmp_path)
    first, again = (verdicts(ScriptedExecutor(task), 20) for _ in range(2))
    # a NaN is not equal to itself
    assert [item.model_dump_json() for item in first] == [item.model_dump_json() for item in again]


def test_the_rule_holds_over_many_candidates(tmp_path: Path) -> None:
    rule = VerdictRule(
        correct_share=0.6, failures=(Status.timeout, Status.crash), unstable_share=0.5,
        scores=(0.2, 0.4), samples=0,
    )  # fmt: skip
    executor = ScriptedExecutor(load_scale_task(tmp_path), rule=rule)
    first, again = verdicts(executor, 400), verdicts(executor, 400, verify=True)
    counts = Counter(item.status for item in first)
    assert counts.keys() == {Status.correct, Status.timeout, Status.crash}
    assert 0.5 < counts[Status.correct] / 400 < 0.7
    assert all(0.2 <= item.score.value <= 0.4 for item in first if item.score)
    pairs = [
        (one, two) for one, two in zip(first, again, strict=True) if one.status is Status.correct
    ]
    unstable = [two for _, two in pairs if two.status is not Status.correct]
    assert {item.status for item in unstable} == {Status.wrong_result}
    assert 0.4 < len(unstable) / len(pairs) < 0.6


def test_samples_and_checks_have_the_size_that_is_asked_for(tmp_path: Path) -> None:
    task, rule = load_scale_task(tmp_path), VerdictRule(correct_share=1.0, samples=7)
    (full,) = verdicts(ScriptedExecutor(task, rule=rule), 1)
    assert [len(item.hot.candidate_us) for item in full.timings] == [7, 7]
    assert [check.case for check in full.checks] == ["small", "large", "odd"]
    (small,) = verdicts(ScriptedExecutor(task, rule=replace(rule, samples=0)), 1)
    assert (small.timings, small.checks) == ((), ()) and small.score is not None


@pytest.mark.parametrize("environment", [SCRIPTED_GPU, SCRIPTED_EMULATOR])
def test_limits_of_the_target_that_are_exceeded_are_reported(tmp_path: Path, environment) -> None:
    (found,) = verdicts(ScriptedExecutor(load_scale_task(tmp_path), environment), 1)
    assert found.target_exceeds == ("scale: 80 registers on sm_89, target 72",)


def test_no_package_of_a_gpu_is_imported() -> None:
    program = (
        "import sys, evoengine.evaluate.scripted.scripted_executor;"
        " print({'torch', 'cupy', 'numpy'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
