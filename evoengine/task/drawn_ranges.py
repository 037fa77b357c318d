"""The numbers of a draw, evaluated and checked for one case."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from evoengine.task import expression
from evoengine.task.draw import DEFAULT_DENSITY, FLOATING, INTEGERS, Draw
from evoengine.task.expression import ExpressionError, Value
from evoengine.task.yaml_source import MisplacedError

# the least and the greatest value of each dtype
RANGES: dict[str, tuple[float, float]] = {
    "float16": (-65504.0, 65504.0),
    "bfloat16": (-(2.0**128 - 2.0**120), 2.0**128 - 2.0**120),
    "float32": (-(2.0**128 - 2.0**104), 2.0**128 - 2.0**104),
    "float64": (-sys.float_info.max, sys.float_info.max),
    "int8": (-(2**7), 2**7 - 1),
    "uint8": (0, 2**8 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
}


@dataclass(frozen=True)
class DrawnRange:
    """The numbers of a draw for one case."""

    low: Value = 0
    high: Value = 0
    density: float = DEFAULT_DENSITY
    scale: float = 1.0
    shift: float = 0.0


def range_of(draw: Draw, scope: Mapping[str, Value]) -> DrawnRange:
    """The numbers of `draw` with the names in `scope`; raises MisplacedError."""

    def value(key: str) -> Value:
        try:
            return expression.parse(getattr(draw, key)).evaluate(scope)
        except ExpressionError as error:
            raise MisplacedError(f"{key}: {error}", key) from None

    keys = ("low", "high", "density", "scale", "shift")
    return DrawnRange(**{key: value(key) for key in keys if getattr(draw, key) is not None})


def refuse_range(
    draw: Draw, dtype: str, shape: tuple[int, ...], scope: Mapping[str, Value]
) -> None:
    """Raises MisplacedError where an input of this dtype and shape cannot be drawn from `draw` with
    the numbers in `scope`.
    """
    found = range_of(draw, scope)
    match draw.dist:
        case "uniform":
            _refuse_uniform(draw, dtype, found)
        case "offsets":
            _refuse_offsets(draw, dtype, shape, found)
        case "permutation":
            _require(
                shape[-1] - 1 <= RANGES[dtype][1],
                f"a permutation of {shape[-1]} numbers needs {shape[-1] - 1}, {dtype} ends at"
                f" {RANGES[dtype][1]}",
                "dist",
            )
        case "mask":
            wanted = f"density: {draw.density} is {found.density}, expected a number from 0 to 1"
            _require(0 <= found.density <= 1, wanted, "density")


def _refuse_uniform(draw: Draw, dtype: str, found: DrawnRange) -> None:
    whole = dtype in INTEGERS
    for key, value in (("low", found.low), ("high", found.high)):
        _refuse_fraction(draw, dtype, key, value)
    _require(
        found.low < found.high,
        f"low: {draw.low} is {found.low}, high: {draw.high} is {found.high}, expected low < high",
        "high",
    )
    least, most = RANGES[dtype]
    _require(
        found.low >= least, f"low: {draw.low} is {found.low}, {dtype} begins at {least}", "low"
    )
    _require(
        found.high - whole <= most,
        f"high: {draw.high} is {found.high}, {dtype} ends at {most}",
        "high",
    )


def _refuse_offsets(draw: Draw, dtype: str, shape: tuple[int, ...], found: DrawnRange) -> None:
    _refuse_fraction(draw, dtype, "high", found.high)
    most = RANGES[dtype][1]
    _require(
        0 <= found.high <= most,
        f"high: {draw.high} is {found.high}, expected a number from 0 to {most}, as {dtype}",
        "high",
    )
    _require(
        shape[-1] >= 2,
        f"offsets need a last dimension of at least 2, a first and a last one, got {shape[-1]}",
        "dist",
    )


def _refuse_fraction(draw: Draw, dtype: str, key: str, value: Value) -> None:
    _require(
        dtype in FLOATING or value == int(value),
        f"{key}: {getattr(draw, key)} is {value}, expected a whole number, as {dtype}",
        key,
    )


def _require(condition: bool, message: str, key: str) -> None:
    if not condition:
        raise MisplacedError(message, key)
