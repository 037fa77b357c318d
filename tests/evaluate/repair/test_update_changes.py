"""Running values that lack an update, and loops that do not end, are known and said in words."""

from __future__ import annotations

import pytest

from tests.evaluate.repair.mistaken_statements import assert_mended, kinds

# kind of change, the wrong statements, the right ones, what is said
MISTAKES = [
    (
        "update by what nothing reads missing",
        "int wanted = C, found = 0; for (int i = 0; i < N; ++i) { found = counter[i]; "
        "counter[i] = wanted; }",
        "int wanted = C, found = 0; for (int i = 0; i < N; ++i) { found = counter[i]; "
        "counter[i] = wanted; wanted -= found; }",
        "nothing reads found",
    ),
    (
        "update by what nothing reads missing",
        "Pair now = {x[t], x[N]}; for (int i = 0; i < N; ++i) { Pair ahead = {x[i], x[i "
        "+ 1]}; out[i] = now.sum; }",
        "Pair now = {x[t], x[N]}; for (int i = 0; i < N; ++i) { Pair ahead = {x[i], x[i "
        "+ 1]}; out[i] = now.sum; now = ahead; }",
        "nothing reads ahead",
    ),
    (
        "flag that ends nothing",
        "for (int i = 0; i < N; ++i) { const bool done = x[i] > 0.0f; out[i] = x[i]; }",
        "for (int i = 0; i < N; ++i) { const bool done = x[i] > 0.0f; out[i] = x[i]; if "
        "(done) break; }",
        "the loop does not end where it must",
    ),
    (
        "flag that ends no loop",
        "int own = 0; for (int i = 0; i < N; ++i) { const unsigned whole = "
        "__ballot_sync(~0u, x[i] > 0.0f); own += __popc(whole); }  counter[t] = own;",
        "int own = 0; for (int i = 0; i < N; ++i) { const unsigned whole = "
        "__ballot_sync(~0u, x[i] > 0.0f); own += __popc(whole); if (whole) break; }  "
        "counter[t] = own;",
        "it goes on and takes what must not count",
    ),
    (
        "rescaling by a new maximum missing",
        "float top = -1e30f, sum = 0.0f; for (int i = 0; i < N; ++i) { const float "
        "larger = fmaxf(top, x[i]); sum += __expf(x[i] - larger); top = larger; } out[t] "
        "= sum;",
        "float top = -1e30f, sum = 0.0f; for (int i = 0; i < N; ++i) { const float "
        "larger = fmaxf(top, x[i]); sum *= __expf(top - larger); sum += __expf(x[i] - "
        "larger); top = larger; } out[t] = sum;",
        "is not rescaled (not corrected) when the maximum grows",
    ),
    (
        "rescaling by a new maximum missing",
        "float top = -1e30f, sum = 0.0f; for (int i = 0; i < N; ++i) { const float v = "
        "x[i]; if (v > top) top = v; sum += exp2f(v - top); } out[t] = sum;",
        "float top = -1e30f, sum = 0.0f; for (int i = 0; i < N; ++i) { const float v = "
        "x[i]; if (v > top) sum *= exp2f(top - v), top = v; sum += exp2f(v - top); } "
        "out[t] = sum;",
        "is not rescaled (not corrected) when the maximum grows",
    ),
    (
        "rescaling of a sum missing",
        "float sum[2] = {}; for (int i = 0; i < N; ++i) { const float factor = "
        "__expf(x[i]); sum[0] += x[i]; out[i] = factor; } out[t] = sum[0];",
        "float sum[2] = {}; for (int i = 0; i < N; ++i) { const float factor = "
        "__expf(x[i]); sum[0] = sum[0] * factor + (x[i]); out[i] = factor; } out[t] = "
        "sum[0];",
        "is not rescaled",
    ),
    (
        "statement of the neighbour missing",
        "float kept[8] = {}; for (int i = 0; i < 4; ++i) { kept[2 * i] *= x[i]; } out[t] "
        "= kept[1];",
        "float kept[8] = {}; for (int i = 0; i < 4; ++i) { kept[2 * i] *= x[i]; kept[2 * "
        "i + 1] *= x[i]; } out[t] = kept[1];",
        "only every second element",
    ),
    (
        "reduction missing",
        "float sum = 0.0f; for (int c = t; c < C; c += 32) sum += x[c]; float other = "
        "warp_sum(x[t]); out[t] = sum * other;",
        "float sum = 0.0f; for (int c = t; c < C; c += 32) sum += x[c]; sum = "
        "warp_sum(sum); float other = warp_sum(x[t]); out[t] = sum * other;",
        "is not reduced over the lanes",
    ),
    (
        "reduction missing",
        "float top = 0.0f, sum = x[t]; for (int c = t; c < C; c += 32) top = fmaxf(top, "
        "x[c]); sum += __shfl_xor_sync(~0u, sum, 1); out[t] = sum * top;",
        "float top = 0.0f, sum = x[t]; for (int c = t; c < C; c += 32) top = fmaxf(top, "
        "x[c]); top = fmaxf(top, __shfl_xor_sync(~0u, top, 1)); sum += "
        "__shfl_xor_sync(~0u, sum, 1); out[t] = sum * top;",
        "is not reduced over the lanes",
    ),
    (
        "mean not taken",
        "float2 sum = make_float2(0.0f, 0.0f); for (int i = 0; i < 8; ++i) { sum.x += "
        "x[i]; sum.y += x[i + 8]; } out[t] = x[t] - sum.x * sum.y;",
        "float2 sum = make_float2(0.0f, 0.0f); for (int i = 0; i < 8; ++i) { sum.x += "
        "x[i]; sum.y += x[i + 8]; } sum.x /= C, sum.y /= C; out[t] = x[t] - sum.x * "
        "sum.y;",
        "sums are used in place of means",
    ),
]


@pytest.mark.parametrize(("kind", "wrong", "right", "said"), MISTAKES)
def test_the_change_is_known_and_told(kind: str, wrong: str, right: str, said: str) -> None:
    assert_mended(kind, wrong, right, said)


def test_what_a_function_reduces_already_is_not_reduced_again() -> None:
    found = kinds(
        "float sum = 0.0f; for (int c = t; c < C; c += 32) sum += x[c]; out[t] = warp_sum(sum);"
    )
    assert "reduction missing" not in found


def test_a_flag_that_is_read_ends_nothing_more() -> None:
    found = kinds("for (int i = 0; i < N; ++i) { const bool done = x[i] > 0.0f; if (done) break; }")
    assert not {"flag that ends nothing", "flag that ends no loop"} & found
