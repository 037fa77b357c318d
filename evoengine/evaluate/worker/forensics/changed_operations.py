"""Operations element by element left out, done twice, or exchanged for a similar one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_step import (
    BINARY,
    UNARY,
    ChangedStep,
    change,
    first_operand,
)
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep
from evoengine.evaluate.worker.forensics.scan_kinds import SCAN_KINDS, ScanKind, scanned

DOING = {"mul": "multiplying", "div": "dividing", "add": "adding", "sub": "subtracting"}
DONE = {
    "mul": "multiplied by", "div": "divided by", "add": "added", "sub": "subtracted",
}  # fmt: skip
KEPT_OUT = ("masked_fill", "triu", "tril")  # which are masks
# (a, b) -> the result where the kernel has another sign or operation
EXCHANGED: Mapping[str, tuple[str, str, Any]] = {
    "sub": ("with + in place of -", "has the wrong sign", lambda a, b: a + b),
    "rsub": ("with + in place of -", "has the wrong sign", lambda a, b: a + b),
    "add": (
        "with - in place of +",
        "has the wrong sign: subtracted, not added",
        lambda a, b: a - b,
    ),
    "mul": ("with / in place of *", "divides in place of multiplying", lambda a, b: a / b),
    "div": ("with * in place of /", "multiplies in place of dividing", lambda a, b: a * b),
}


# What a step that is missing leaves.
WITHOUT = {
    "round": ": values are cut towards zero (truncated) or kept, not rounded to the nearest",
    "abs": ": signs are kept, no absolute values are taken",
}


def left_out(step: ReferenceStep) -> Iterator[ChangedStep]:
    """Without the step, or with its operands exchanged."""
    if step.name in UNARY and not step.name.startswith(KEPT_OUT):
        yield change(
            step,
            f"without {step.name} ({step.words})",
            first_operand,
            1.02,
            f"{step.name} is missing{WITHOUT.get(step.name, '')}",
        )
    if step.name == "where":
        yield change(
            step, f"with the condition always true in {step.words}", lambda f, a, k: a[1] + 0 * a[2]
        )
        yield change(
            step,
            f"with the condition inverted in {step.words}",
            lambda f, a, k: f(~a[0], *a[1:], **k),
            mistake="the condition is inverted",
        )
    if step.name in BINARY:
        yield from _one_operand(step)
    if step.name in EXCHANGED:
        words, mistake, result = EXCHANGED[step.name]
        yield change(
            step,
            f"{words} in {step.words}",
            lambda f, a, k: result(a[0], a[1]),
            1.0 if step.name.endswith(("sub", "add")) else 0.98,
            f"{step.operand(1) or 'the second operand'} {mistake}",
        )
    if step.name in ("sub", "rsub"):
        yield change(
            step,
            f"with the operands of {step.words} exchanged",
            lambda f, a, k: -f(*a, **k),
            mistake=f"{step.result} has the wrong sign, subtracted the other way round",
        )


def _one_operand(step: ReferenceStep) -> Iterator[ChangedStep]:
    doing = DOING.get(step.name, step.name)
    if step.name in ("rsub", "rdiv"):
        yield change(step, f"with {step.words} left out", first_operand, 1.02)
        return
    named = step.operand(1) or "the second operand"
    how = {"add": "added", "sub": "subtracted", "mul": "applied", "div": "applied"}
    yield change(
        step,
        f"without {doing} {named} in {step.words}",
        first_operand,
        1.02,
        (
            f"{named} is not squared, one factor of it is missing"
            if _is_square(step)
            else f"{named} is missing, never {how.get(step.name, 'applied')}"
        )
        + (f" in {step.source.variable}" if step.source.variable else ""),
    )
    yield change(
        step,
        f"with {named} alone in {step.words}",
        _second,
        0.99,
        f"{step.operand(0)} is missing" if step.operand(0) else "",
    )


def _is_square(step: ReferenceStep) -> bool:
    """Whether what a product is multiplied by is a factor of it already: `x * x`, `a * x * x`."""
    named = step.operand(1)
    factors = [one.strip() for one in step.operand(0).split("*")]
    return step.name == "mul" and named.isidentifier() and named in factors


def _second(_func: Any, args: tuple[Any, ...], _kwargs: Any) -> Any:
    """The second operand, as large as the result."""
    first, second = args[0], args[1]
    return (
        torch.as_tensor(second, dtype=torch.float64, device=first.device).expand_as(first)
        if isinstance(first, torch.Tensor) and not isinstance(second, torch.Tensor)
        else second
    )


def done_twice(step: ReferenceStep) -> Iterator[ChangedStep]:
    """The step applied twice, or half of it."""
    if step.name in UNARY - {"neg", "abs", "relu", "transpose", "permute", "where"}:
        yield change(
            step,
            f"with {step.name} applied twice ({step.words})",
            lambda f, a, k: f(f(*a, **k), *a[1:], **k),
            mistake=f"{step.name} is applied twice",
        )
    if step.name in DONE:
        named = step.operand(1) or "the second operand"
        yield change(
            step,
            f"with {named} {DONE[step.name].removesuffix(' by')} twice in {step.words}",
            lambda f, a, k: f(f(*a, **k), a[1], **k),
            mistake=f"{named} is applied twice",
        )
        if step.name == "mul" and step.operand(0):
            yield change(
                step,
                f"with {step.operand(0)} multiplied by twice in {step.words}",
                lambda f, a, k: f(f(*a, **k), a[0], **k),
                0.99,
                f"{step.operand(0)} is applied twice",
            )
        yield change(
            step,
            f"with half of {named} in {step.words}",
            lambda f, a, k: f(a[0], a[1] / 2, **k),
            0.97,
        )


def other_operations(step: ReferenceStep) -> Iterator[ChangedStep]:
    """A similar operation in its place."""
    named = _ACTIVATIONS if step.name in ("gelu", "silu") else _SIMILAR.get(step.name, {})
    for words, result in named.items():
        if words.split()[0] == step.name:
            continue
        yield change(
            step,
            f"with {words} in place of {step.name} ({step.words})",
            lambda f, a, k, result=result: result(a[0]),
            1.01,
            f"{step.name} is computed wrongly, as {words}",
        )
    if step.name == "gelu":
        yield change(
            step,
            f"with the other form of gelu, tanh or erf ({step.words})",
            _other_gelu,
            1.03,
            "gelu is the other one, by tanh in place of erf or the reverse",
        )
    if step.name == "roll":
        yield from _rolls(step)
    if step.name in ("floor_divide", "remainder"):
        yield from _indices(step)
    if step.name in SCAN_KINDS:
        yield from _scans(step, SCAN_KINDS[step.name])
    if step.name in ("maximum", "minimum", "max", "min", "amax", "amin"):
        swapped = {"maximum": "minimum", "max": "min", "amax": "amin"}
        swapped |= {value: key for key, value in swapped.items()}
        other = swapped[step.name]
        yield change(
            step,
            f"with {other} in place of {step.name} ({step.words})",
            lambda f, a, k: getattr(torch, other)(*a, **k),
        )


def _rolls(step: ReferenceStep) -> Iterator[ChangedStep]:
    """A roll in the other direction, or one place further or less."""
    for words, mistake, other in (
        (
            "in the other direction",
            "goes in the wrong direction (the sign of the shift)",
            lambda n: -n,
        ),
        ("one place further", "is one place too far (off by one)", lambda n: n + 1),
        ("one place less", "is one place too short (off by one)", lambda n: n - 1),
    ):

        def instead(func: Any, args: tuple[Any, ...], kwargs: Any, other: Any = other) -> Any:
            given = dict(zip(("input", "shifts", "dims"), args, strict=False)) | dict(kwargs)
            shifts = given["shifts"]
            given["shifts"] = (
                other(shifts) if isinstance(shifts, int) else tuple(other(one) for one in shifts)
            )
            return torch.roll(**given)

        yield change(step, f"rolled {words} in {step.words}", instead, 1.0, f"the roll {mistake}")


def _indices(step: ReferenceStep) -> Iterator[ChangedStep]:
    """Arithmetic of whole indices: which group, or which place in it."""
    is_group = step.name == "floor_divide"
    result = step.result
    for words, mistake, other in (
        (
            "of the next index",
            "changes one element too early (off by one)",
            lambda a, n: (a + 1, n),
        ),
        (
            "of the index before",
            "changes one element too late (off by one)",
            lambda a, n: (a - 1, n),
        ),
        ("with twice the size", "has groups of twice the size", lambda a, n: (a, 2 * n)),
        ("with half of the size", "has groups of half the size", lambda a, n: (a, n // 2)),
    ):

        def instead(func: Any, args: tuple[Any, ...], kwargs: Any, other: Any = other) -> Any:
            right = func(*args, **kwargs)
            value, size = args[0], args[1]
            if not isinstance(size, int) or size < 2 or value.is_floating_point():
                raise ValueError("no index")
            given, parts = other(value, size)
            return func(given, parts, *args[2:], **kwargs).clamp(right.min(), right.max())

        yield change(
            step, f"with the group {words} in {step.words}", instead, 1.0, f"{result} {mistake}"
        )
    said = ("modulo", "divided by") if is_group else ("divided by", "modulo")

    def exchanged(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        right = func(*args, **kwargs)
        if args[0].is_floating_point():
            raise ValueError("no index")
        done = torch.remainder(*args) if is_group else torch.floor_divide(*args)
        return done.clamp(right.min(), right.max())

    yield change(
        step,
        f"{said[0]} in place of {said[1]} {step.operand(1)} in {step.words}",
        exchanged,
        1.0,
        f"{result} is the index {said[0]} the size of a group, where it must be {said[1]} it",
    )


def _other_gelu(_func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
    kind = "none" if kwargs.get("approximate", "none") == "tanh" else "tanh"
    return torch.nn.functional.gelu(args[0], approximate=kind)


def _tanh_gelu(root: float, cube: float) -> Any:
    return lambda x: 0.5 * x * (1 + torch.tanh(root * (x + cube * x**3)))


_ACTIVATIONS: Mapping[str, Any] = {
    "silu (x * sigmoid(x))": torch.nn.functional.silu,
    "gelu(x) without the factor 1/sqrt(2) of erf": lambda x: 0.5 * x * (1 + torch.erf(x)),
    "gelu(x) without the factor 0.5": lambda x: 2 * torch.nn.functional.gelu(x),
    "x * sigmoid(1.702 x)": lambda x: x * torch.sigmoid(1.702 * x),
    "relu": torch.relu,
    "the distribution function alone, without x": lambda x: 0.5 * (1 + torch.erf(x / 2**0.5)),
    "gelu by tanh without its cubic term": _tanh_gelu(math.sqrt(2 / math.pi), 0.0),
    "gelu by tanh with 2/pi in place of sqrt(2/pi)": _tanh_gelu(2 / math.pi, 0.044715),
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
}
_SIMILAR: Mapping[str, Mapping[str, Any]] = {
    "exp": {
        "exp2": torch.exp2,
        "expm1": torch.expm1,
        "exp of -x": lambda x: torch.exp(-x),
        "1 + x, its first terms alone": lambda x: 1 + x,
    },
    "exp2": {"exp": torch.exp},
    "log": {"log2": torch.log2, "log10": torch.log10, "log1p": torch.log1p},
    "log2": {"log": torch.log},
    "rsqrt": {"sqrt": torch.sqrt, "1/x (without the root)": torch.reciprocal},
    "sqrt": {"1/sqrt": torch.rsqrt},
    "relu": {
        "abs": torch.abs,
        "gelu": torch.nn.functional.gelu,
        "-relu(-x)": lambda x: -torch.relu(-x),
    },
    "sigmoid": {
        "sigmoid of -x": lambda x: torch.sigmoid(-x),
        "tanh": torch.tanh,
        "exp(x)": torch.exp,
    },
    "tanh": {"sigmoid": torch.sigmoid},
    "softplus": {"relu": torch.relu},
    "square": {"the magnitude": torch.abs},
    "round": {
        "floor (rounded down)": torch.floor,
        "trunc (cut off toward zero)": torch.trunc,
        "rounding half away from zero": lambda x: x.sign() * (x.abs() + 0.5).floor(),
    },
    "floor": {"trunc (toward zero)": torch.trunc, "round": torch.round, "ceil": torch.ceil},
    "ceil": {"floor": torch.floor, "round": torch.round},
    "sin": {"cos": torch.cos},
    "cos": {"sin": torch.sin},
}


def _scans(step: ReferenceStep, kind: ScanKind) -> Iterator[ChangedStep]:
    yield change(
        step,
        f"without the element itself in {step.words}",
        scanned(lambda x: kind.shifted(kind.scan(x), 1)),
        mistake="the scan is exclusive, not inclusive: each element itself is missing (off by one)",
    )
    yield change(
        step,
        f"from the other end in {step.words}",
        scanned(lambda x: kind.scan(x.flip(-1)).flip(-1)),
        mistake="the scan runs in the reverse direction",
    )
    yield change(
        step,
        f"without the first element in {step.words}",
        scanned(lambda x: kind.scan(kind.shifted(x[..., 1:], 1, more=1))),
        mistake="the first element is missing in the scan",
    )
