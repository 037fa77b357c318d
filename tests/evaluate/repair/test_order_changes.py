"""Statements in the wrong order, and in the wrong place beside or in a loop."""

from __future__ import annotations

import pytest

from evoengine.evaluate.repair.change_order import kernel_code, ordered_changes
from evoengine.evaluate.repair.switched_change import switched
from tests.evaluate.repair.mistaken_statements import assert_mended, kernel, kinds, repairing

# kind of change, the wrong statements, the right ones, what is said
MISTAKES = [
    (
        "statements in the wrong order",
        "float mean = 0.0f, squares = 0.0f; for (int i = 0; i < N; ++i) { squares += "
        "(x[i] - mean) * 2.0f; mean += x[i]; } out[t] = squares;",
        "float mean = 0.0f, squares = 0.0f; for (int i = 0; i < N; ++i) { mean += x[i]; "
        "squares += (x[i] - mean) * 2.0f; } out[t] = squares;",
        "two statements are in the wrong order",
    ),
    (
        "statements in the wrong order",
        "tile[t] = x[t]; out[t] = tile[127 - t]; __syncthreads();",
        "tile[t] = x[t]; __syncthreads(); out[t] = tile[127 - t];",
        "two statements are in the wrong order",
    ),
    (
        "parts in the wrong order",
        "float a = 0.0f, b = 1.0f; if (x[t] > a) a = x[t], b *= expf(a - x[t]); out[t] = b;",
        "float a = 0.0f, b = 1.0f; if (x[t] > a) b *= expf(a - x[t]), a = x[t]; out[t] = b;",
        "a value is overwritten before it is used",
    ),
    (
        "parts in the wrong order",
        "float a = 0.0f, b = 1.0f, c = 2.0f; c = x[t], b = c, a = b; out[t] = a;",
        "float a = 0.0f, b = 1.0f, c = 2.0f; a = b, b = c, c = x[t]; out[t] = a;",
        "in the wrong order",
    ),
    (
        "statement moved over others",
        "float a = 0.0f, b = 1.0f; a = x[t]; b = a + 1.0f; out[t] = b; a = b;",
        "float a = 0.0f, b = 1.0f; a = b; a = x[t]; b = a + 1.0f; out[t] = b;",
        "too late (behind statements",
    ),
    (
        "statement before or behind a block",
        "float a = 0.0f; if (t < C) { out[t] = a; } a = x[t];",
        "float a = 0.0f; a = x[t]; if (t < C) { out[t] = a; }",
        "too late (behind statements",
    ),
    (
        "statement before or behind a block",
        "float a = x[t]; a *= 2.0f; for (int i = 0; i < N; ++i) { a += x[i]; } out[t] = a;",
        "float a = x[t]; for (int i = 0; i < N; ++i) { a += x[i]; } a *= 2.0f; out[t] = a;",
        "too early (before statements",
    ),
    (
        "statement before or behind a block",
        "float a = x[t]; for (int i = 0; i < N; ++i) out[i] = a; if (t < C) a = x[N];",
        "float a = x[t]; if (t < C) a = x[N]; for (int i = 0; i < N; ++i) out[i] = a;",
        "too late (behind statements",
    ),
    (
        "statement of each round",
        "tile[t] = 0.0f; for (int i = 0; i < N; ++i) { tile[t] += x[i]; out[i] = tile[t]; }",
        "for (int i = 0; i < N; ++i) { tile[t] = 0.0f; tile[t] += x[i]; out[i] = tile[t]; }",
        "must be done in each of its rounds",
    ),
    (
        "statement in a block",
        "float a = 0.0f; for (int i = 0; i < N; ++i) { a += x[i]; a *= 0.5f; } out[t] = a;",
        "float a = 0.0f; for (int i = 0; i < N; ++i) { a += x[i]; } a *= 0.5f; out[t] = a;",
        "belongs behind it",
    ),
    (
        "statement in a block",
        "if (t < C) { tile[t] = x[t]; __syncthreads(); } out[t] = tile[0];",
        "if (t < C) { tile[t] = x[t]; } __syncthreads(); out[t] = tile[0];",
        "under a condition and belongs behind it",
    ),
]


@pytest.mark.parametrize(("kind", "wrong", "right", "said"), MISTAKES)
def test_the_change_is_known_and_told(kind: str, wrong: str, right: str, said: str) -> None:
    assert_mended(kind, wrong, right, said)


def test_statements_that_have_nothing_in_common_are_not_exchanged() -> None:
    found = kinds("float a = 0.0f, b = 1.0f; a = x[t]; b = x[N];")
    assert "statements in the wrong order" not in found


def test_a_statement_that_is_moved_is_chosen_while_the_kernel_runs() -> None:
    wrong = kernel("float a = 0.0f; if (t < C) { out[t] = a; } a = x[t];")
    moved = [it for it, _ in ordered_changes(wrong) if it.kind.startswith("statement before")]
    assert moved and all(switched(kernel_code(wrong), it) is not None for it in moved)


def test_what_is_declared_is_not_used_before() -> None:
    found = kinds("float a = x[t]; a += 1.0f; out[t] = a;")
    changes = repairing(
        kernel("float a = x[t]; a += 1.0f; out[t] = a;"),
        kernel("a += 1.0f; float a = x[t]; out[t] = a;"),
    )
    assert "statements in the wrong order" in found
    assert not [it for it in changes if it.kind == "statements in the wrong order"]
