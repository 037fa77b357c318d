from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evoengine.evaluate.worker.inputs import Tensors, make_inputs, scalar_inputs
from evoengine.evaluate.worker.set_distributions import (
    DRAWING_FUNCTIONS,
    OUTLIER_FACTOR,
    SHIFT,
    SPIKE_FACTOR,
    WIDE_EXPONENTS,
)
from evoengine.task.distributions import DISTRIBUTIONS
from evoengine.task.schema import DTYPES, Task
from tests.evaluate.worker.shrunken import CASES, CPU, shrunken
from tests.small import small_task

FLOATS = ("float16", "bfloat16", "float32", "float64")


def task_of(shape: list[str], dtype: str = "float32", **sizes: Any) -> Task:
    case = {"N": 64, "C": 96, "flip": False, **sizes}
    cases = {"a": case, "b": case}
    inputs = {name: {"shape": shape, "dtype": dtype} for name in ("x", "y")}
    return small_task(inputs=inputs, cases=cases, hidden_cases={}, objective={"cases": ["a"]})


def same(first: Tensors, second: Tensors) -> bool:
    return first.keys() == second.keys() and all(
        torch.equal(first[name], second[name]) for name in first
    )


def test_every_distribution_has_a_drawing_function_and_no_other_has() -> None:
    assert list(DRAWING_FUNCTIONS) == list(DISTRIBUTIONS)


@settings(max_examples=40)
@given(st.sampled_from(list(DISTRIBUTIONS)), st.sampled_from(DTYPES), st.integers(0, 2**31))
def test_inputs_are_the_same_every_time_whatever_happened_in_between(
    distribution: str, dtype: str, seed: int
) -> None:
    task = task_of(["N", "C"], dtype)
    first = make_inputs(task, "a", distribution, seed, CPU)
    torch.rand(17)
    make_inputs(task, "b", distribution, seed, CPU)
    assert same(first, make_inputs(task, "a", distribution, seed, CPU))


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_inputs_differ_by_name_case_seed_and_distribution(distribution: str) -> None:
    task = task_of(["N", "C"])
    base = make_inputs(task, "a", distribution, 0, CPU)
    other = next(name for name in DISTRIBUTIONS if name != distribution)
    assert not torch.equal(base["x"], base["y"])
    for case, drawn, seed in (("b", distribution, 0), ("a", distribution, 1), ("a", other, 0)):
        assert not torch.equal(base["x"], make_inputs(task, case, drawn, seed, CPU)["x"])


def test_an_input_does_not_depend_on_the_others() -> None:
    task = task_of(["N", "C"])
    alone = task.model_copy(update={"inputs": {"y": task.inputs["y"]}})
    assert torch.equal(
        make_inputs(task, "a", "normal", 0, CPU)["y"],
        make_inputs(alone, "a", "normal", 0, CPU)["y"],
    )


@pytest.mark.parametrize(
    "shape",
    [["C"], ["N", "C"], ["2", "N", "C"], ["2", "3", "N", "C"], ["1"], ["1", "1", "N", "C"]],
    ids=str,
)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_inputs_have_the_declared_shape_and_type_and_are_finite(
    shape: list[str], distribution: str, dtype: str
) -> None:
    task = task_of(shape, dtype)
    extents = tuple(int({"N": "64", "C": "96"}.get(extent, extent)) for extent in shape)
    for value in make_inputs(task, "a", distribution, 0, CPU).values():
        assert tuple(value.shape) == extents
        assert value.dtype == getattr(torch, dtype)
        assert value.is_contiguous()
        assert bool(torch.isfinite(value).all())


def test_integers_use_their_range_and_booleans_both_values() -> None:
    for dtype, low, high in (("int8", -128, 127), ("uint8", 0, 127), ("int32", -128, 127)):
        value = make_inputs(task_of(["N", "C"], dtype), "a", "normal", 0, CPU)["x"]
        assert low <= int(value.min()) <= low // 4
        assert high // 4 <= int(value.max()) <= high
    assert make_inputs(task_of(["N", "C"], "bool"), "a", "normal", 0, CPU)[
        "x"
    ].unique().tolist() == [False, True]


def test_normal_values_are_normal() -> None:
    value = make_inputs(task_of(["N", "C"], N=1000), "a", "normal", 0, CPU)["x"]
    assert abs(float(value.mean())) < 0.02
    assert abs(float(value.std()) - 1) < 0.02


def test_outliers_are_rare_and_large() -> None:
    value = make_inputs(task_of(["N", "C"], N=1000), "a", "outliers", 0, CPU)["x"]
    assert 1e-4 < float((value.abs() > 6).double().mean()) < 2e-3
    assert float(value.abs().max()) > OUTLIER_FACTOR


def test_wide_scales_differ_by_slice_and_the_last_one_is_zero() -> None:
    value = make_inputs(task_of(["4", "8", "N", "C"]), "a", "wide", 0, CPU)["x"]
    spread = value.std(dim=(-2, -1)).flatten()
    assert float(spread[-1]) == 0
    powers = torch.log2(spread[:-1])
    assert bool(((powers - powers.round()).abs() < 0.1).all())
    assert {int(power) for power in powers.round()} <= set(
        range(WIDE_EXPONENTS[0], WIDE_EXPONENTS[1] + 1)
    )
    assert len({int(power) for power in powers.round()}) > 3


def test_wide_never_zeroes_a_lone_slice() -> None:
    for shape in (["C"], ["1", "1", "N", "C"], ["1", "C"]):
        assert float(make_inputs(task_of(shape), "a", "wide", 0, CPU)["x"].abs().max()) > 0


@pytest.mark.parametrize("shape", [["N", "C"], ["2", "3", "N", "C"]], ids=str)
def test_one_row_of_each_matrix_is_a_spike_and_nothing_tells_which(shape: list[str]) -> None:
    places = set()
    for seed in range(8):
        value = make_inputs(task_of(shape), "a", "spikes", seed, CPU)["x"]
        rms = value.square().mean(-1).sqrt().view(-1, 64)
        assert bool(((rms > SPIKE_FACTOR / 2).sum(-1) == 1).all())
        assert bool(((rms > 2).sum(-1) == 1).all())
        places.update(rms.argmax(-1).tolist())
    assert len(places) > 5


def test_shifted_values_have_a_mean_far_from_zero() -> None:
    value = make_inputs(task_of(["N", "C"]), "a", "shifted", 0, CPU)["x"]
    assert abs(float(value.mean()) - SHIFT) < 0.1


@pytest.mark.parametrize("name", CASES)
def test_every_packaged_task_has_inputs_on_every_case(name: str) -> None:
    task = shrunken(name)
    for case in task.cases:
        for distribution in task.distributions:
            tensors = make_inputs(task, case, distribution, task.seeds[0], CPU)
            assert list(tensors) == [key for key, spec in task.inputs.items() if spec.shape]


def test_scalars_are_those_of_the_case() -> None:
    assert scalar_inputs(shrunken("sdpa_l4"), "wide_head") == {
        **CASES["sdpa_l4"]["wide_head"],
        "scale": 1 / 128**0.5,
    }


@pytest.mark.parametrize("distribution", DRAWING_FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "int32", "bool"])
def test_a_tensor_without_dimensions_is_drawn_from_every_distribution(
    distribution: str, dtype: str
) -> None:
    task = small_task(inputs={"x": {"shape": [], "dtype": dtype}})
    found = make_inputs(task, "plain", distribution, 0, CPU)["x"]
    assert (found.shape, found.dtype) == ((), getattr(torch, dtype))
