from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from evoengine.errors import TaskError
from evoengine.evaluate.worker.expected_outputs import ExpectedOutput, ExpectedOutputs, Key
from evoengine.evaluate.worker.inputs import make_inputs
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.task.schema import Task
from tests.evaluate.worker.shrunken import CPU
from tests.small import small_task


def functions(folder: Path, code: str, **changes: Any) -> TaskFunctions:
    (folder / "scale_rows.py").write_text("import torch\n" + code)
    return TaskFunctions(small_task(**changes), folder / "t.yaml")


def call(made: TaskFunctions, name: str = "scale_rows.py:forward") -> dict[str, torch.Tensor]:
    return made.call(name, make_inputs(made.task, "plain", "normal", 0, CPU), "plain")


def test_arguments_are_found_by_name_in_any_order(tmp_path: Path) -> None:
    made = functions(
        tmp_path,
        "def forward(flip, factor, x, C):\n    assert flip is False and C == 96\n    return x *"
        " factor",
    )
    x = make_inputs(made.task, "plain", "normal", 0, CPU)["x"]
    assert torch.equal(call(made)["out"], x * (1 / 96**0.5))


def test_the_reference_is_float64_whatever_the_types(tmp_path: Path) -> None:
    made = functions(
        tmp_path, "def forward(x):\n    assert x.dtype == torch.float64\n    return x * 2"
    )
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
            ("scale_rows.py:forward takes z, which it is not given; known: N, C, flip, factor, x"),
        ),
        (
            "def forward(x): raise ValueError('no\\nway')",
            "scale_rows.py:forward raised ValueError for case plain: no$",
        ),
        (
            "def forward(x): return x @ x",
            "scale_rows.py:forward raised RuntimeError for case plain: mat1 and mat2",
        ),
        ("def forward(x): return x.nope", "raised AttributeError"),
        ("def forward(x): return 1 // 0", "raised ZeroDivisionError"),
        (
            "def forward(x): return None",
            "expected a tensor for each of out for case plain, got NoneType",
        ),
        (
            "def forward(x): return x, x",
            "expected a tensor for each of out for case plain, got a tuple of 2",
        ),
        (
            "def forward(x): return {'y': x}",
            "expected a tensor for each of out for case plain, got a dict with 'y'",
        ),
        (
            "def forward(x): return (value for value in [x])",
            "expected a tensor for each of out for case plain, got generator",
        ),
        (
            "def forward(x): return x.numpy()",
            "expected a tensor for each of out for case plain, got ndarray",
        ),
        (
            "def forward(x): return x.to_sparse()",
            r"out must be a dense tensor for case plain, got the layout torch.sparse_coo",
        ),
        (
            "def forward(x): return x.to('meta')",
            "out must be on cpu, where the inputs are, for case plain, got meta",
        ),
        (
            "def forward(x): return x > 0",
            (
                "out must have a floating-point type for case plain, as float32 in the task file,"
                " got torch.bool"
            ),
        ),
        (
            "def forward(x): return x * 1j",
            "out must have a floating-point type for case plain, .* got torch.complex64",
        ),
        (
            "import sys\ndef forward(x): sys.exit(0)",
            "scale_rows.py:forward raised SystemExit for case plain: 0",
        ),
        (
            "class Odd(Exception):\n    def __str__(self): return 1\ndef forward(x): raise Odd",
            r"raised Odd for case plain, and its text raises TypeError",
        ),
        (
            "def forward(x): raise ValueError('no' * 10_000)",
            "raised ValueError for case plain: (no){250}$",
        ),
        (
            "def forward(x): return x[:, :1]",
            r"out must be a tensor of shape \(64, 96\) for case plain, got \(64, 1\)",
        ),
        (
            "def forward(x): return x.sum()",
            r"out must be a tensor of shape \(64, 96\) for case plain, got \(\)",
        ),
        (
            "def forward(x): return [3.0]",
            r"out must be a tensor of shape \(64, 96\) for case plain, got float",
        ),
        ("forward = 3", "expected a function 'forward', there is none"),
        ("", "expected a function 'forward', there is none"),
        ("def forward(x): return", "expected a tensor"),
        (
            "import nothing_of_that_name",
            "scale_rows.py: ModuleNotFoundError on import: No module named",
        ),
        ("raise SystemExit(3)", "scale_rows.py: SystemExit on import: 3"),
        ("def forward(x) return x", "scale_rows.py: SyntaxError on import"),
    ],
)
def test_a_reference_that_cannot_be_used_is_reported_as_a_fault_of_the_task(
    tmp_path: Path, code: str, says: str
) -> None:
    with pytest.raises(TaskError, match=says):
        call(functions(tmp_path, code))


@pytest.mark.parametrize(
    "code",
    [
        "x *= 2\n    return x.clone()",
        "torch.sort(x.clone(), out=(x, torch.empty(0, dtype=torch.int64)))\n    return x * 2",
        "x.t_()\n    return x.t() * 2",
        "x.data[0, 0] += 1\n    return x * 2",
        "x.numpy()[0, 0] = 7\n    return x * 2",
        "torch.nn.functional.relu(x, inplace=True)\n    return x",
    ],
)
def test_a_function_that_writes_into_its_inputs_is_reported(tmp_path: Path, code: str) -> None:
    made = functions(tmp_path, f"def forward(x):\n    {code}")
    tensors = make_inputs(made.task, "plain", "normal", 0, CPU)
    before = tensors["x"].clone()
    says = (
        r"scale_rows.py:forward writes into its input x for case plain: expected .*; work on a"
        r" copy, x.clone\(\)"
    )
    for expected in (
        lambda: made.reference(tensors, "plain"),
        lambda: made.call("scale_rows.py:forward", tensors, "plain"),
    ):
        with pytest.raises(TaskError, match=says):
            expected()
    assert torch.equal(tensors["x"], before), "what others read stays as it was"


@pytest.mark.parametrize("dtype", ["int32", "float64", "bool"])
def test_a_reference_works_on_copies_also_of_what_is_no_float32(tmp_path: Path, dtype: str) -> None:
    """These need no conversion, and a reference that was given the very inputs would falsify what
    the trusted one is given.
    """
    made = functions(
        tmp_path,
        "def forward(x):\n    x[0] = 0\n    return x.double()",
        inputs={"x": {"shape": ["N", "C"], "dtype": dtype}},
    )
    tensors = make_inputs(made.task, "plain", "normal", 0, CPU)
    before = tensors["x"].clone()
    with pytest.raises(TaskError, match="writes into its input x"):
        made.reference(tensors, "plain")
    assert torch.equal(tensors["x"], before)


def test_a_reference_may_give_back_its_input_and_gradients_and_inference_tensors(
    tmp_path: Path,
) -> None:
    for body in (
        "return x",
        "return x.T.T",
        "return x.requires_grad_() * 1",
        "return torch.inference_mode()(lambda: x * 1)()",
    ):
        (tmp_path / "scale_rows.py").unlink(missing_ok=True)
        tiers = {"fp32": {"atol": 0, "rel_rmse": 1e-9, "trusted": "scale_rows.py:forward"}}
        found = expected_outputs_of(tmp_path, f"def forward(x):\n    {body}", tiers=tiers)
        expected = found.get("plain", "normal", 0)
        assert torch.equal(
            expected.reference["out"], found.inputs("plain", "normal", 0)["x"].double()
        ), body
        assert (
            not expected.reference["out"].requires_grad
            and expected.trusted["fp32"]["out"].failing == 0
        )


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"no reference file '.*gone.py'"):
        call(functions(tmp_path, ""), "gone.py:forward")


def expected_outputs_of(folder: Path, code: str, **changes: Any) -> ExpectedOutputs:
    made = functions(folder, code, **changes)
    return ExpectedOutputs(made.task, made, CPU)


def test_a_reference_that_holds_nan_is_a_fault_of_the_task(tmp_path: Path) -> None:
    found = expected_outputs_of(tmp_path, "def forward(x, N): return x * 0 / 0 if N > 3 else x")
    with pytest.raises(
        TaskError,
        match=(r"scale_rows.py:forward: out holds NaN for case plain, distribution normal, seed 1"),
    ):
        found.get("plain", "normal", 1)


@pytest.mark.parametrize(
    ("body", "got"),
    [
        ("x.half()", "torch.float16"),
        ("x.float() * 2", "torch.float32"),
        ("x > 0", "torch.bool"),
        ("x.int()", "torch.int32"),
    ],
)
def test_a_reference_of_another_type_is_a_fault_of_the_task(
    tmp_path: Path, body: str, got: str
) -> None:
    with pytest.raises(
        TaskError,
        match=(
            rf"scale_rows.py:forward: out must be torch.float64 for case flipped, .*, got {got}:"
            r" leave out"
        ),
    ):
        expected_outputs_of(tmp_path, f"def forward(x): return {body}").get("plain", "normal", 0)


@pytest.mark.parametrize(
    ("dtype", "body", "says"),
    [
        (
            "int32",
            "x * 0.5",
            (
                r"out holds -?\d*\.\d+ for case flipped, distribution normal, seed 0, expected"
                r" whole numbers, as int32 in the task file"
            ),
        ),
        (
            "int8",
            "x.round() * 1000",
            (
                r"out reaches -?\d+e?\+?\d* for case flipped, .*, int8 goes from -128 to 127: no"
                r" kernel can write that value"
            ),
        ),
        (
            "int64",
            "(x > 0).long() * 2**53 + 1",
            r"out reaches 9.0072e\+15 for case flipped, .*, float64 is exact below 2\*\*53: no output",
        ),
        ("bool", "x.round() * 4", r"out reaches -?\d+ for case flipped, .*, bool goes from 0 to 1"),
        (
            "float16",
            "x * 1e6",
            (
                r"out reaches -?[\d.e+]+ for case flipped, .*, float16 ends at 65504: no kernel can"
                r" write that value"
            ),
        ),
        (
            "int32",
            "x.float()",
            (
                "out must be of an integer type or torch.float64 for case flipped, int32 in the"
                " task file, got torch.float32"
            ),
        ),
    ],
)
def test_an_expected_output_that_no_kernel_can_write_is_a_fault_of_the_task(
    tmp_path: Path, dtype: str, body: str, says: str
) -> None:
    with pytest.raises(TaskError, match=says):
        expected_outputs_of(
            tmp_path,
            f"def forward(x): return {body}",
            outputs={"out": {"shape": ["N", "C"], "dtype": dtype}},
        ).get("plain", "normal", 0)


def test_whole_numbers_may_come_in_any_type(tmp_path: Path) -> None:
    outputs = {"out": {"shape": ["N", "C"], "dtype": "int32"}}
    for body in ("x.round()", "x.round().long()", "x > 0"):
        found = expected_outputs_of(
            tmp_path, f"def forward(x): return {body}", outputs=outputs
        ).get("plain", "normal", 0)
        assert found.reference["out"].dtype == torch.float64


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (
            "def forward(x): return x * torch.rand(())",
            (
                "returns two results for the same inputs: out differs by up to .* between two calls for"
                " case odd"
            ),
        ),
        (
            "calls = []\ndef forward(x):\n    calls.append(1)\n    return x * len(calls)",
            "returns two results for the same inputs",
        ),
        (
            "kept = []\ndef forward(x):\n    kept.append(x * 2)\n    return kept[0]",
            "returns the same memory twice for case odd",
        ),
    ],
)
def test_a_reference_that_is_not_deterministic_is_a_fault_of_the_task(
    tmp_path: Path, code: str, says: str
) -> None:
    hidden = {"odd": {"N": 3, "C": 5, "flip": True}}
    with pytest.raises(TaskError, match=f"scale_rows.py:forward {says}"):
        expected_outputs_of(tmp_path, code, hidden_cases=hidden).get("plain", "normal", 0)


def test_what_a_tasks_file_makes_of_torchs_defaults_changes_no_input(tmp_path: Path) -> None:
    """Inputs are drawn before and after the file is imported: another default type would be other
    numbers, and every kernel wrong.
    """
    found = expected_outputs_of(
        tmp_path, "torch.set_default_dtype(torch.float64)\ndef forward(x): return x * 2"
    )
    before = found.inputs("plain", "outliers", 0)["x"]
    try:
        expected = found.get("plain", "outliers", 0)
        after = found.inputs("plain", "outliers", 0)["x"]
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(before, after) and torch.equal(
        expected.reference["out"], 2 * before.double()
    )


def test_integer_outputs_have_expected_outputs_too(tmp_path: Path) -> None:
    outputs = {"out": {"shape": ["N", "C"], "dtype": "int32"}}
    inputs = {"x": {"shape": ["N", "C"], "dtype": "int32"}}
    tiers = {"exact": {"atol": 0, "rel_rmse": 1e-9, "trusted": "scale_rows.py:forward"}}
    expected = expected_outputs_of(
        tmp_path, "def forward(x): return x * 2", outputs=outputs, inputs=inputs, tiers=tiers
    ).get("plain", "normal", 0)
    assert expected.trusted["exact"]["out"].failing == 0
    assert expected.reference["out"].dtype == torch.float64


def test_two_calls_of_the_reference_are_compared_once_and_a_cache_is_asked_first(
    tmp_path: Path,
) -> None:
    kept: dict[Key, ExpectedOutput] = {}

    def cache(key: Key, make: Callable[[], ExpectedOutput]) -> ExpectedOutput:
        return kept.setdefault(key, make()) if key not in kept else kept[key]

    made = functions(tmp_path, "calls = []\ndef forward(x):\n    calls.append(1)\n    return x * 2")
    for output_cache, found_again in ((cache, 0), (lambda _, make: make(), 1)):
        found = ExpectedOutputs(made.task, made, CPU, output_cache)
        first = found.get("plain", "normal", 0)
        calls = made._modules["scale_rows.py"].calls
        assert len(calls) == 3, "twice before, to compare two calls"
        again = found.get("plain", "normal", 0)
        assert len(calls) == 3 + found_again
        assert torch.equal(again.reference["out"], first.reference["out"])
        found.get("plain", "normal", 1)
        assert len(calls) == 4 + found_again
        calls.clear()


def test_a_task_that_was_loaded_is_what_the_functions_see(tmp_path: Path) -> None:
    made = functions(tmp_path, "def forward(x): return x")
    assert isinstance(made.task, Task)
    assert made.folder == tmp_path
