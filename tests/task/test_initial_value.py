"""What buffers begin with: the bytes of one element, and the tasks and plans that ask for it."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import pytest

from evoengine.candidate import kernel_file
from evoengine.candidate.arch import limits_of_arch
from evoengine.candidate.binding import Fill, bind
from evoengine.errors import CandidateError, TaskError
from evoengine.task.initial_value import element_bytes
from evoengine.task.load import load_task
from tests.scale_task import TASK, kernel, write_task

OUT = "  y: {shape: [N], dtype: float32}"


@pytest.mark.parametrize(
    ("value", "dtype", "element"),
    [
        (0, "float16", b"\0\0"),
        (-math.inf, "float16", b"\0\xfc"),
        (-math.inf, "bfloat16", b"\x80\xff"),
        (1.5, "bfloat16", b"\xc0\x3f"),
        (-math.inf, "float32", struct.pack("<f", -math.inf)),
        (math.inf, "float64", struct.pack("<d", math.inf)),
        (-1, "int64", b"\xff" * 8),
        (255, "uint8", b"\xff"),
        (1, "bool", b"\1"),
    ],
)
def test_the_bytes_of_one_element(value: float, dtype: str, element: bytes) -> None:
    assert element_bytes(value, dtype) == element


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (256, "uint8"),
        (-1, "uint8"),
        (0.5, "int32"),
        (2, "bool"),
        (1e6, "float16"),
        (1.001, "bfloat16"),
        (-math.inf, "int32"),
    ],
)
def test_a_value_that_the_dtype_cannot_hold_is_refused(value: float, dtype: str) -> None:
    with pytest.raises(ValueError, match=f"{dtype} cannot hold"):
        element_bytes(value, dtype)


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("{shape: [N], dtype: int32, init: 0.5}", "int32 cannot hold 0.5"),
        ("{shape: [N], dtype: float32, init: z}", "the name of an input tensor, got 'z'"),
        ("{shape: [N], dtype: float32, init: .inf}", "expected a number, inf, -inf or the name"),
        ("{shape: [2 * N], dtype: float32, init: x}", "x has another shape or dtype"),
        ("{shape: [N], dtype: float32, init: 0, inout: true}", "inout or init, not both"),
        ("{shape: [N], dtype: float32, inout: true}", "inout needs an input of the same name"),
        ("{shape: [N], dtype: float32, init: true}", "a number, inf, -inf or the name"),
    ],
)
def test_a_task_that_asks_for_something_else_is_refused_at_its_place(
    tmp_path: Path, output: str, words: str
) -> None:
    path = write_task(tmp_path)
    path.write_text(TASK.replace(OUT, f"  y: {output}"))
    with pytest.raises(TaskError, match=words) as caught:
        load_task(path)
    assert ":7:" in str(caught.value), "the line of the output"


def test_an_output_with_the_name_of_an_input_needs_inout(tmp_path: Path) -> None:
    path = write_task(tmp_path)
    path.write_text(TASK.replace(OUT, "  x: {shape: [N], dtype: float32}"))
    with pytest.raises(TaskError, match="'x' is in both inputs and outputs; an output that"):
        load_task(path)


def test_a_plan_fills_outputs_and_scratch_with_all_their_bytes(tmp_path: Path) -> None:
    path = write_task(tmp_path)
    path.write_text(TASK.replace(OUT, "  y: {shape: [N], dtype: float32, init: x}"))
    text = kernel("k").replace(
        "launches:", "scratch: {s: {dtype: float16, shape: [2, N], init: -inf}}\nlaunches:"
    )
    plan = bind(kernel_file.parse(text), load_task(path), "small", limits_of_arch("sm_90"))
    assert plan.fills == (
        Fill(buffer="y", bytes=4096, source="x"),
        Fill(buffer="s", bytes=4096, element="00fc"),
    )


@pytest.mark.parametrize("init", ["x", "0.5", "300"])
def test_scratch_that_cannot_begin_so_is_refused(init: str) -> None:
    text = kernel("k").replace(
        "launches:", f"scratch: {{s: {{dtype: int8, shape: [N], init: {init}}}}}\nlaunches:"
    )
    line = next(n for n, row in enumerate(text.splitlines(), 1) if row.startswith("scratch:"))
    column = text.splitlines()[line - 1].index(f" {init}}}") + 2
    with pytest.raises(CandidateError, match=rf":{line}:{column}: scratch\.s: .*{init}"):
        kernel_file.parse(text)
