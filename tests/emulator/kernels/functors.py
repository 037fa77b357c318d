"""One template over functors."""

from collections.abc import Callable

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [
        _case("square", "float, Square", "float32", lambda x: x * x),
        _case("add", "short, AddConstant<-5>", "int16", lambda x: x - 5),
        _case(
            "composed",
            "long long, Compose<Square, AddConstant<3> >",
            "int64",
            lambda x: (x + 3) ** 2,
        ),
    ]


def _case(name: str, parameters: str, dtype: str, f: Callable[[np.ndarray], np.ndarray]) -> Case:
    n = 333
    x = np.random.default_rng(len(name)).integers(-40, 40, n).astype(dtype)
    args = (In(x), Out(n, dtype), np.int32(n))
    return Case(
        name,
        f"functors<{parameters}>",
        (2, 1, 1),
        (96, 1, 1),
        args,
        {1: np.minimum(f(x), n).astype(dtype)},
    )
