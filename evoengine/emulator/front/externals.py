"""External functions: our headers declare them, PTX calls them by these names, the C runtime
defines them.

include/ev/externals.h declares the same; a test compares the two. Lanes are independent, the
functions are pure, their accuracy is at least that of the CUDA C++ Programming Guide's table.
`vprintf` and `__assertfail` are CUDA's own system calls and not among them.
"""

from __future__ import annotations

from dataclasses import dataclass

_UNARY = (
    *(
        "sin",
        "cos",
        "tan",
        "sinpi",
        "cospi",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "acosh",
        "atanh",
    ),
    *(
        "exp",
        "exp10",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "cbrt",
        "rcbrt",
        "erf",
        "erfc",
        "erfcx",
        "erfinv",
        "erfcinv",
    ),
    *(
        "normcdf",
        "normcdfinv",
        "lgamma",
        "tgamma",
        "j0",
        "j1",
        "y0",
        "y1",
        "cyl_bessel_i0",
        "cyl_bessel_i1",
    ),
)
_BINARY = ("atan2", "pow", "fmod", "remainder", "hypot", "rhypot", "nextafter")


@dataclass(frozen=True)
class ExternalFunction:
    """An external function, with types as in PTX: "f32", "f64", "s32"."""

    name: str  # "__ev_expf"
    function: str  # "expf": its name in the C library or the CUDA Math API
    arguments: tuple[str, ...]
    result: str


def _both(function: str, *others: str, count: int = 1) -> list[ExternalFunction]:
    return [
        ExternalFunction(
            f"__ev_{function}{suffix}", f"{function}{suffix}", (*([kind] * count), *others), kind
        )
        for suffix, kind in (("f", "f32"), ("", "f64"))
    ]


_ALL = (
    *(external for function in _UNARY for external in _both(function)),
    *(external for function in _BINARY for external in _both(function, count=2)),
    *_both("ldexp", "s32"),
    ExternalFunction("__ev_exp2", "exp2", ("f64",), "f64"),
)
EXTERNALS = {external.name: external for external in _ALL}
