from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from evoengine.errors import TaskError
from evoengine.evaluate.worker.answers import Answers
from evoengine.evaluate.worker.inputs import make_inputs
from evoengine.evaluate.worker.reference import HostCache, TaskFunctions
from evoengine.task import Task
from tests.evaluate.worker.shrunken import CPU
from tests.small import small_task


def functions(folder: Path, code: str, **changes: Any) -> TaskFunctions:
    (folder / "scale_rows.py").write_text("import torch\n" + code)
    return TaskFunctions(small_task(**changes), folder / "t.yaml")


def call(made: TaskFunctions, name: str = "scale_rows.py:forward") -> dict[str, torch.Tensor]:
    return made.call(name, make_inputs(made.task, "plain", "normal", 0, CPU), "plain")


def test_arguments_are_found_by_name_in_any_order(tmp_path: Path) -> None:
    made = functions(tmp_path, "def forward(flip, factor, x, C):\n    assert flip is False and C == 96\n    return x * factor")
    x = make_inputs(made.task, "plain", "normal", 0, CPU)["x"]
    assert torch.equal(call(made)["out"], x * (1 / 96**0.5))


def test_the_reference_is_float64_whatever_the_types(tmp_path: Path) -> None:
    made = functions(tmp_path, "def forward(x):\n    assert x.dtype == torch.float64\n    return x > 0")
    reference = made.reference(make_inputs(made.task, "plain", "normal", 0, CPU), "plain")
    assert reference["out"].dtype == torch.float64


@pytest.mark.parametrize(
    "code",
    ["return x", "return (x,)", "return [x]", "return {'out': x}"],
)
def test_one_output_may_come_alone_or_in_a_container(tmp_path: Path, code: str) -> None:
    assert list(call(functions(tmp_path, f"def forward(x):\n    {code}"))) == ["out"]


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (
            "def forward(x, z): return x",
            "scale_rows.py:forward takes z, which is no input, dimension or flag; known: N, C, flip, factor, x",
        ),
        ("def forward(x): raise ValueError('no\\nway')", "scale_rows.py:forward raised ValueError for case plain: no$"),
        ("def forward(x): return x @ x", "scale_rows.py:forward raised RuntimeError for case plain: mat1 and mat2"),
        ("def forward(x): return x.nope", "raised AttributeError"),
        ("def forward(x): return 1 // 0", "raised ZeroDivisionError"),
        ("def forward(x): return None", "expected a tensor for each of out, got NoneType"),
        ("def forward(x): return x, x", "expected a tensor for each of out, got tuple"),
        ("def forward(x): return {'y': x}", "expected a tensor for each of out, got dict"),
        ("def forward(x): return x[:, :1]", r"out must be a tensor of shape \(64, 96\) for case plain, got \(64, 1\)"),
        ("def forward(x): return x.sum()", r"out must be a tensor of shape \(64, 96\) for case plain, got \(\)"),
        ("def forward(x): return [3.0]", r"out must be a tensor of shape \(64, 96\) for case plain, got float"),
        ("forward = 3", "expected a function 'forward', there is none"),
        ("", "expected a function 'forward', there is none"),
        ("def forward(x): return", "expected a tensor"),
        ("import nothing_of_that_name", "scale_rows.py: ModuleNotFoundError on import: No module named"),
        ("raise SystemExit(3)", "scale_rows.py: SystemExit on import: 3"),
        ("def forward(x) return x", "scale_rows.py: SyntaxError on import"),
    ],
)
def test_a_reference_that_cannot_be_used_is_told_as_a_fault_of_the_task(tmp_path: Path, code: str, says: str) -> None:
    with pytest.raises(TaskError, match=says):
        call(functions(tmp_path, code))


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"no reference file '.*gone.py'"):
        call(functions(tmp_path, ""), "gone.py:forward")


def answers_of(folder: Path, code: str, **changes: Any) -> Answers:
    made = functions(folder, code, **changes)
    return Answers(made.task, made, CPU)


def test_a_reference_that_is_not_finite_is_a_fault_of_the_task(tmp_path: Path) -> None:
    found = answers_of(tmp_path, "def forward(x): return x / 0")
    with pytest.raises(TaskError, match=r"scale_rows.py:forward: out is not finite for case plain, distribution normal, seed 1"):
        found.get("plain", "normal", 1)


def test_integer_outputs_have_answers_too(tmp_path: Path) -> None:
    outputs = {"out": {"shape": ["N", "C"], "dtype": "int32"}}
    inputs = {"x": {"shape": ["N", "C"], "dtype": "int32"}}
    tiers = {"exact": {"atol": 0, "rel_rmse": 1e-9, "trusted": "scale_rows.py:forward"}}
    answer = answers_of(tmp_path, "def forward(x): return x * 2", outputs=outputs, inputs=inputs, tiers=tiers).get("plain", "normal", 0)
    assert answer.trusted["exact"].failing == 0
    assert answer.reference["out"].dtype == torch.float64


def test_answers_are_computed_once_and_kept(tmp_path: Path) -> None:
    found = answers_of(tmp_path, "calls = []\ndef forward(x):\n    calls.append(1)\n    return x * len(calls)")
    first = found.get("plain", "normal", 0)
    assert found.get("plain", "normal", 0) is first
    assert found.get("plain", "normal", 1) is not first
    again = found.one_off("plain", "normal", 0)
    assert torch.equal(again.reference["out"], 3 * first.reference["out"])
    assert found.get("plain", "normal", 0) is first


def test_the_cache_drops_the_least_recently_used_and_keeps_one_that_is_too_large() -> None:
    cache = HostCache(limit_bytes=10)
    made: list[str] = []

    def get(key: str) -> str:
        return str(cache.get(key, lambda: made.append(key) or key, lambda value: 20 if value == "huge" else 4))

    for key in ("a", "b", "a", "c", "a", "b"):
        assert get(key) == key
    assert made == ["a", "b", "c", "b"]
    get("huge")
    get("huge")
    assert made[4:] == ["huge"]
    get("a")
    assert made[5:] == ["a"]


def test_a_task_that_was_loaded_is_what_the_functions_see(tmp_path: Path) -> None:
    made = functions(tmp_path, "def forward(x): return x")
    assert isinstance(made.task, Task)
    assert made.folder == tmp_path
