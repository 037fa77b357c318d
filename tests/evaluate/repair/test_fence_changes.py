"""Fences, barriers, commits and waits that are missing where memory is shared."""

from __future__ import annotations

import pytest

from tests.evaluate.repair.mistaken_statements import assert_mended, kinds

# kind of change, the wrong statements, the right ones, what is said
MISTAKES = [
    (
        "fence missing",
        "if (t == 0) { out[blockIdx.x] = x[t]; count = atomicAdd(counter, 1) == N - 1; }",
        "if (t == 0) { out[blockIdx.x] = x[t]; __threadfence(); count = "
        "atomicAdd(counter, 1) == N - 1; }",
        "a fence (__threadfence) is missing",
    ),
    (
        "barrier missing, of a warp",
        "tile[t] = x[t]; out[t] = tile[127 - t];",
        "tile[t] = x[t]; __syncwarp(); out[t] = tile[127 - t];",
        "__syncwarp() is missing",
    ),
    (
        "barrier missing, between uses",
        "reinterpret_cast<float4*>(tile)[lane] = make_float4(0.0f, 0.0f, 0.0f, 0.0f); "
        "out[t] = tile[127 - t];",
        "reinterpret_cast<float4*>(tile)[lane] = make_float4(0.0f, 0.0f, 0.0f, 0.0f); "
        "__syncthreads(); out[t] = tile[127 - t];",
        "a barrier is missing",
    ),
    (
        "barrier missing, between uses",
        "tile[t] = x[t]; out[t] = tile[127 - t];",
        "tile[t] = x[t]; __syncthreads(); out[t] = tile[127 - t];",
        "a barrier is missing",
    ),
    (
        "barrier missing, between uses",
        "for (int i = 0; i < N; ++i) { tile[t] = x[i]; __syncthreads(); out[t] = tile[127 - t]; }",
        "for (int i = 0; i < N; ++i) { tile[t] = x[i]; __syncthreads(); out[t] = "
        "tile[127 - t]; __syncthreads(); }",
        "a barrier is missing",
    ),
    (
        "commit missing",
        "for (int i = 0; i < N; ++i) { if (i + 1 < N) tile[t] = x[i]; asm "
        'volatile("cp.async.wait_group 1;" ::: "memory"); } asm '
        'volatile("cp.async.commit_group;" ::: "memory");',
        "for (int i = 0; i < N; ++i) { if (i + 1 < N) tile[t] = x[i]; if (!(i + 1 < N)) "
        'asm volatile("cp.async.commit_group;" ::: "memory"); asm '
        'volatile("cp.async.wait_group 1;" ::: "memory"); } asm '
        'volatile("cp.async.commit_group;" ::: "memory");',
        "a group of copies is not committed in every round",
    ),
    (
        "wait for copies missing",
        "__pipeline_memcpy_async(tile + t, x + t, 4); __pipeline_commit(); "
        "__syncthreads(); out[t] = tile[127 - t];",
        "__pipeline_memcpy_async(tile + t, x + t, 4); __pipeline_commit(); "
        "__pipeline_wait_prior(0); __syncthreads(); out[t] = tile[127 - t];",
        "asynchronous copies are not waited for",
    ),
]


@pytest.mark.parametrize(("kind", "wrong", "right", "said"), MISTAKES)
def test_the_change_is_known_and_told(kind: str, wrong: str, right: str, said: str) -> None:
    assert_mended(kind, wrong, right, said)


def test_without_shared_counters_and_copies_there_are_no_fences() -> None:
    found = kinds("float a = x[t]; a += 1.0f; out[t] = a;")
    assert not {"fence missing", "commit missing", "wait for copies missing"} & found


def test_no_second_barrier_beside_one() -> None:
    found = kinds("tile[t] = x[t]; __syncthreads(); out[t] = tile[127 - t];")
    assert "barrier missing, between uses" not in found
