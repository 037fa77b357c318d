"""The distribution `extreme`: as large as the task's functions stay finite, and what it refuses.

torch functions stand in for kernels and are put through the real gates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from evoengine.errors import TaskError
from evoengine.evaluate.worker import expected_outputs as expected_module
from evoengine.evaluate.worker.check import compare_outputs
from evoengine.evaluate.worker.emulated.array_cache import ArrayCache
from evoengine.evaluate.worker.emulated.reference_cache import DiskInputCache, DiskOutputCache
from evoengine.evaluate.worker.expected_outputs import ExpectedOutputs
from evoengine.evaluate.worker.inputs import make_inputs
from evoengine.evaluate.worker.largest_factor import (
    growth_of,
    has_new_infinities,
    largest_that_works,
    overflows,
)
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.task.distributions import DEFAULT_DISTRIBUTIONS
from evoengine.task.schema import Task
from tests.evaluate.worker.shrunken import CPU
from tests.small import small_task

ROWS = """
import torch

calls = []

def softmax(x):
    return torch.softmax(x, dim=-1)

def squares(x):
    calls.append(float(x.abs().max()))
    return (x * x).sum(-1)

def total(x):
    return x.abs().sum(-1)

def cube(x):
    return x * x * x * 1e4

def product(x):
    first, second = x.chunk(2)
    return first @ second.T

def broken(x):
    raise ValueError("never finished")

def strict(x):
    if float(x.abs().max()) > 20:
        raise ValueError("too large")
    return x.sum(-1)

def random(x):
    return x.sum(-1) + torch.rand(x.shape[0], dtype=x.dtype)

def masked(x):
    # the first column has no finite result, whatever the inputs
    return torch.cat([x[:, :1] - float("inf"), 2 * x[:, 1:] ** 2], -1)

def eager(x):
    # in half precision it leaves its range long before the result does
    return ((x * 400) / 400).sum(-1)
"""


def task_with(
    reference: str,
    out: list[str],
    dtype: str = "float32",
    tolerance: float = 1e-3,
    trusted: str | None = None,
    **changes: Any,
) -> Task:
    tier = {"atol": tolerance, "rtol": tolerance, "rel_rmse": tolerance}
    return small_task(
        **{
            "inputs": {"x": {"shape": ["N", "C"], "dtype": dtype}},
            "outputs": {"out": {"shape": out, "dtype": dtype}},
            "cases": {"plain": {"N": 32, "C": 256, "flip": False}},
            "hidden_cases": {},
            "reference": f"rows.py:{reference}",
            "tiers": {"it": tier | ({"trusted": f"rows.py:{trusted}"} if trusted else {})},
            **changes,
        }
    )


def expected(folder: Path, task: Task) -> ExpectedOutputs:
    (folder / "rows.py").write_text(ROWS)
    return ExpectedOutputs(task, TaskFunctions(task, folder / "t.yaml"), CPU)


def passes(
    folder: Path, task: Task, kernel: Callable[[torch.Tensor], torch.Tensor]
) -> dict[str, bool]:
    """Whether `kernel` passes the gate, by distribution."""
    outputs = expected(folder, task)
    return {
        name: compare_outputs(
            {"out": kernel(outputs.inputs("plain", name, 7)["x"])},
            outputs.get("plain", name, 7),
            "it",
            name,
            0,
        ).ok
        for name in task.distributions
    }


def softmax_without_maximum(x: torch.Tensor) -> torch.Tensor:
    weights = x.exp()
    return weights / weights.sum(-1, keepdim=True)


def sum_in_half(x: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(x.shape[:-1], dtype=torch.float16)
    for column in x.unbind(-1):
        total = total + column.abs()
    return total


def product_one_by_one(x: torch.Tensor) -> torch.Tensor:
    """One sum a thread in single precision, as a plain matmul kernel computes it."""
    first, second = x.chunk(2)
    total = torch.zeros(len(first), len(second))
    for left, right in zip(first.unbind(-1), second.unbind(-1), strict=True):
        total += left[:, None] * right
    return total


def squares_in_half(x: torch.Tensor) -> torch.Tensor:
    return (x.half() * x.half()).sum(-1, dtype=torch.float16)


def test_extreme_is_one_of_the_distributions_of_a_task_that_names_none() -> None:
    assert DEFAULT_DISTRIBUTIONS == ("normal", "outliers", "wide", "extreme")
    assert small_task().distributions == DEFAULT_DISTRIBUTIONS
    assert small_task(distributions=["wide"]).distributions == ("wide",)


def test_a_softmax_without_its_maximum_is_refused_by_extreme_alone(tmp_path: Path) -> None:
    task = task_with("softmax", ["N", "C"], distributions=["normal", "wide", "extreme"])
    assert passes(tmp_path, task, softmax_without_maximum) == {
        "normal": True, "wide": True, "extreme": False,
    }  # fmt: skip
    assert all(passes(tmp_path, task, lambda x: torch.softmax(x, dim=-1)).values())


def test_a_matmul_that_adds_one_by_one_passes_with_an_absolute_tolerance_alone(
    tmp_path: Path,
) -> None:
    task = task_with(
        "product",
        ["N/2", "N/2"],
        tiers={"it": {"atol": 1e-2, "rel_rmse": 1e-3}},
        cases={"plain": {"N": 32, "C": 4096, "flip": False}},
    )
    assert all(passes(tmp_path, task, product_one_by_one).values())
    rounded = passes(tmp_path, task, lambda x: product_one_by_one(x.half().float()))
    assert not any(rounded.values())
    gate = expected(tmp_path, task).get("plain", "extreme", 7).gates["it"]["out"]
    assert gate.atol == pytest.approx(1e-2 * 64**2)


def test_growth_is_that_of_finite_floating_point_outputs_and_at_least_1() -> None:
    inf, kinds = math.inf, ("float32", "float32", "float32", "int64")
    names = [f"out{number}" for number in range(len(kinds))]
    task = small_task(
        outputs={
            name: {"shape": [2], "dtype": kind} for name, kind in zip(names, kinds, strict=True)
        }
    )
    large = ([-6.0, inf], [1.0, 1.0], [5.0, 5.0], [8.0, 8.0])
    plain = ([2.0, inf], [2.0, 2.0], [0.0, 0.0], [1.0, 1.0])
    reference, small = (
        {name: torch.tensor(row).double() for name, row in zip(names, rows, strict=True)}
        for rows in (large, plain)
    )
    assert growth_of(task, reference, small) == {"out0": 3.0, "out1": 1.0, "out2": 1.0}


def test_a_sum_of_squares_in_half_precision_is_refused(tmp_path: Path) -> None:
    task = task_with("squares", ["N"], tolerance=5e-3)
    found = passes(tmp_path, task, squares_in_half)
    assert found["normal"] and not found["extreme"]
    assert all(passes(tmp_path, task, lambda x: x.square().sum(-1)).values())


def test_a_sum_in_half_precision_is_refused(tmp_path: Path) -> None:
    task = task_with("total", ["N"], dtype="float16", tolerance=2e-2, trusted="total")
    found = passes(tmp_path, task, lambda x: sum_in_half(8 * x) / 8)
    assert found["normal"] and not found["extreme"]
    honest = passes(tmp_path, task, lambda x: x.abs().sum(-1, dtype=torch.float32).half())
    assert all(honest.values())


@pytest.mark.parametrize(
    ("reference", "out", "dtype", "factor"),
    [
        ("squares", ["N"], "float32", 64),
        # 256 squares of N(0, 1): 300 * 8**2 is below 65504, 300 * 16**2 above
        ("squares", ["N"], "float16", 8),
        # 4 standard deviations cubed, times 10000
        ("cube", ["N", "C"], "float32", 64),
        ("strict", ["N"], "float32", 4),
    ],
)
def test_the_factor_is_the_largest_with_which_the_reference_can_be_written(
    tmp_path: Path, reference: str, out: list[str], dtype: str, factor: float
) -> None:
    task = task_with(reference, out, dtype)
    outputs = expected(tmp_path, task)
    tensors, found = outputs.draw("plain", "extreme", 5)
    assert found.factor == factor
    assert bool(found.reference["out"].to(getattr(torch, dtype)).isfinite().all())
    again = make_inputs(task, "plain", "extreme", 5, CPU, factor)
    assert torch.equal(tensors["x"], again["x"])
    assert torch.equal(outputs.inputs("plain", "extreme", 5)["x"], again["x"])
    if factor < 64:
        doubled = make_inputs(task, "plain", "extreme", 5, CPU, 2 * factor)
        with pytest.raises(TaskError):
            outputs.compute("plain", "extreme", 5, doubled)


def test_the_trusted_implementation_stays_finite_too(tmp_path: Path) -> None:
    alone = expected(tmp_path, task_with("eager", ["N"], "float16"))
    assert alone.get("plain", "extreme", 5).factor == 64
    both = expected(tmp_path, task_with("eager", ["N"], "float16", trusted="eager"))
    found = both.get("plain", "extreme", 5)
    assert found.factor == 32  # 4 * 64 * 400 leaves the range of a half, 4 * 32 * 400 does not
    assert "it" in found.trusted


def test_a_set_that_was_drawn_is_not_searched_again(tmp_path: Path) -> None:
    outputs = expected(tmp_path, task_with("squares", ["N"], "float16"))
    first = outputs.draw("plain", "extreme", 5)
    calls = outputs.functions._modules["rows.py"].calls
    # the set, its inputs rounded in four ways, and those that are not multiplied
    computed = 1 + 4 + 1
    searched = 3 + computed  # 64, 32 and 16 are too large
    # two calls are compared; another set says where to begin
    assert len(calls) == 2 + searched + computed
    second = outputs.draw("plain", "extreme", 5)
    assert len(calls) == 2 + searched + 2 * computed
    assert torch.equal(first[0]["x"], second[0]["x"])
    assert torch.equal(first[1].reference["out"], second[1].reference["out"])


@pytest.mark.parametrize("distribution", ["normal", "extreme"])
def test_a_reference_that_is_not_finite_with_1_either_is_an_error(
    tmp_path: Path, distribution: str
) -> None:
    task = task_with("cube", ["N", "C"], "float16", distributions=["wide", distribution])
    outputs = expected(tmp_path, task)
    with pytest.raises(TaskError, match=r"rows.py:cube: out reaches .*, distribution"):
        outputs.get("plain", distribution, 5)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_the_softmax_of_rows_overflows_without_its_maximum_and_its_rounding_is_allowed(
    tmp_path: Path, dtype: str, seed: int
) -> None:
    """The factor is bounded, because ties would decide, and large enough for exp to overflow."""
    task = task_with("softmax", ["N", "C"], dtype, seeds=[seed, 98, 99])
    outputs = expected(tmp_path, task)
    tensors, found = outputs.draw("plain", "extreme", 7)
    assert 32 <= found.factor <= 64
    assert float(tensors["x"].max()) > 88.8, "exp does not overflow"
    assert "it" in found.gates and found.gates["it"]["out"].rel_rmse < 0.5
    rounded = torch.softmax(
        (tensors["x"].float() * 1.4427).to(tensors["x"].dtype).float() * 0.69315, -1
    )
    assert compare_outputs({"out": rounded}, found, "it", "extreme", 0).ok


@pytest.mark.parametrize(("dtype", "factor"), [("float32", 64), ("float16", 32)])
def test_infinities_that_the_reference_always_has_do_not_make_the_inputs_small(
    tmp_path: Path, dtype: str, factor: float
) -> None:
    task = task_with("masked", ["N", "C"], dtype)
    found = expected(tmp_path, task).get("plain", "extreme", 9)
    assert found.factor == factor
    assert bool(found.reference["out"][:, 0].isinf().all())
    assert bool(found.reference["out"][:, 1:].isfinite().all())


def test_a_fault_that_is_not_due_to_the_factor_is_reported(tmp_path: Path) -> None:
    outputs = expected(tmp_path, task_with("broken", ["N"]))
    with pytest.raises(TaskError, match=r"rows.py:broken raised ValueError for case plain: never"):
        outputs.get("plain", "extreme", 5)


@pytest.mark.parametrize("distributions", [["extreme"], ["normal", "extreme"]])
def test_a_random_reference_is_refused_before_the_search(
    tmp_path: Path, distributions: list[str]
) -> None:
    outputs = expected(tmp_path, task_with("random", ["N"], distributions=distributions))
    with pytest.raises(TaskError, match=r"rows.py:random returns two results for the same inputs"):
        outputs.draw("plain", "extreme", 5)


def test_inputs_with_a_draw_of_their_own_are_not_multiplied(tmp_path: Path) -> None:
    spec = {"shape": ["N", "C"], "dtype": "float32", "draw": {"dist": "normal"}}
    task = task_with("squares", ["N"], inputs={"x": spec})
    tensors, found = expected(tmp_path, task).draw("plain", "extreme", 5)
    assert found.factor == 64 and float(tensors["x"].abs().max()) < 10


def test_a_new_worker_finds_factor_and_inputs_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rows.py").write_text(ROWS)
    task = task_with("squares", ["N"], "float16")
    arrays = ArrayCache(tmp_path / "cache")

    def worker() -> ExpectedOutputs:
        path = tmp_path / "t.yaml"
        return ExpectedOutputs(
            task,
            TaskFunctions(task, path),
            CPU,
            DiskOutputCache(arrays, task, path),
            DiskInputCache(arrays, task, path),
        )

    first = worker()
    before = first.inputs("plain", "extreme", 5)["x"].clone()
    assert first.get("plain", "extreme", 5).factor == 8
    monkeypatch.setattr(expected_module, "largest_that_works", None)  # nothing is searched again
    second = worker()
    assert second.get("plain", "extreme", 5).factor == 8
    assert torch.equal(second.inputs("plain", "extreme", 5)["x"], before)
    assert torch.equal(before, make_inputs(task, "plain", "extreme", 5, CPU, 8.0)["x"])


def test_an_infinity_that_smaller_inputs_have_too_is_not_an_overflow() -> None:
    inf = float("inf")
    plain = {"out": torch.tensor([1.0, -inf], dtype=torch.float64)}
    large = {"out": torch.tensor([64.0, -inf], dtype=torch.float64)}
    over = {"out": torch.tensor([inf, -inf], dtype=torch.float64)}
    assert not has_new_infinities(large, lambda: plain)
    assert has_new_infinities(over, lambda: plain)
    assert not has_new_infinities({"out": torch.ones(2)}, lambda: 1 / 0)  # nothing to compare with
    assert overflows({"out": torch.tensor([inf, -inf])}, large)
    assert overflows({"out": torch.tensor([float("nan"), -inf])}, large)
    assert not overflows({"out": torch.tensor([64.0, -inf])}, large)
    assert not overflows({"out": torch.tensor([64, 0])}, large)


def test_halving_ends_at_1() -> None:
    tried: list[float] = []

    def attempt(factor: float) -> float | None:
        tried.append(factor)
        return 1.0 if factor == 1 else None

    assert largest_that_works(attempt, 64.0) == 1
    assert tried == [64, 32, 16, 8, 4, 2, 1]
