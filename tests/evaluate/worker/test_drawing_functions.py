"""Inputs that a function of the task draws: what it is given, and which values are refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from evoengine.errors import TaskError
from evoengine.evaluate.worker.drawing_functions import DrawingFunctions
from evoengine.evaluate.worker.inputs import Tensors, make_inputs
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.task.schema import Task
from tests.evaluate.worker.shrunken import CPU
from tests.small import small_task

GOOD = """
import torch

def make(generator, shape, distribution, N, C, flip, factor):
    assert isinstance(generator, torch.Generator) and shape == (N, C)
    scale = {"normal": 1, "wide": 100}[distribution] * factor
    return scale * torch.randn(shape, generator=generator, device=generator.device)
"""


def drawn(
    folder: Path, code: str, dtype: str = "float32", distribution: str = "normal", seed: int = 0
) -> Tensors:
    """The inputs of the small task whose x is drawn by `make` in `code`."""
    task = task_with(dtype)
    (folder / "gen.py").write_text(code)
    by_function = DrawingFunctions(task, TaskFunctions(task, folder / "t.yaml"))
    return make_inputs(task, "plain", distribution, seed, CPU, by_function=by_function)


def task_with(dtype: str) -> Task:
    return small_task(
        inputs={
            "x": {"shape": ["N", "C"], "dtype": dtype, "draw": "gen.py:make"},
            "factor": {"value": "1/sqrt(C)", "dtype": "float32"},
        }
    )


def returning(expression: str) -> str:
    return f"import torch\ndef make(generator, shape, N, C):\n    return {expression}\n"


def test_a_function_is_given_what_it_names_and_the_seed_of_the_set(tmp_path: Path) -> None:
    first, again, other = (drawn(tmp_path, GOOD, seed=seed)["x"] for seed in (0, 0, 1))
    assert first.shape == (64, 96) and first.dtype is torch.float32
    assert torch.equal(first, again) and not torch.equal(first, other)
    wide = drawn(tmp_path, GOOD, distribution="wide")["x"]
    assert 90 < float(wide.std() / first.std()) < 110


@pytest.mark.parametrize(
    ("dtype", "expression"),
    [
        ("float16", "torch.ones(shape, dtype=torch.float64)"),
        ("float32", "torch.ones(shape, dtype=torch.bool)"),
        ("int8", "torch.full(shape, 127)"),
        ("int64", "torch.ones(shape, dtype=torch.uint8)"),
        ("bool", "torch.ones(shape, dtype=torch.bool)"),
        ("float32", "torch.ones(1).expand(shape)"),
        ("float32", "torch.ones(C, N).t()"),
        ("float32", "torch.ones(shape, requires_grad=True)"),
    ],
)
def test_what_fits_the_type_is_copied_into_it(tmp_path: Path, dtype: str, expression: str) -> None:
    value = drawn(tmp_path, returning(expression), dtype)["x"]
    assert value.dtype is getattr(torch, dtype) and value.is_contiguous()
    assert not value.requires_grad and bool(value.bool().all())


def test_a_tensor_that_the_function_keeps_is_not_the_input(tmp_path: Path) -> None:
    code = "import torch\nkept = torch.ones(64, 96)\ndef make(shape): return kept\n"
    task = task_with("float32")
    (tmp_path / "gen.py").write_text(code)
    by_function = DrawingFunctions(task, TaskFunctions(task, tmp_path / "t.yaml"))
    first, second = (
        make_inputs(task, "plain", "normal", 0, CPU, by_function=by_function)["x"] for _ in range(2)
    )
    first.zero_()
    assert bool((second == 1).all())


@pytest.mark.parametrize(
    ("dtype", "code", "says"),
    [
        (
            "float32",
            returning("torch.ones(N)"),
            r"gen.py:make: x must be a tensor of shape \(64, 96\) for case plain, .*, got \(64,\)",
        ),
        ("float32", returning("[1.0]"), "x must be a tensor of shape .* got list"),
        ("float32", returning("None"), "x must be a tensor of shape .* got NoneType"),
        ("int32", returning("torch.ones(shape)"), "x must be of int32, .* got torch.float32"),
        ("bool", returning("torch.ones(shape).int()"), "x must be of bool, .* got torch.int32"),
        (
            "float32",
            returning("torch.ones(shape, dtype=torch.complex64)"),
            "x must be of float32, or fit it, for case plain, .* got torch.complex64",
        ),
        ("float32", returning("torch.full(shape, float('nan'))"), "x is not finite as float32"),
        ("float16", returning("torch.full(shape, 70000.0)"), "x is not finite as float16"),
        ("int8", returning("torch.full(shape, 128)"), "x has values beyond int8 for case plain"),
        ("uint8", returning("torch.full(shape, -1)"), "x has values beyond uint8"),
        (
            "float32",
            returning("torch.ones(shape).to_sparse()"),
            "x must be a dense tensor for case plain, .* got the layout torch.sparse_coo",
        ),
        (
            "float32",
            returning("torch.rand(shape)"),
            "gen.py:make draws two values of x with the same seed for case plain: expected one",
        ),
        ("float32", returning("1 / 0"), "gen.py:make raised ZeroDivisionError for case plain"),
        (
            "float32",
            "def make(shape, x): ...\n",
            "gen.py:make takes x, which it is not given; known: N, C, flip, factor,",
        ),
        ("float32", "def mak(shape): ...\n", "expected a function 'make', there is none"),
    ],
)  # fmt: skip
def test_wrong_values_are_an_error_that_names_the_function(
    tmp_path: Path, dtype: str, code: str, says: str
) -> None:
    with pytest.raises(TaskError, match=says):
        drawn(tmp_path, code, dtype)


def test_the_time_of_a_function_that_draws_is_charged_to_it(tmp_path: Path) -> None:
    seen: list[object] = []

    @contextmanager
    def announce(step: str, function: str) -> Iterator[None]:
        seen.append((step, function))
        yield
        seen.append("end")

    task = task_with("float32")
    (tmp_path / "gen.py").write_text(GOOD)
    functions = TaskFunctions(task, tmp_path / "t.yaml", announce)
    by_function = DrawingFunctions(task, functions)
    for seed in range(2):
        make_inputs(task, "plain", "normal", seed, CPU, by_function=by_function)
    step = ("computing gen.py:make for case plain", "gen.py:make for case plain")
    assert seen == [step, "end"] * 3, "the first draw is made twice"
