"""What changes nothing is written alike, and nothing else."""

from __future__ import annotations

import pytest

from benchmarks.written_alike import form

ALIKE = [
    ("x = a + b * c;", "x = (c * b) + a;"),
    ("x += y;", "x = x + y;"),
    ("if (a) b += c;", "if (a) b = b + c;"),
    ("t = s + (a + (b + c));", "t = a + b + c + s;"),
    ("y = (x * 2) * z;", "y = x * 2 * z;"),
    ("1.0f / (sqrtf(v + eps))", "rsqrtf(eps + v)"),
    ("a[(i) ^ ((j % 8))]", "a[i ^ (j % 8)]"),
    ("f(a < b || c)", "f((c) || (a < b))"),
    ("i = size_t(row) * C;", "i = row * C;"),
    ("x = -INFINITY;", "x = __int_as_float(0xff800000);"),
    ("s += l; ; y = 0;", "s += l; y = 0;"),
    (" ++j) f(a + b);", " ++j) f(b + a);"),
]
APART = [
    ("x = a - b;", "x = b - a;"),
    ("x = y / (a * b);", "x = y / a * b;"),
    ("x = (a + b) * c;", "x = a + b * c;"),
    ("x = a - (b + c);", "x = a - b + c;"),
    (" ++j) f(a + b);", " ++j) f(a - b);"),
]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_what_changes_nothing_is_alike(one: str, other: str) -> None:
    assert form(one) == form(other)


@pytest.mark.parametrize(("one", "other"), APART)
def test_what_computes_something_else_is_not(one: str, other: str) -> None:
    assert form(one) != form(other)
