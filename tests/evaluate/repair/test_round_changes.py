"""Running values that begin anew in each round of a loop or are kept, and arrays that are cleared."""

from __future__ import annotations

import pytest

from evoengine.evaluate.repair.change_order import ordered_changes
from tests.evaluate.repair.mistaken_statements import assert_mended, kernel, kinds, sentence

# kind of change, the wrong statements, the right ones, what is said
MISTAKES = [
    (
        "begin of each round missing",
        "float sum = 0.0f, top = -1e30f; for (int i = 0; i < N; ++i) { for (int c = 0; c "
        "< C; ++c) { sum += x[c]; top = fmaxf(top, x[c]); } out[i] = sum / top; }",
        "float sum = 0.0f, top = -1e30f; for (int i = 0; i < N; ++i) { sum = 0.0f; top = "
        "-1e30f; for (int c = 0; c < C; ++c) { sum += x[c]; top = fmaxf(top, x[c]); } "
        "out[i] = sum / top; }",
        "not set back (not reset, not begun anew) in each round",
    ),
    (
        "begin of a sum missing",
        "float sum = 0.0f; for (int c = t; c < C; c += 128) sum += x[c]; tile[t] = sum; "
        "for (int w = 0; w < 4; ++w) sum += tile[w]; out[0] = sum;",
        "float sum = 0.0f; for (int c = t; c < C; c += 128) sum += x[c]; tile[t] = sum; "
        "sum = 0.0f; for (int w = 0; w < 4; ++w) sum += tile[w]; out[0] = sum;",
        "is counted twice",
    ),
    (
        "state begun in each round",
        "for (int i = 0; i < N; ++i) { float last = 0.0f, kept = 1.0f; last = last * "
        "kept + x[i]; kept = last; out[i] = last; }",
        "float last = 0.0f, kept = 1.0f; for (int i = 0; i < N; ++i) { last = last * "
        "kept + x[i]; kept = last; out[i] = last; }",
        "the running state begins anew in each round",
    ),
    (
        "begin missing",
        "float sums[4]; for (int i = 0; i < N; ++i) { sums[0] += x[i]; } out[t] = sums[0];",
        "float sums[4] = {}; for (int i = 0; i < N; ++i) { sums[0] += x[i]; } out[t] = sums[0];",
        "they are not initialised",
    ),
    (
        "value not written back",
        "for (int i = 0; i < N; ++i) { __syncthreads(); float sum = tile[t]; sum += "
        "x[i]; out[i] = sum; }",
        "for (int i = 0; i < N; ++i) { __syncthreads(); float sum = tile[t]; sum += "
        "x[i]; out[i] = sum; tile[t] = sum; }",
        "is not written back",
    ),
    (
        "value that never changes",
        "int turn = 0; for (int i = 0; i < N; ++i) { tile[turn * 64] = x[i]; out[i] = "
        "tile[turn * 64]; }",
        "int turn = 0; for (int i = 0; i < N; ++i) { tile[turn * 64] = x[i]; out[i] = "
        "tile[turn * 64]; turn ^= 1; }",
        "turn is never changed (not updated, advanced or toggled)",
    ),
    (
        "value that never changes",
        "float top = -1e30f, sum = 0.0f; for (int i = 0; i < N; ++i) { const float next "
        "= fmaxf(top, x[i]); sum = sum * expf(top - next) + expf(x[i] - next); } out[t] "
        "= sum;",
        "float top = -1e30f, sum = 0.0f; for (int i = 0; i < N; ++i) { const float next "
        "= fmaxf(top, x[i]); sum = sum * expf(top - next) + expf(x[i] - next); top = "
        "next; } out[t] = sum;",
        "every round of the loop uses its first value",
    ),
]


@pytest.mark.parametrize(("kind", "wrong", "right", "said"), MISTAKES)
def test_the_change_is_known_and_told(kind: str, wrong: str, right: str, said: str) -> None:
    assert_mended(kind, wrong, right, said)


def test_what_only_adds_up_in_a_loop_does_not_begin_anew() -> None:
    found = kinds(
        "float sum = 0.0f; for (int c = t; c < C; c += 128) { sum += x[c]; } out[t] = sum;"
    )
    assert "begin of each round missing" not in found


def test_constants_are_not_changed() -> None:
    found = kinds("const int turn = 0; for (int i = 0; i < N; ++i) { out[i] = x[turn]; }")
    assert "value that never changes" not in found


def test_what_depends_on_the_round_is_not_kept_over_it() -> None:
    found = kinds("for (int i = 0; i < N; ++i) { float own = x[i]; own += 1.0f; out[i] = own; }")
    assert "state begun in each round" not in found


@pytest.mark.parametrize(
    "body",
    [
        "atomicAdd(&bins[t & 15], 1); __syncthreads(); counter[t] = bins[t & 15];",
        "for (int i = 0; i < N; ++i) { if (x[i] > 0.0f) bins[i & 15] = i; counter[i] = bins[t & 15]; }",
    ],
)
def test_shared_arrays_are_cleared(body: str) -> None:
    wrong = kernel(body)
    changes = [it for it, _ in ordered_changes(wrong) if it.kind == "array not cleared"]
    assert any("sizeof(bins)" in it.new for it in changes)
    assert "bins in shared memory is not cleared" in sentence(wrong, changes[0])
