"""What gates allow on large inputs whose last bits decide the outputs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from evoengine.evaluate.worker.check import compare_outputs
from evoengine.evaluate.worker.expected_outputs import ExpectedOutputs
from evoengine.evaluate.worker.gate import Errors, Gate, gate_of
from evoengine.evaluate.worker.input_rounding import HALF_UNITS, LARGEST_MOVE, rounding_errors
from evoengine.evaluate.worker.inputs import Tensors
from evoengine.evaluate.worker.rmse_chance import chance_of
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.task.schema import Task, Tolerances
from tests.evaluate.worker.shrunken import CPU
from tests.small import small_task

FUNCTIONS = """
import torch

def attend(x):
    query, key, value = x.unbind(0)
    scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    return torch.softmax(scores, dim=-1) @ value

def waves(x):
    return torch.sin(1000 * x)

def count(x):
    return (x > 0).sum(-1)

def difference(x):
    return x[0] - x[1]

def gather(x, index, kept):
    return x[index] + kept
"""
KEY = ("plain", "extreme", 3)


def task_of(reference: str, inputs: dict[str, Any], output: dict[str, Any]) -> Task:
    return small_task(
        reference=f"functions.py:{reference}",
        inputs=inputs,
        outputs={"out": output},
        dims={"N": "int", "C": "int"},
        cases={"plain": {"N": 128, "C": 64}},
        hidden_cases={},
        tiers={"it": {"atol": 1e-3, "rtol": 1e-3, "rel_rmse": 1e-3}},
        distributions=["normal", "extreme"],
    )


def expected(folder: Path, task: Task) -> ExpectedOutputs:
    (folder / "functions.py").write_text(FUNCTIONS)
    return ExpectedOutputs(task, TaskFunctions(task, folder / "t.yaml"), CPU)


def attention_with_rounded_queries(x: torch.Tensor) -> torch.Tensor:
    """As many kernels do it: the query is scaled, for exp2, and rounded to the type of the inputs.

    x: [3, N, C], of any floating type; the result has the same one.
    """
    query, key, value = x.unbind(0)
    scaled = (query.float() * (math.log2(math.e) / math.sqrt(x.shape[-1]))).to(x.dtype).float()
    scores = scaled @ key.float().transpose(-1, -2)
    weights = torch.exp2(scores - scores.amax(-1, keepdim=True))
    return ((weights @ value.float()) / weights.sum(-1, keepdim=True)).to(x.dtype)


def attention_without_maximum(x: torch.Tensor) -> torch.Tensor:
    query, key, value = x.float().unbind(0)
    weights = torch.exp(query @ key.transpose(-1, -2) / math.sqrt(x.shape[-1]))
    return ((weights @ value) / weights.sum(-1, keepdim=True)).to(x.dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_kernel_that_rounds_its_queries_passes_and_one_without_maximum_does_not(
    tmp_path: Path, dtype: str
) -> None:
    matrix = {"shape": [3, "N", "C"], "dtype": dtype}
    outputs = expected(tmp_path, task_of("attend", {"x": matrix}, matrix | {"shape": ["N", "C"]}))
    without_extra = Gate(1e-3, 1e-3, 1e-3, 4e-3)
    for seed in range(20):
        tensors, found = outputs.draw("plain", "extreme", seed)
        rounded = attention_with_rounded_queries(tensors["x"])
        assert found.factor >= 4
        assert compare_outputs({"out": rounded}, found, "it", "extreme", seed).ok
        assert found.gates["it"]["out"].atol > 1000 * without_extra.atol
        wrong = attention_without_maximum(tensors["x"])
        if float(tensors["x"].abs().max()) > 40:  # then a score is beyond 88
            assert not compare_outputs({"out": wrong}, found, "it", "extreme", seed).ok
    normal = outputs.get("plain", "normal", 0).gates["it"]["out"]
    assert normal == without_extra, "only large inputs widen a gate"


def test_inputs_that_decide_nothing_at_any_size_stay_small_and_widen_nothing(
    tmp_path: Path,
) -> None:
    matrix = {"shape": ["N", "C"], "dtype": "float16"}
    found = expected(tmp_path, task_of("waves", {"x": matrix}, matrix)).get(*KEY)
    assert found.factor == 1
    assert found.gates["it"]["out"] == Gate(1e-3, 1e-3, 1e-3, 4e-3)


def test_outputs_of_integers_are_compared_as_they_are(tmp_path: Path) -> None:
    matrix = {"shape": ["N", "C"], "dtype": "float16"}
    task = task_of("count", {"x": matrix}, {"shape": ["N"], "dtype": "int64"})
    found = expected(tmp_path, task).get(*KEY)
    assert found.factor == 64
    assert found.gates["it"]["out"] == Gate(1e-3, 1e-3, 1e-3, 4e-3)


def test_each_value_moves_by_up_to_four_units_in_its_last_place_and_back(tmp_path: Path) -> None:
    inputs = {
        "x": {"shape": ["N", "C"], "dtype": "float16"},
        "index": {"shape": ["N"], "dtype": "int64", "draw": {"dist": "permutation"}},
        "kept": {"shape": ["N", 1], "dtype": "float16", "draw": {"dist": "normal"}},
    }
    task = task_of("gather", inputs, {"shape": ["N", "C"], "dtype": "float16"})
    tensors = expected(tmp_path, task).inputs("plain", "normal", 1)
    tensors["x"][0, :4] = torch.tensor([0.0, 1.0, -1.5, 1023.0])
    seen: list[Tensors] = []

    def recompute(moved: Tensors) -> Tensors:
        seen.append(moved)
        return {"out": moved["x"]}

    reference = {"out": tensors["x"].double()}
    errors = rounding_errors(task, KEY, tensors, reference, recompute)
    assert errors is not None and len(seen) == 4
    for moved in seen:
        assert moved["index"] is tensors["index"] and moved["kept"] is tensors["kept"]
        assert moved["x"].dtype == torch.float64
    for there, back in (seen[:2], seen[2:]):
        assert torch.equal(there["x"] + back["x"], 2 * reference["out"])
    moves = torch.stack([moved["x"] - reference["out"] for moved in seen])
    units = torch.tensor([0.0, 2**-10, 2**-10, 0.5], dtype=torch.float64)
    assert moves[:, 0, 0].eq(0).all()
    assert moves[:, 0, :4].abs().le(HALF_UNITS / 2 * units).all() and moves[:, 0, 1:4].ne(0).all()
    assert errors["out"].max_abs == moves.abs().max()
    again: list[Tensors] = []
    rounding_errors(task, KEY, tensors, reference, lambda m: again.append(m) or {"out": m["x"]})
    assert all(torch.equal(one["x"], other["x"]) for one, other in zip(seen, again, strict=True))


def test_a_reference_that_moves_too_far_or_into_infinity_is_of_no_use(tmp_path: Path) -> None:
    matrix = {"shape": ["N", "C"], "dtype": "float16"}
    task = task_of("waves", {"x": matrix}, matrix)
    tensors = expected(tmp_path, task).inputs("plain", "normal", 1)
    reference = {"out": tensors["x"].double()}
    half_unit = 2.0**-11
    for share, useful in ((0.9, True), (1.1, False)):
        by = 1 + share * LARGEST_MOVE * half_unit
        found = rounding_errors(
            task, KEY, tensors, reference, lambda _, by=by: {"out": reference["out"] * by}
        )
        assert (found is not None) == useful
    for value in (math.inf, math.nan):
        moved = reference["out"].clone()
        moved[0, 0] = value
        assert rounding_errors(task, KEY, tensors, reference, lambda _: {"out": moved}) is None  # noqa: B023


def test_a_gate_allows_the_larger_of_twice_both_errors() -> None:
    tolerances = Tolerances(atol=1e-3, rtol=1e-4, rel_rmse=1e-3, trusted_factor=3)
    trusted = Errors(0.5, 1e-2, 0, 1, 0, 0.5, slice_rel_rmse=0.2)
    rounding = Errors(1.0, 4e-3, 0, 1, 0, 1.0, slice_rel_rmse=0.4)
    assert gate_of(tolerances, trusted, rounding) == Gate(2.0, 1e-4, 3e-2, 0.8)
    assert gate_of(tolerances, None, rounding) == Gate(2.0, 1e-4, 8e-3, 0.8)
    assert gate_of(tolerances, None, None) == Gate(1e-3, 1e-4, 1e-3, 4e-3)
    assert gate_of(tolerances, None, None, 64) == Gate(64e-3, 1e-4, 1e-3, 4e-3)


def differences(elements: int) -> Task:
    """Of two rows of so many elements."""
    x = {"shape": [2, "N"], "dtype": "float32"}
    task = task_of("difference", {"x": x}, {"shape": ["N"], "dtype": "float32"})
    return task.model_copy(update={"cases": {"plain": {"N": elements, "C": 1}}})


@pytest.mark.parametrize(
    ("elements", "is_wider"),
    [(1, True), (31, True), (32, False)],  # enough for others to make up for one that cancels
)
def test_terms_that_cancel_in_an_output_of_a_few_elements_may_have_their_own_errors(
    tmp_path: Path, elements: int, is_wider: bool
) -> None:
    wanted = expected(tmp_path, differences(elements))
    first = torch.linspace(1, 2, elements, dtype=torch.float32)
    tensors = {"x": torch.stack([first, first * (1 - 2**-20)])}
    found = wanted.compute("plain", "normal", 0, tensors)
    gate = found.gates["it"]["out"]
    rounded = found.reference["out"] * (1 + 2e-3)  # as far as a unit in the last place of a term
    check = compare_outputs({"out": rounded.float()}, found, "it", "normal", 0)
    assert (gate.rel_rmse > 1e-3 * chance_of(found.reference["out"])) is is_wider
    assert gate.atol == 1e-3
    assert check.ok is is_wider


def test_a_few_elements_of_narrow_inputs_are_not_free(tmp_path: Path) -> None:
    x = {"shape": [2, "N"], "dtype": "bfloat16"}
    task = task_of("difference", {"x": x}, {"shape": ["N"], "dtype": "bfloat16"})
    wanted = expected(tmp_path, task.model_copy(update={"cases": {"plain": {"N": 1, "C": 1}}}))
    tensors = {"x": torch.tensor([[3.0], [1.0]], dtype=torch.bfloat16)}
    gate = wanted.compute("plain", "normal", 0, tensors).gates["it"]["out"]
    assert 1e-3 <= gate.rel_rmse < 0.02
