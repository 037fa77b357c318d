"""Who does a statement: one thread, one of each warp, or all by atomic operations."""

from __future__ import annotations

import pytest

from evoengine.evaluate.repair.change_order import ordered_changes
from tests.evaluate.repair.mistaken_statements import assert_mended, kernel, kinds

# kind of change, the wrong statements, the right ones, what is said
MISTAKES = [
    (
        "one of each warp",
        "float v = x[t]; if (threadIdx.x == 0) atomicAdd(out, v);",
        "float v = x[t]; if (threadIdx.x % 32 == 0) atomicAdd(out, v);",
        "only one thread of the block does it",
    ),
    (
        "one of each warp",
        "float v = x[t]; if (t % 32 == 0) atomicAdd(out, v);",
        "float v = x[t]; if (t == 0) atomicAdd(out, v);",
        "one thread of each warp does it",
    ),
    (
        "one of them alone",
        "const int part = t & 7; float sum = 0.0f; for (int i = 0; i < N; ++i) { sum += "
        "x[i]; } out[part] = sum;",
        "const int part = t & 7; float sum = 0.0f; for (int i = 0; i < N; ++i) { if "
        "(part == 0) sum += x[i]; } out[part] = sum;",
        "every lane (thread) does what one of them should",
    ),
    (
        "atomic operation missing",
        "count += counter[t];",
        "atomicAdd(&count, counter[t]);",
        "it is not atomic",
    ),
    (
        "atomic operation missing",
        "++bins[t & 15];",
        "atomicAdd(&bins[t & 15], 1);",
        "it is not atomic",
    ),
    (
        "atomic operation missing",
        "count = max(count, counter[t]);",
        "atomicMax(&count, counter[t]);",
        "it is not atomic",
    ),
    (
        "atomic operation of another kind",
        "int seen = *counter; if (t > seen) atomicExch(counter, t);",
        "int seen = *counter; while (t > seen) { const int found = atomicCAS(counter, "
        "seen, t); if (found == seen) break; seen = found; }",
        "an exchange overwrites what another thread may have stored",
    ),
    (
        "companion of a shuffle missing",
        "float top = x[t]; int place = t; for (int step = 16; step; step /= 2) { const "
        "float other = __shfl_xor_sync(~0u, top, step); take(top, place, other, place); "
        "} counter[t] = place;",
        "float top = x[t]; int place = t; for (int step = 16; step; step /= 2) { const "
        "float other = __shfl_xor_sync(~0u, top, step); take(top, place, other, "
        "__shfl_xor_sync(~0u, place, step)); } counter[t] = place;",
        "is not exchanged along (not shuffled)",
    ),
    (
        "last ones left out",
        "float even = 0.0f, odd = 0.0f; int i = 0; for (; i + 1 < N; i += 2) { even += "
        "x[i]; odd += x[i + 1]; } out[t] = even + odd;",
        "float even = 0.0f, odd = 0.0f; int i = 0; for (; i + 1 < N; i += 2) { even += "
        "x[i]; odd += x[i + 1]; } if (i < N) even += x[i]; out[t] = even + odd;",
        "the last ones are left out",
    ),
]


@pytest.mark.parametrize(("kind", "wrong", "right", "said"), MISTAKES)
def test_the_change_is_known_and_told(kind: str, wrong: str, right: str, said: str) -> None:
    assert_mended(kind, wrong, right, said)


def test_what_a_thread_has_for_itself_is_not_atomic() -> None:
    assert "atomic operation missing" not in kinds(
        "int own = 0; own += counter[t]; counter[t] = own;"
    )


def test_lanes_and_warps_are_left_as_they_are() -> None:
    assert "one of each warp" not in kinds("if (lane == 0) atomicAdd(out, x[t]);")


@pytest.mark.parametrize(
    ("declared", "is_asked"),
    [("const int part = t & 7", True), ("constexpr int part = 15 & 7", False)],
)
def test_what_all_threads_have_alike_chooses_none_of_them(declared: str, is_asked: bool) -> None:
    changes = ordered_changes(
        kernel(f"{declared}; float sum = 0.0f; sum += x[part]; out[t] = sum;")
    )
    asked = [change for change, _ in changes if "if (part == 0) sum +=" in change.new]
    assert bool(asked) is is_asked
