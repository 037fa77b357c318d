"""How one input is drawn: what a task file may say under `draw`, and what it means.

drawn_ranges.py checks the numbers of each case, evaluate/worker/drawn_values.py draws.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Discriminator, Tag, model_validator

from evoengine.errors import hint
from evoengine.records import Frozen
from evoengine.task.distributions import DISTRIBUTIONS, STRUCTURES, DrawName
from evoengine.task.value_types import Formula, FunctionRef
from evoengine.task.yaml_source import MisplacedError

OF_SETS = ("positive", "scale", "shift")  # also for a draw without `dist`
# the other keys that each `dist` takes
TAKES: dict[str, tuple[str, ...]] = {
    "uniform": ("low", "high", "scale", "shift"),
    "probabilities": (),
    "offsets": ("high",),
    "permutation": (),
    "mask": ("density",),
    "one_hot": (),
    "triangular": ("upper", *OF_SETS),
}
NEEDS: dict[str, tuple[str, ...]] = {"uniform": ("low", "high"), "offsets": ("high",)}
LEAST_DIMENSIONS = {
    "probabilities": 1, "offsets": 1, "permutation": 1, "one_hot": 1, "triangular": 2,
}  # fmt: skip

# What a dtype must be for a `dist` or a key.
FLOATING = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "uint8", "int32", "int64")
NUMBERS = (*FLOATING, *INTEGERS)
FITTING: dict[str, tuple[tuple[str, ...], str]] = {
    "uniform": (NUMBERS, "a number; a mask draws bool"),
    "probabilities": (FLOATING, "a floating-point type"),
    "offsets": (INTEGERS, "an integer type"),
    "permutation": (INTEGERS, "an integer type"),
    "mask": ((*INTEGERS, "bool"), "bool or an integer type"),
    "triangular": (NUMBERS, "a number"),
    "positive": (NUMBERS, "a number"),
    "scale": (FLOATING, "a floating-point type"),
    "shift": (FLOATING, "a floating-point type"),
}


DEFAULT_DENSITY = 0.5
# What a function that draws may take beside dimensions, flags and scalars.
GIVEN_TO_DRAWS = ("generator", "shape", "distribution")


class Draw(Frozen):
    """The distribution of one input; without `dist`, that of its input set."""

    dist: DrawName | None = None
    low: Formula | None = None
    high: Formula | None = None
    density: Formula | None = None
    upper: bool = False
    positive: bool = False
    scale: Formula | None = None
    shift: Formula | None = None

    @model_validator(mode="after")
    def _together(self) -> Draw:
        takes = OF_SETS if self.dist is None else TAKES.get(self.dist, OF_SETS)
        for key in self.stated:
            if key not in ("dist", *takes):
                what = f"a draw with dist {self.dist}" if self.dist else "a draw without dist"
                raise MisplacedError(f"{what} takes no {key}{hint('', takes, 'it takes')}", key)
        for key in NEEDS.get(self.dist or "", ()):
            if key not in self.stated:
                needed = " and ".join(NEEDS[self.dist or ""])
                raise MisplacedError(f"dist {self.dist} needs {needed}, {key} is missing", "dist")
        return self

    @property
    def stated(self) -> list[str]:
        """The keys that differ from their default; a stored task states all."""
        return [
            key
            for key, field in type(self).model_fields.items()
            if getattr(self, key) != field.default
        ]

    def refuse_misfit(self, dtype: str, dimensions: int) -> None:
        """Raises MisplacedError where an input of this dtype, or with so few dimensions, cannot be
        drawn like this.
        """
        for key in self.stated:
            what = self.dist if key == "dist" and self.dist else key
            fitting, words = FITTING.get(what, ((dtype,), ""))
            if dtype not in fitting:
                raise MisplacedError(f"{what} needs {words}, got {dtype}", key)
        least = LEAST_DIMENSIONS.get(self.dist or "", 0)
        if dimensions < least:
            raise MisplacedError(
                f"{self.dist} needs a shape of at least {least} extents, got {dimensions}", "dist"
            )


def draw_words(draw: Draw | str, dtype: str) -> str:
    """What an input of this dtype holds, as prompts say it; a function is said by its name."""
    if isinstance(draw, str):
        return f"as the function `{draw.rpartition(':')[2]}` of the task draws it"
    words = _kind_in_words(draw, dtype)
    if draw.positive:
        words += ", absolute values"
    if draw.scale is not None:
        words += f", times {draw.scale}"
    if draw.shift is not None:
        words += f", plus {draw.shift}"
    return words


def _kind_in_words(draw: Draw, dtype: str) -> str:
    match draw.dist:
        case None:
            return "as the distribution says"
        case "uniform":
            whole = "whole numbers, " if dtype in INTEGERS else ""
            return f"{whole}uniform, {draw.low} <= value < {draw.high}"
        case "offsets":
            return f"sorted along the last dimension, from 0 to {draw.high}; some repeat"
        case "mask":
            one = "true" if dtype == "bool" else "1"
            return f"{one} with probability {draw.density or DEFAULT_DENSITY}"
        case "triangular":
            zero = "below" if draw.upper else "above"
            return f"as the distribution says, 0 {zero} the diagonal"
        case _:
            return STRUCTURES.get(draw.dist) or DISTRIBUTIONS[draw.dist]


def _kind(value: Any) -> str:
    return "function" if isinstance(value, str) else "draw"


# How an input is drawn: by us, or by a function FILE.py:FUNCTION.
InputDraw = Annotated[
    Annotated[Draw, Tag("draw")] | Annotated[FunctionRef, Tag("function")], Discriminator(_kind)
]
