"""Inputs whose task says how they are drawn: every element keeps to it, whatever the seed."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from evoengine.errors import TaskError
from evoengine.evaluate.worker.drawn_values import STRUCTURE_FUNCTIONS, float_range
from evoengine.evaluate.worker.inputs import make_inputs
from evoengine.task.distributions import DISTRIBUTIONS, LARGEST_FACTOR, STRUCTURES
from evoengine.task.drawn_ranges import RANGES
from evoengine.task.schema import Task
from tests.evaluate.worker.shrunken import CPU
from tests.small import small_task

SEEDS = st.integers(0, 2**31)
SETS = st.sampled_from(list(DISTRIBUTIONS))
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "uint8", "int32", "int64")
EXTENTS = st.integers(1, 12)


def task_with(shape: list[int | str], dtype: str, draw: Any) -> Task:
    """The input x, and y, which is drawn in the same way; N is 3 in case a, 5 in case b."""
    spec = {"shape": shape, "dtype": dtype, "draw": draw}
    cases = {name: {"N": size, "C": 40, "flip": False} for name, size in (("a", 3), ("b", 5))}
    return small_task(
        inputs={"x": spec, "y": spec}, cases=cases, hidden_cases={}, objective={"cases": ["a"]}
    )


def drawn(
    shape: list[Any], dtype: str, draw: Any, distribution: str = "normal", seed: int = 0
) -> torch.Tensor:
    value = make_inputs(task_with(shape, dtype, draw), "a", distribution, seed, CPU)["x"]
    assert value.dtype is getattr(torch, dtype) and value.is_contiguous()
    assert list(value.shape) == [{"N": 3}.get(extent, extent) for extent in shape]
    return value


@st.composite
def integer_ranges(draw: st.DrawFn) -> tuple[str, int, int]:
    """An integer type with low < high that it can hold, the ends of the type among them."""
    dtype = draw(st.sampled_from(INTEGERS))
    least, most = (int(end) for end in RANGES[dtype])
    least = max(least, -(2**63) + 1)  # the numbers of expressions
    low = draw(st.integers(least, most - 1))
    return dtype, low, draw(st.integers(low + 1, min(most + 1, 2**63 - 1)))


@given(integer_ranges(), st.lists(EXTENTS, min_size=1, max_size=3), SEEDS, SETS)
def test_uniform_integers_are_in_range_and_both_ends_occur(
    found: tuple[str, int, int], shape: list[int], seed: int, distribution: str
) -> None:
    dtype, low, high = found
    draw = {"dist": "uniform", "low": low, "high": high}
    value = drawn(shape, dtype, draw, distribution, seed)
    assert low <= int(value.min()) and int(value.max()) < high
    if value.numel() > 1:
        assert {low, high - 1} <= set(value.flatten().tolist())


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_the_ends_of_uniform_integers_are_at_other_places_in_every_set(distribution: str) -> None:
    draw = {"dist": "uniform", "low": 0, "high": 50257}
    values = [drawn([64], "int32", draw, distribution, seed) for seed in range(40)]
    for end in (0, 50256):
        places = [int((value == end).nonzero()[0]) for value in values]
        assert len(set(places)) > 15
    assert int((torch.stack(values) >= 128).sum()) > 2000


def test_uniform_integers_are_uniform() -> None:
    value = drawn([100, 100], "int64", {"dist": "uniform", "low": -3, "high": 7})
    share = torch.bincount(value.flatten() + 3).double() / value.numel()
    assert len(share) == 10 and bool(((share - 0.1).abs() < 0.02).all())


@given(
    st.sampled_from(FLOATS),
    st.floats(-1000, 1000).map(lambda low: round(low, 6)),
    st.floats(0.5, 5000),
    SEEDS,
)
def test_uniform_floats_are_in_range_as_their_type(
    dtype: str, low: float, width: float, seed: int
) -> None:
    high = round(low + max(width, 0.05 * abs(low)), 6)
    draw = {"dist": "uniform", "low": f"{low:.6f}", "high": f"{high:.6f}"}
    value = drawn([1000], dtype, draw, seed=seed).double()
    assert low <= float(value.min()) and float(value.max()) < high
    assert float(value.max() - value.min()) > 0.5 * (high - low)


def test_the_ends_of_a_range_are_numbers_of_the_type() -> None:
    assert float_range(0, 1, torch.float16) == (0, 1 - 2**-11)
    assert float_range(-1, 0, torch.float16) == (-1, -(2**-24))
    assert float_range(0.1, 0.2, torch.bfloat16) == (0.10009765625, 0.19921875)
    assert float_range(-0.2, -0.1, torch.bfloat16) == (-0.19921875, -0.10009765625)
    least, most = float_range(1.0001, 1.0002, torch.float16)
    assert least > most, "there is no number"
    for dtype in FLOATS:
        kind = getattr(torch, dtype)
        least, most = float_range(1 / 3, 2 / 3, kind)
        assert 1 / 3 <= least < 1 / 3 + torch.finfo(kind).eps
        assert 2 / 3 > most > 2 / 3 - torch.finfo(kind).eps


def test_a_range_without_a_number_of_the_type_is_an_error_of_the_task() -> None:
    with pytest.raises(
        TaskError, match=r"input \w+: float16 has no number from 1.0001 up to, and without, 1"
    ):
        drawn([4], "float16", {"dist": "uniform", "low": 1.0001, "high": 1.0002})


@given(st.sampled_from(FLOATS), st.lists(EXTENTS, min_size=1, max_size=3), SEEDS, SETS)
def test_probabilities_are_positive_and_sum_to_one(
    dtype: str, shape: list[int], seed: int, distribution: str
) -> None:
    value = drawn(shape, dtype, {"dist": "probabilities"}, distribution, seed).double()
    assert bool((value > 0).all())
    slack = 2 * torch.finfo(getattr(torch, dtype)).eps
    assert bool(((value.sum(-1) - 1).abs() <= slack).all())


def test_many_half_probabilities_are_positive_too() -> None:
    value = drawn([4, 100_000], "float16", {"dist": "probabilities"}).double()
    assert float(value.min()) > 0 and bool(((value.sum(-1) - 1).abs() < 0.01).all())


@given(st.sampled_from(INTEGERS), st.integers(0, 127), st.integers(2, 12), EXTENTS, SEEDS, SETS)
def test_offsets_are_sorted_from_0_to_high_and_bags_are_empty(
    dtype: str, high: int, count: int, rows: int, seed: int, distribution: str
) -> None:
    draw = {"dist": "offsets", "high": high}
    value = drawn([rows, count], dtype, draw, distribution, seed)
    assert value[:, 0].tolist() == [0] * rows and value[:, -1].tolist() == [high] * rows
    sizes = value.long().diff(dim=-1)
    assert bool((sizes >= 0).all())
    if count > 3:
        assert bool((sizes == 0).any(-1).all()), "of three bags, one is empty at least"


def test_empty_bags_are_at_any_place_the_first_and_the_last_among_them() -> None:
    empty = [0] * 5
    for seed in range(60):
        value = drawn([6], "int32", {"dist": "offsets", "high": 10**6}, seed=seed)
        for place in (value.diff() == 0).nonzero().flatten().tolist():
            empty[place] += 1
    assert min(empty) > 0
    two = [drawn([3], "int32", {"dist": "offsets", "high": 9**9}, seed=seed) for seed in range(60)]
    assert {(int(value[1]) == 0, int(value[1]) == 9**9) for value in two} == {
        (True, False), (False, True), (False, False),
    }  # fmt: skip


@given(st.sampled_from(INTEGERS), EXTENTS, st.integers(1, 100), SEEDS)
def test_a_permutation_has_each_number_once(dtype: str, rows: int, count: int, seed: int) -> None:
    value = drawn([rows, count], dtype, {"dist": "permutation"}, seed=seed)
    assert torch.equal(value.sort(-1).values.long(), torch.arange(count).expand(rows, count))


def test_every_leading_index_has_a_permutation_of_its_own() -> None:
    value = drawn([2, 5, 64], "int64", {"dist": "permutation"})
    assert len({tuple(row) for row in value.view(10, 64).tolist()}) == 10


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS])
@pytest.mark.parametrize(("density", "share"), [("0", 0.0), ("0.2", 0.2), ("1", 1.0), (None, 0.5)])
def test_a_mask_has_its_density(dtype: str, density: str | None, share: float) -> None:
    draw = {"dist": "mask"} | ({} if density is None else {"density": density})
    value = drawn([100, 100], dtype, draw).double()
    assert set(value.unique().tolist()) <= {0, 1}
    assert abs(float(value.mean()) - share) <= (0.02 if 0 < share < 1 else 0)


@given(st.sampled_from([*FLOATS, *INTEGERS, "bool"]), EXTENTS, EXTENTS, SEEDS)
def test_one_hot_has_a_single_one_in_every_row(
    dtype: str, rows: int, count: int, seed: int
) -> None:
    value = drawn([rows, count], dtype, {"dist": "one_hot"}, seed=seed).double()
    assert bool((value.sum(-1) == 1).all()) and bool((value.max(-1).values == 1).all())


@given(st.sampled_from([*FLOATS, *INTEGERS]), EXTENTS, EXTENTS, st.booleans(), SEEDS, SETS)
def test_triangular_is_zero_on_the_other_side_and_not_on_this_one(
    dtype: str, rows: int, columns: int, upper: bool, seed: int, distribution: str
) -> None:
    draw = {"dist": "triangular", "upper": upper}
    value = drawn([2, rows, columns], dtype, draw, distribution, seed)
    other = value.tril(-1) if upper else value.triu(1)
    assert not bool(other.double().any())
    if dtype in FLOATS:
        assert bool((value[0].triu() if upper else value[0].tril()).any())


def test_a_triangle_is_shifted_where_it_is_not_zero_only() -> None:
    draw = {"dist": "triangular", "scale": 0.01, "shift": 3, "positive": True}
    value = drawn([8, 8], "float32", draw)
    assert bool((value.tril() == value).all())
    assert bool((value[torch.ones(8, 8).tril() > 0] >= 3).all())


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_positive_values_are_the_absolute_ones(dtype: str, distribution: str) -> None:
    plain = drawn([4, 40], dtype, None, distribution)
    value = drawn([4, 40], dtype, {"positive": True}, distribution)
    assert int(value.double().min()) >= 0
    if dtype in FLOATS:
        assert torch.equal(value, plain.abs())


@pytest.mark.parametrize("dtype", FLOATS)
def test_values_are_scaled_then_shifted_after_the_draw(dtype: str) -> None:
    plain = drawn([4, 40], "float32", None, "wide").double()
    kind = getattr(torch, dtype)
    moved = drawn([4, 40], dtype, {"scale": "2/N", "shift": "1-N"}, "wide")
    assert torch.equal(moved, (plain * (2 / 3) - 2).to(kind))
    both = drawn([4, 40], dtype, {"positive": True, "shift": 0.5}, "wide")
    assert torch.equal(both, (plain.abs() + 0.5).to(kind))


def test_kaiming_weights_are_in_their_range() -> None:
    draw = {"dist": "uniform", "low": 0, "high": 1, "scale": "2/sqrt(C)", "shift": "-1/sqrt(C)"}
    value = drawn(["N", 1000], "float32", draw)
    bound = 1 / math.sqrt(40)
    assert -bound <= float(value.min()) < -0.9 * bound
    assert 0.9 * bound < float(value.max()) <= bound * (1 + 1e-6)


@pytest.mark.parametrize("dist", [name for name in DISTRIBUTIONS if name != "extreme"])
def test_a_distribution_that_is_fixed_does_not_change_with_the_set(dist: str) -> None:
    task = task_with([50, 1000], "float32", {"dist": dist})
    plain = task_with([50, 1000], "float32", None)
    for distribution in DISTRIBUTIONS:
        found = make_inputs(task, "a", distribution, 0, CPU)["x"]
        scale = make_inputs(plain, "a", dist, 0, CPU)["x"].square().mean().sqrt()
        assert 0.5 < float(found.square().mean().sqrt() / scale) < 2
        if distribution == dist:
            assert torch.equal(found, make_inputs(plain, "a", dist, 0, CPU)["x"])


@pytest.mark.parametrize("factor", [64.0, 8.0, 1.0])
def test_extreme_values_are_the_same_ones_times_the_factor(factor: float) -> None:
    task = task_with([4, 40], "float32", None)
    largest = make_inputs(task, "a", "extreme", 3, CPU)["x"]
    found = make_inputs(task, "a", "extreme", 3, CPU, factor)["x"]
    assert torch.equal(found * (LARGEST_FACTOR / factor), largest)
    assert 0.8 < float(largest.std()) / LARGEST_FACTOR < 1.2


@pytest.mark.parametrize("dist", STRUCTURES)
def test_a_factor_changes_nothing_but_values_of_the_set(dist: str) -> None:
    needed = {"uniform": {"low": 0, "high": 9}, "offsets": {"high": 9}}.get(dist, {})
    dtype = "float32" if dist in ("probabilities", "triangular") else "int32"
    task = task_with([4, 40], dtype, {"dist": dist, **needed})
    large, small = (
        make_inputs(task, "a", "extreme", 3, CPU, factor)["x"] for factor in (64.0, 2.0)
    )
    assert torch.equal(large, small) is (dist != "triangular")


@settings(max_examples=60)
@given(st.sampled_from(list(STRUCTURES)), SETS, SEEDS)
def test_a_drawn_input_is_a_function_of_case_input_distribution_and_seed(
    dist: str, distribution: str, seed: int
) -> None:
    needed = {"uniform": {"low": 0, "high": 9**9}, "offsets": {"high": 9**9}}.get(dist, {})
    dtype = "float32" if dist in ("probabilities", "triangular") else "int32"
    task = task_with([30, 30], dtype, {"dist": dist, **needed})
    first = make_inputs(task, "a", distribution, seed, CPU)
    torch.rand(17)
    again = make_inputs(task, "a", distribution, seed, CPU)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["x"], first["y"])
    for case, other in (("b", seed), ("a", seed + 1)):
        assert not torch.equal(first["x"], make_inputs(task, case, distribution, other, CPU)["x"])


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize(
    "draw", [None, {"positive": True}, {"dist": "uniform", "low": 3, "high": 9}, {"dist": "wide"}]
)
def test_a_tensor_without_dimensions_is_drawn_too(dtype: str, distribution: str, draw: Any) -> None:
    value = drawn([], dtype, draw, distribution)
    assert draw != {"dist": "uniform", "low": 3, "high": 9} or 3 <= float(value) < 9


@pytest.mark.parametrize("dist", ["permutation", "one_hot", "probabilities", "triangular"])
def test_a_structure_along_a_dimension_needs_one(dist: str) -> None:
    with pytest.raises(ValidationError, match=f"{dist} needs a shape of at least . extents, got 0"):
        drawn([], "float32" if dist in ("probabilities", "triangular") else "int32", {"dist": dist})


def test_the_structures_are_those_of_the_task_file() -> None:
    assert list(STRUCTURE_FUNCTIONS) == list(STRUCTURES)


def test_values_that_leave_their_type_are_an_error_that_names_the_input() -> None:
    with pytest.raises(
        TaskError, match=r"input x is not finite for case a, distribution wide: exp"
    ):
        drawn([40], "float16", {"scale": 10**6}, "wide")
