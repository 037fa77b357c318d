"""The secret pool: how many sets, of which distributions, and what nobody can know."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from evoengine.evaluate.worker.cuda import input_pool
from evoengine.evaluate.worker.cuda.input_pool import (
    LEAST_SETS,
    MOST_SETS,
    InputPool,
    one_of_each_distribution,
    timed_sets,
)
from evoengine.evaluate.worker.expected_outputs import ExpectedOutputs
from evoengine.evaluate.worker.inputs import make_inputs
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.task.schema import Task
from tests.evaluate.worker.cuda.host_device import install
from tests.evaluate.worker.shrunken import CPU
from tests.small import small_task

CASES = {
    "plain": {"N": 64, "C": 96, "flip": False},
    "flipped": {"N": 3, "C": 40, "flip": True},
}
SMALL = {"hidden_cases": {"odd": {"N": 7, "C": 33, "flip": True}}}
ONE_REFERENCE = ["normal", "outliers", "wide"]  # a set; `extreme` computes more
COUNTING = "calls = []\ndef forward(x):\n    calls.append(tuple(x.shape))\n    return x * 2\n"


class Pool:
    """A pool on the CPU that counts the references which it computes."""

    def __init__(self, folder: Path, task: Task) -> None:
        (folder / "scale_rows.py").write_text(COUNTING)
        self.signs = 0  # of life
        self.functions = TaskFunctions(task, folder / "t.yaml")
        expected = ExpectedOutputs(task, self.functions, CPU)
        self.pool = InputPool(task, expected, self.sign)

    def sign(self) -> None:
        self.signs += 1

    @property
    def references(self) -> int:
        return len(self.functions._modules["scale_rows.py"].calls) - 2  # two are compared once


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)


@pytest.mark.parametrize(
    ("distributions", "seeds", "count"),
    [
        (["normal"], [0, 1, 2], LEAST_SETS),
        (["normal", "outliers", "wide"], [0, 1, 2], LEAST_SETS),
        (["normal", "outliers", "wide", "shifted"], [0, 1, 2, 3, 4], 20),
        (["normal", "outliers", "wide", "shifted"], list(range(12)), MOST_SETS),
    ],
)
def test_a_pool_has_12_to_32_sets_with_every_distribution_about_equally_often(
    tmp_path: Path, distributions: list[str], seeds: list[int], count: int
) -> None:
    made = Pool(tmp_path, small_task(distributions=distributions, seeds=seeds, **SMALL))
    sets = made.pool.sets("plain")
    assert [item.number for item in sets] == list(range(count))
    assert LEAST_SETS == 12 and MOST_SETS == 32
    often = [sum(item.distribution == name for item in sets) for name in distributions]
    assert sum(often) == count and max(often) - min(often) <= 1
    assert made.references == made.signs == count


def test_every_set_has_its_own_contents_and_its_reference(tmp_path: Path) -> None:
    sets = Pool(tmp_path, small_task(**SMALL)).pool.sets("plain")
    assert len({item.inputs["x"].numpy().tobytes() for item in sets}) == len(sets)
    for item in sets:
        assert torch.equal(item.expected.reference["out"], 2 * item.inputs["x"].double())
        assert item.bytes == (4 + 8) * 64 * 96


def test_no_seed_of_the_task_and_none_of_another_pool_gives_a_set(tmp_path: Path) -> None:
    task = small_task(**SMALL)
    first, second = (Pool(tmp_path, task).pool.sets("plain") for _ in range(2))
    known = {
        make_inputs(task, "plain", name, seed, CPU)["x"].numpy().tobytes()
        for name in task.distributions
        for seed in range(100)
    }
    contents = [{item.inputs["x"].numpy().tobytes() for item in sets} for sets in (first, second)]
    assert not contents[0] & contents[1] and not (contents[0] | contents[1]) & known


def test_a_set_carries_its_number_and_no_seed(tmp_path: Path) -> None:
    made = Pool(tmp_path, small_task(**SMALL))
    sets = made.pool.sets("plain")
    seeds = set(made.pool._seeds.values())
    assert len(seeds) == len(sets) and min(seeds) > 2**20
    assert all(not hasattr(item, "seed") for item in sets)
    assert not any(str(seed) in repr(item) for item in sets for seed in seeds)


def test_sets_are_made_once_a_case(tmp_path: Path) -> None:
    made = Pool(tmp_path, small_task(distributions=ONE_REFERENCE, **SMALL))
    assert made.pool.sets("plain") is made.pool.sets("plain")
    made.pool.sets("flipped")
    assert made.references == 2 * LEAST_SETS


def test_a_case_is_renewed_but_for_the_sets_that_no_time_is_measured_on(tmp_path: Path) -> None:
    made = Pool(tmp_path, small_task(distributions=["normal", "extreme"], **SMALL))
    before, other = made.pool.sets("plain"), made.pool.sets("flipped")
    after = made.pool.renew("plain")
    assert [item.number for item in after] == [item.number for item in before]
    for old, new in zip(before, after, strict=True):
        is_kept = torch.equal(old.inputs["x"], new.inputs["x"])
        assert is_kept == (old is new) == (old.distribution == "extreme") == (old.number % 2 == 1)
    assert made.pool.sets("plain") is after and made.pool.sets("flipped") is other


@pytest.mark.parametrize("distributions", [["extreme"], ["normal", "extreme"]])
def test_a_case_is_renewed_whole_where_all_is_timed_or_nothing_is_held(
    tmp_path: Path, distributions: list[str]
) -> None:
    made = Pool(tmp_path, small_task(distributions=distributions, **SMALL))
    before = made.pool.sets("plain")
    if len(distributions) > 1:
        made.pool._cases.clear()  # as for want of memory
    after = made.pool.renew("plain")
    contents = [{item.inputs["x"].numpy().tobytes() for item in sets} for sets in (before, after)]
    assert len(contents[1]) == len(after) and not contents[0] & contents[1]


def test_the_least_recently_used_case_makes_room_and_comes_back_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_pool, "MEMORY_SHARE", 1.3 * LEAST_SETS * 12 * 64 * 96 / 8 / 1024**3)
    task = small_task(
        cases={**CASES, "third": {"N": 64, "C": 96, "flip": True}},
        distributions=ONE_REFERENCE,
        **SMALL,
    )
    made = Pool(tmp_path, task)
    before = [item.inputs["x"].clone() for item in made.pool.sets("plain")]
    made.pool.sets("flipped")
    assert made.pool.sets("plain") and made.references == 2 * LEAST_SETS, "both fit"
    made.pool.sets("third")
    assert list(made.pool._cases) == ["third"]
    after = made.pool.sets("plain")
    assert made.references == 4 * LEAST_SETS
    for item, earlier in zip(after, before, strict=True):
        assert torch.equal(item.inputs["x"], earlier)


def test_a_case_that_is_renewed_makes_room_as_one_that_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_pool, "MEMORY_SHARE", 0.0)
    made = Pool(tmp_path, small_task(**SMALL))
    made.pool.sets("plain")
    made.pool.sets("flipped")
    made.pool.renew("plain")
    assert list(made.pool._cases) == ["plain"]


def test_extreme_sets_and_sets_that_functions_draw_come_back_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_pool, "MEMORY_SHARE", 0.0)
    made = Pool(
        tmp_path,
        small_task(
            inputs={
                "x": {"shape": ["N", "C"], "dtype": "float16", "draw": {"scale": 300}},
                "y": {"shape": ["C"], "dtype": "int32", "draw": "scale_rows.py:make"},
            },
            **SMALL,
        ),
    )
    (tmp_path / "scale_rows.py").write_text(
        COUNTING + "import torch\ndef make(generator, shape, N):\n"
        "    return torch.randint(N, shape, generator=generator)\n"
    )
    before = made.pool.sets("plain")
    factors = {item.expected.factor for item in before if item.distribution == "extreme"}
    assert factors == {32}, "4 * 64 * 300 is beyond a half, 4 * 32 * 300 is not"
    made.pool.sets("flipped")
    assert list(made.pool._cases) == ["flipped"]
    for item, earlier in zip(made.pool.sets("plain"), before, strict=True):
        assert item.expected.factor == earlier.expected.factor
        assert all(torch.equal(item.inputs[name], earlier.inputs[name]) for name in ("x", "y"))


def test_a_case_larger_than_the_share_is_still_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_pool, "MEMORY_SHARE", 0.0)
    made = Pool(tmp_path, small_task(**SMALL))
    assert len(made.pool.sets("plain")) == LEAST_SETS


def test_one_of_each_distribution_is_one_of_each(tmp_path: Path) -> None:
    task = small_task(distributions=["normal", "wide", "outliers"], **SMALL)
    sets = Pool(tmp_path, task).pool.sets("plain")
    found = one_of_each_distribution(sets)
    assert sorted(item.distribution for item in found) == ["normal", "outliers", "wide"]
    assert [item.number for item in sorted(found, key=lambda item: item.number)] == [0, 1, 2]


def test_timed_sets_are_those_without_large_inputs_where_there_are_others(tmp_path: Path) -> None:
    sets = Pool(tmp_path, small_task(**SMALL)).pool.sets("plain")
    assert timed_sets(sets) == tuple(item for item in sets if item.distribution != "extreme")
    assert 0 < len(timed_sets(sets)) < len(sets)
    alone = Pool(tmp_path, small_task(distributions=["extreme"], **SMALL)).pool.sets("plain")
    assert timed_sets(alone) == alone
