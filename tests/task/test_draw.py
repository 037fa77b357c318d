"""`draw` in a task file: what it takes, and what is refused with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from evoengine.errors import TaskError
from evoengine.task import yaml_source
from evoengine.task.distributions import DISTRIBUTIONS, STRUCTURES
from evoengine.task.draw import FITTING, TAKES, Draw, draw_words
from evoengine.task.drawn_ranges import RANGES
from evoengine.task.load import load_task, validated
from evoengine.task.schema import DTYPES, Task
from evoengine.task.yaml_source import YamlError
from tests.task.test_schema import TEXT

INPUT = "shape: [N, 4], dtype: float32}\n  f"  # N is 64, and 7 in a hidden case


def task_with(dtype: str, draw: str, shape: str = "[N, 4]") -> Task:
    text = TEXT.replace(INPUT, f"shape: {shape}, dtype: {dtype}, draw: {draw}}}\n  f")
    return validated(yaml_source.load(text, "t.yaml"))


@pytest.mark.parametrize(
    ("dtype", "draw", "words"),
    [
        ("int32", "{dist: uniform, low: 0, high: 50257}", "whole numbers, uniform, 0 <= value < 50257"),
        ("int8", "{dist: uniform, low: -128, high: 128}", "whole numbers, uniform, -128 <= value < 128"),
        ("float16", "{dist: uniform, low: 0, high: 1/N}", "uniform, 0 <= value < 1/N"),
        (
            "float32",
            "{dist: uniform, low: 0, high: 1, scale: 2/sqrt(N), shift: -1/sqrt(N)}",
            "uniform, 0 <= value < 1, times 2/sqrt(N), plus -1/sqrt(N)",
        ),
        ("float32", "{dist: normal, scale: 0.02}", "N(0, 1), times 0.02"),
        ("float32", "{positive: true}", "as the distribution says, absolute values"),
        ("int8", "{positive: true}", "as the distribution says, absolute values"),
        ("bfloat16", "{dist: probabilities}", STRUCTURES["probabilities"]),
        ("int64", "{dist: offsets, high: 8*N}", "sorted along the last dimension, from 0 to 8*N; some repeat"),
        ("uint8", "{dist: permutation}", STRUCTURES["permutation"]),
        ("bool", "{dist: mask}", "true with probability 0.5"),
        ("int32", "{dist: mask, density: 1/N}", "1 with probability 1/N"),
        ("int64", "{dist: one_hot}", STRUCTURES["one_hot"]),
        ("bool", "{dist: one_hot}", STRUCTURES["one_hot"]),
        ("float64", "{dist: triangular}", "as the distribution says, 0 above the diagonal"),
        ("float64", "{dist: triangular, upper: true}", "as the distribution says, 0 below the diagonal"),
        ("float64", "scale_rows.py:make", "as the function `make` of the task draws it"),
    ],
)  # fmt: skip
def test_a_draw_is_kept_as_a_run_stores_it_and_said(dtype: str, draw: str, words: str) -> None:
    task = task_with(dtype, draw)
    found = task.inputs["x"].draw
    assert found is not None and draw_words(found, dtype) == words
    assert Task.model_validate_json(task.model_dump_json()) == task


@pytest.mark.parametrize(
    ("dtype", "draw", "says"),
    [
        (
            "int32",
            "{dist: uniform, low: 0}",
            "5:49: inputs.x.draw: dist uniform needs low and high, high is missing",
        ),
        ("float32", "{dist: uniform, high: 1}", "5:51: inputs.x.draw: .* low is missing"),
        ("int32", "{dist: offsets}", "5:49: inputs.x.draw: dist offsets needs high, high is missing"),
        ("int8", "{dist: uniform, low: 0, high: 129}", "5:71: x: high: 129 is 129, int8 ends at 127"),
        ("uint8", "{dist: uniform, low: -1, high: 9}", "5:63: x: low: -1 is -1, uint8 begins at 0"),
        ("float16", "{dist: uniform, low: 0, high: 65505}", "5:74: x: high: .* float16 ends at 65504"),
        (
            "int32",
            "{dist: uniform, low: 0, high: N-7}",
            "5:72: x: low: 0 is 0, high: N-7 is 0, expected low < high for case odd",
        ),
        ("float32", "{dist: uniform, low: 2, high: 1}", "5:74: x: .* expected low < high for case pl"),
        ("int32", "{dist: uniform, low: 0, high: N/3}", "5:72: x: high: .* expected a whole number"),
        ("int32", "{dist: uniform, low: M, high: N}", "5:63: x: low: unknown name 'M'"),
        ("bool", "{dist: uniform, low: 0, high: 1}", "5:48: inputs.x: uniform needs a number; a mask"),
        ("int8", "{dist: offsets, high: 2*N}", "5:63: x: high: .* is 128, expected a number from 0 to"),
        ("int32", "{dist: offsets, high: 3-N}", "5:64: x: high: 3-N is -61, expected a number from 0"),
        ("float32", "{dist: offsets, high: N}", "5:51: inputs.x: offsets needs an integer type, got"),
        ("int32", "{dist: permutation, scale: 2}", "5:69: .* dist permutation takes no scale; it takes"),
        ("float32", "{dist: permutation}", "5:51: inputs.x: permutation needs an integer type, got fl"),
        ("float32", "{dist: mask}", "5:51: inputs.x: mask needs bool or an integer type, got float32"),
        ("bool", "{dist: mask, density: 2}", "5:63: x: density: 2 is 2, expected a number from 0 to 1"),
        ("bool", "{dist: mask, density: -1/N}", "5:63: x: density: .* expected a number from 0 to 1"),
        ("int8", "{dist: probabilities}", "5:48: inputs.x: probabilities needs a floating-point type"),
        ("bool", "{dist: triangular}", "5:48: inputs.x: triangular needs a number, got bool"),
        ("bool", "{positive: true}", "5:52: inputs.x: positive needs a number, got bool"),
        ("int8", "{scale: 2}", "5:49: inputs.x: scale needs a floating-point type, got int8"),
        ("int8", "{dist: normal, shift: 2}", "5:63: inputs.x: shift needs a floating-point type"),
        ("float32", "{low: 2}", "5:50: .* a draw without dist takes no low; it takes: positive, scale"),
        ("float32", "{dist: normal, upper: true}", "5:66: .* dist normal takes no upper; it takes"),
        ("float32", "{dist: uniform, low: 0, high: 1, positive: true}", "5:87: .* takes no positive"),
        ("float32", "{dist: extreme}", "5:51: .* extreme is a distribution of a whole input set"),
        ("float32", "{dist: unifrom}", "5:51: .* no distribution 'unifrom'; did you mean 'uniform'"),
        ("float32", "{disst: normal}", "5:52: .*: unknown key; did you mean 'dist'[?] known: dist, low"),
        ("float32", "gen", "5:44: inputs.x.draw: expected FILE.py:FUNCTION, e.g. sdpa.py:forward, got"),
        ("float32", "[1]", "5:44: inputs.x.draw: expected a mapping, got a list"),
    ],
)  # fmt: skip
def test_a_draw_that_makes_no_sense_is_refused_with_its_place(
    dtype: str, draw: str, says: str
) -> None:
    with pytest.raises(YamlError, match=f"^t.yaml:{says}"):
        task_with(dtype, draw)


@pytest.mark.parametrize(
    ("dtype", "draw", "shape", "says"),
    [
        ("float32", "{dist: triangular}", "[N]", "5:48: inputs.x: triangular needs a shape of at least 2"),
        ("int32", "{dist: offsets, high: 5}", "[N, 1]", "5:49: x: offsets need a last dimension of at"),
        (
            "int8",
            "{dist: permutation}",
            "[4, 3*N]",
            "5:50: x: a permutation of 192 numbers needs 191, int8 ends at 127 for case plain",
        ),
    ],
)  # fmt: skip
def test_a_draw_that_does_not_fit_the_shape_is_refused(
    dtype: str, draw: str, shape: str, says: str
) -> None:
    with pytest.raises(YamlError, match=f"^t.yaml:{says}"):
        task_with(dtype, draw, shape)


def test_a_scalar_is_not_drawn() -> None:
    text = TEXT.replace("value: 1/N,", "value: 1/N, draw: {positive: true},")
    with pytest.raises(
        YamlError, match=r"t.yaml:6:30: inputs.factor: a scalar has a value and is no"
    ):
        validated(yaml_source.load(text, "t.yaml"))


def test_every_structure_says_what_it_takes_and_every_type_has_a_range() -> None:
    assert set(TAKES) == set(STRUCTURES) and not set(STRUCTURES) & set(DISTRIBUTIONS)
    assert {key for keys in TAKES.values() for key in keys} == set(Draw.model_fields) - {"dist"}
    assert set(RANGES) == set(DTYPES) - {"bool"}
    assert {name for names, _ in FITTING.values() for name in names} == set(DTYPES)


@pytest.mark.parametrize(
    ("draw", "says"),
    [
        ("gone.py:make", r"t.yaml:5:44: no file '.*gone.py'"),
        ("scale_rows.py:mak", r"t.yaml:5:44: no function 'mak' in .*; did you mean 'make'"),
    ],
)
def test_the_file_of_a_function_that_draws_is_looked_up_when_the_task_loads(
    tmp_path: Path, draw: str, says: str
) -> None:
    (tmp_path / "scale_rows.py").write_text("def forward(): ...\ndef make(): ...\n")
    path = tmp_path / "t.yaml"
    path.write_text(TEXT.replace(INPUT, f"shape: [N, 4], dtype: float32, draw: {draw}}}\n  f"))
    with pytest.raises(TaskError, match=says):
        load_task(path)


def test_a_function_that_draws_is_given_no_two_things_of_one_name() -> None:
    text = TEXT.replace("N: int", "N: int, shape: int").replace("{N: ", "{shape: 3, N: ")
    text = text.replace("dims: {shape: 3, ", "dims: {")
    assert validated(yaml_source.load(text, "t.yaml"))
    text = text.replace(INPUT, "shape: [N, 4], dtype: float32, draw: scale_rows.py:make}\n  f")
    with pytest.raises(YamlError, match=r"t.yaml:5:44: 'shape' cannot be the name of a dimension"):
        validated(yaml_source.load(text, "t.yaml"))
