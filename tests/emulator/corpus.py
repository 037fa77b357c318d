"""The kernel corpus: kernels as users write them, with launches and expected results.

A kernel is `kernels/NAME.cu`; the `cases()` of `kernels/NAME.py` are its launches. Expected results
are computed with numpy or torch, in float64.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tests.emulator.float_formats import distance, values

KERNELS = Path(__file__).resolve().parent / "kernels"
PACKAGE = "tests.emulator.kernels"

# What kernels use, the rarest first: a sample has one of each.
FEATURES = (
    *("ldmatrix", "mma.sync", "wmma", "cp.async", "memcpy_async", "<mma.h>", "cooperative_groups"),
    *("asm", "__nv_fp8", "__nv_bfloat", "printf", "double", "switch", "volatile", "__constant__"),
    *("__half", "half", "__match", "__ballot", "__shfl", "atomic", "extern __shared__"),
    *("template", "__shared__", "long long", "while", "for", "if"),
)

# Formats that numpy has not: name -> what their bits are kept in.
STORED_AS = {"bfloat16": "uint16", "float8_e4m3": "uint8", "float8_e5m2": "uint8"}


@dataclass(frozen=True)
class In:
    """A buffer that the kernel reads; `dtype` only if numpy lacks it, such as "bfloat16" over
    uint16 bits.
    """

    array: np.ndarray
    dtype: str = ""


@dataclass(frozen=True)
class InOut:
    """An initialised buffer that the kernel changes."""

    array: np.ndarray
    dtype: str = ""


@dataclass(frozen=True)
class Out:
    """An uninitialised buffer (filled with garbage), of which the kernel writes every element."""

    shape: int | tuple[int, ...]
    dtype: str


# a struct by value is a scalar of a structured dtype: np.void
Argument = In | InOut | Out | np.generic


@dataclass(frozen=True)
class Bitwise:
    """All bits are equal; all NaNs of a floating-point format count as equal."""


@dataclass(frozen=True)
class Ulp:
    """At most `n` representable numbers of `dtype` apart; buffers of another dtype must be bitwise
    equal.
    """

    n: int
    dtype: str = "float32"


@dataclass(frozen=True)
class Close:
    """Floating-point formats within atol + rtol * |expected|; integers equal."""

    atol: float = 0.0
    rtol: float = 0.0


Agreement = Bitwise | Ulp | Close
BITWISE = Bitwise()


@dataclass(frozen=True)
class Case:
    """One launch of a kernel."""

    name: str
    kernel: str  # its name, or a name expression: "scan<256>"
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    args: tuple[Argument, ...]  # in the order of the kernel's parameters
    # index of an argument -> what it must hold; 16- and 8-bit formats also as float values
    expected: dict[int, np.ndarray]
    atol: float = 0.0  # against expected; both 0: exact
    rtol: float = 0.0
    gpu: Agreement = BITWISE  # how the emulator and a GPU must agree
    shared_bytes: int = 0  # dynamic shared memory
    macros: Mapping[str, str | int] = field(default_factory=dict)
    arch: str = "sm_80"  # the lowest that has what it needs
    printed: tuple[str, ...] = ()  # lines that it prints, in any order
    # "fence", "flag", "lock", "arrive", "words": right, but threads are ordered by that, not by
    # barriers alone. Checked mode need not follow it; neither does NVIDIA's racecheck.
    ordered_by: str = "barriers"


@dataclass(frozen=True)
class Kernel:
    """A kernel of the corpus with its cases."""

    name: str
    source: str
    cases: tuple[Case, ...]


def load_corpus() -> tuple[Kernel, ...]:
    """All kernels, ordered by name; raises FileNotFoundError for a .cu without .py or the
    reverse.
    """
    return tuple(load_kernel(name) for name in kernel_names())


def kernel_names() -> tuple[str, ...]:
    """The names of all kernels, in order."""
    paths = [path for path in KERNELS.iterdir() if path.suffix in (".cu", ".py")]
    return tuple(sorted({path.stem for path in paths} - {"__init__"}))


def files_of(name: str) -> tuple[Path, Path]:
    """The files of the kernel `name`."""
    return KERNELS / f"{name}.cu", KERNELS / f"{name}.py"


def feature_of(name: str) -> str:
    """The rarest of FEATURES that the kernel `name` uses; empty if it uses none."""
    text = (KERNELS / f"{name}.cu").read_text(encoding="utf-8")
    return next((feature for feature in FEATURES if feature in text), "")


def load_kernel(name: str) -> Kernel:
    """The kernel `name` of the corpus."""
    source = (KERNELS / f"{name}.cu").read_text(encoding="utf-8")
    return Kernel(name, source, tuple(importlib.import_module(f"{PACKAGE}.{name}").cases()))


def dtype_of(argument: In | InOut | Out) -> str:
    """The format of a buffer's elements by name, such as "float32" or "bfloat16"."""
    if isinstance(argument, Out):
        return argument.dtype
    return argument.dtype or argument.array.dtype.name


def initial(argument: In | InOut | Out) -> np.ndarray:
    """The contents of a buffer before the launch, in its storage type; an Out is filled with 0xA5
    bytes, which no kernel here computes.
    """
    if not isinstance(argument, Out):
        return np.ascontiguousarray(argument.array)
    stored = np.dtype(STORED_AS.get(argument.dtype, argument.dtype))
    count = int(np.prod(argument.shape))
    return np.full(count * stored.itemsize, 0xA5, np.uint8).view(stored).reshape(argument.shape)


def results(case: Case) -> tuple[int, ...]:
    """The indices of the arguments that a launch may change."""
    return tuple(
        index for index, argument in enumerate(case.args) if isinstance(argument, InOut | Out)
    )


def wrong(case: Case, index: int, got: np.ndarray) -> str:
    """What is wrong with argument `index` after the launch; empty if it is as expected."""
    argument = case.args[index]
    assert isinstance(argument, In | InOut | Out), f"argument {index} is no buffer"
    dtype, want = dtype_of(argument), case.expected[index]
    found = values(got, dtype).reshape(-1)
    right = (values(want, dtype) if want.dtype == got.dtype else want).reshape(-1)
    if found.shape != right.shape:
        return f"argument {index}: expected {right.size} elements, got {found.size}"
    if case.atol == case.rtol == 0.0:
        fits = (found == right) | ((found != found) & (right != right))
    else:
        with np.errstate(invalid="ignore"):
            fits = np.isclose(
                found.astype(np.float64),
                right.astype(np.float64),
                atol=case.atol,
                rtol=case.rtol,
                equal_nan=True,
            )
    if fits.all():
        return ""
    first = int(np.argmin(fits))
    return (
        f"argument {index}: {int((~fits).sum())} of {fits.size} wrong, first [{first}]: expected"
        f" {right[first]!r}, got {found[first]!r}"
    )


@dataclass(frozen=True)
class Difference:
    """The difference between two results of one buffer."""

    bitwise: bool
    ulp: int | None  # the largest distance; None for integers
    absolute: float | None  # the largest difference between finite numbers; None for integers
    agrees: bool


def difference(agreement: Agreement, dtype: str, one: np.ndarray, other: np.ndarray) -> Difference:
    """The difference between `one` and `other`, two arrays of one shape with bits of `dtype`, and
    whether it is tolerated.
    """
    distances = distance(one, other, dtype)
    same = not distances.any()
    if not dtype.startswith(("float", "bfloat")):
        return Difference(same, None, None, same)
    ulp = int(distances.max(initial=0))
    first, second = values(one, dtype), values(other, dtype)
    with np.errstate(invalid="ignore"):
        gap = np.abs(first - second)
        absolute = float(gap[np.isfinite(gap)].max(initial=0.0))
        if isinstance(agreement, Close):
            agrees = bool(
                np.isclose(
                    first, second, atol=agreement.atol, rtol=agreement.rtol, equal_nan=True
                ).all()
            )
        else:
            agrees = (
                ulp <= agreement.n
                if isinstance(agreement, Ulp) and agreement.dtype == dtype
                else same
            )
    return Difference(same, ulp, absolute, agrees)


def wrong_lines(case: Case, printed: str) -> str:
    """What is wrong with the output of a launch; empty if it has the expected lines, in any
    order.
    """
    got, want = sorted(printed.splitlines()), sorted(case.printed)
    if got == want:
        return ""
    missing, surplus = (
        [line for line in want if line not in got],
        [line for line in got if line not in want],
    )
    return (
        f"printed {len(got)} lines, expected {len(want)}; missing {missing[:2]}, not expected"
        f" {surplus[:2]}"
    )
