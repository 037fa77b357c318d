"""One change of a step of the reference, as a kernel's mistake would be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

import torch

from evoengine.evaluate.worker.forensics.reference_steps import Place, ReferenceStep
from evoengine.records import DiagnosisKind

UNARY = {
    "exp", "sqrt", "rsqrt", "gelu", "relu", "tanh", "sigmoid", "silu", "softplus", "log", "abs",
    "neg", "square", "exp2", "log2", "log1p", "expm1", "erf", "sin", "cos", "reciprocal", "sign",
    "elu", "leaky_relu", "mish", "hardswish", "clamp", "clamp_min", "clamp_max", "round", "floor",
    "relu_", "exp_", "sqrt_", "softmax", "log_softmax", "cumsum", "cumprod", "flip", "normalize",
    "layer_norm", "rms_norm", "group_norm", "pow", "dropout", "nan_to_num", "tril", "triu",
    "masked_fill", "masked_fill_", "where", "transpose", "permute", "roll",
}  # fmt: skip
BINARY = {"mul", "div", "add", "sub", "rsub", "rdiv", "maximum", "minimum"}
REDUCTIONS = {
    "mean", "sum", "amax", "amin", "max", "min", "var", "std", "logsumexp", "norm", "vector_norm",
    "prod", "var_mean",
}  # fmt: skip
CONTRACTIONS = {"matmul", "einsum", "linear", "baddbmm", "addmm", "conv2d", "conv1d"}
MOST_TILES = 4  # of the sizes that a plan names

Instead = Callable[..., Any]  # (func, args, kwargs) -> the step's result


@dataclass(eq=False)
class Rehearsal:
    """A computation before the changed ones, in which steps are only looked at: where a change
    needs what all calls of a step are given before the first of them has a result.
    """

    instead: Mapping[Place, Instead]
    is_done: bool = False


@dataclass(frozen=True, eq=False)
class ChangedStep:
    """A change of one step, or of several that belong together."""

    kind: DiagnosisKind
    words: str  # "the reference ..."
    instead: Mapping[Place, Instead]
    weight: float = 1.0
    # whether values can only come near those of a kernel that errs so, as sums in another order do
    is_rough: bool = False
    mistake: str = ""  # in the words of an engineer, without place: "bias is missing"
    # whether it counts indices that a window leaves out, so that it needs the whole case
    of_whole: bool = False
    rehearsal: Rehearsal | None = None  # of changes that are all tried in one window


def change(
    step: ReferenceStep, words: str, instead: Instead, weight: float = 1.0, mistake: str = ""
) -> ChangedStep:
    """A change of one step."""
    kind = DiagnosisKind.changed_step
    return ChangedStep(kind, words, {step.place: instead}, weight, mistake=mistake)


def first_operand(_func: Any, args: tuple[Any, ...], _kwargs: Any) -> Any:
    """The step left out."""
    return args[0]


def reduced_axes(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[int, ...]:
    """The axes that a reduction reduces."""
    given = kwargs.get("dim", kwargs.get("axis", args[1] if len(args) > 1 else None))
    whole = tuple(range(args[0].dim()))
    if given is None:
        return whole
    chosen = (given,) if isinstance(given, int) else tuple(given)
    return tuple(axis % args[0].dim() for axis in chosen)


def is_last_axis(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether a step works along the last axis of its first operand."""
    return reduced_axes(args, kwargs) == (args[0].dim() - 1,)


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether an operand is a plain number, no flag."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def counted(count: int, one: str, many: str = "") -> str:
    """`1 row`, `3 rows`."""
    return f"{count} {one}" if count == 1 else f"{count} {many or one + 's'}"


def as_float64(value: torch.Tensor) -> torch.Tensor:
    """The values in the type in which references are computed."""
    return value.to(torch.float64)
