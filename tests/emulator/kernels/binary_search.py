"""Binary search, whose lanes leave the loop at different times; keys of 32 and 64 bits."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [
        _case("int", "int32", 1000, 300),
        _case("long long", "int64", 33, 100),
        _case("float", "float32", 1, 40),
    ]


def _case(kind: str, dtype: str, n: int, m: int) -> Case:
    rng = np.random.default_rng(n)
    table = np.sort(rng.integers(-500, 500, n)).astype(dtype)
    queries = rng.integers(-600, 600, m).astype(dtype)
    where = np.searchsorted(table, queries).astype(np.int32)
    args = (In(table), np.int32(n), In(queries), Out(m, "int32"), Out(m, "bool"), np.int32(m))
    expected = {3: where, 4: np.isin(queries, table)}
    return Case(
        kind.replace(" ", "_"),
        f"binary_search<{kind}>",
        (-(-m // 64), 1, 1),
        (64, 1, 1),
        args,
        expected,
    )
