"""The shipped starting kernels fit the shipped tasks."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from evoengine.candidate import kernel_file
from evoengine.candidate.arch import limits_of_arch
from evoengine.candidate.binding import bind, configurations
from evoengine.candidate.kernel_file import Candidate
from evoengine.paths import find_task, seeds_dir
from evoengine.task.load import load_task
from evoengine.task.schema import Task

SEEDS = sorted(seeds_dir().glob("*.cu"))
KINDS = {
    "sdpa": ["sdpa_l4", "sdpa_h200"],
    "layernorm": ["layernorm"],
    "matmul": ["matmul_fp16"],
    "embedding": ["embedding_bag"],
    "adamw": ["adamw"],
}
PAIRS = [(seed, task) for seed in SEEDS for task in KINDS[seed.stem.split("_")[0]]]

pairs = pytest.mark.parametrize(
    ("seed", "task_name"), PAIRS, ids=[f"{seed.stem}-{task}" for seed, task in PAIRS]
)


@cache
def parsed(seed: Path) -> Candidate:
    return kernel_file.parse(seed.read_text(encoding="utf-8"), seed.name)


@cache
def loaded(name: str) -> Task:
    return load_task(find_task(name))


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.stem)
def test_a_seed_is_named_after_its_file_and_says_what_it_is(seed: Path) -> None:
    assert parsed(seed).plan.name == seed.stem
    assert parsed(seed).plan.summary


@pairs
@pytest.mark.parametrize("arch", ["sm_89", "sm_90"])
def test_the_defaults_of_every_seed_bind_for_every_case(
    seed: Path, task_name: str, arch: str
) -> None:
    task = loaded(task_name)
    assert parsed(seed).plan.precision in task.tiers
    for case in task.all_cases:
        plan = bind(parsed(seed), task, case, limits_of_arch(arch))
        passed = {
            argument.buffer
            for launch in plan.launches
            for argument in launch.args
            if hasattr(argument, "buffer")
        }
        tensors = {name for name, spec in task.inputs.items() if spec.shape} | set(task.outputs)
        assert tensors <= passed


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.stem)
def test_every_seed_can_be_tuned_and_its_defaults_are_valid_on_the_smaller_device(
    seed: Path,
) -> None:
    task = loaded(KINDS[seed.stem.split("_")[0]][0])
    valid = list(configurations(parsed(seed), task, limits_of_arch("sm_89")))
    assert parsed(seed).tunables in valid
    assert len(valid) > 1


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.stem)
def test_every_declared_value_is_valid_somewhere(seed: Path) -> None:
    """A value that no requirement lets through on any device is a mistake in the requirement."""
    task = loaded(KINDS[seed.stem.split("_")[0]][-1])
    valid = list(configurations(parsed(seed), task, limits_of_arch("sm_90")))
    for name, values in parsed(seed).plan.tunables.items():
        assert set(values) == {choice[name] for choice in valid}, name


@pairs
def test_a_device_with_more_shared_memory_allows_all_that_a_smaller_one_does(
    seed: Path, task_name: str
) -> None:
    task = loaded(task_name)
    fewer = configurations(parsed(seed), task, limits_of_arch("sm_89"))
    more = list(configurations(parsed(seed), task, limits_of_arch("sm_90")))
    assert all(choice in more for choice in fewer)


def test_every_seed_that_a_task_names_is_shipped_and_every_seed_is_named() -> None:
    named = {name for names in KINDS.values() for task in names for name in loaded(task).seeds_from}
    assert named == {seed.name for seed in SEEDS}
