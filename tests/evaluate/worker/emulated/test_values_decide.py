"""Checked mode reports what has an effect: not a second write of the same value, nor a read of
unwritten memory whose value is left out.
"""

from __future__ import annotations

from pathlib import Path

from evoengine.records import Status
from tests.evaluate.worker.emulated.judging import judged

HEADER = """/* evoengine
name: doubles
precision: exact
launches:
  - {kernel: k, grid: ["N // 256"], block: [256], args: [x, out]}
*/
extern "C" __global__ void k(const int* x, int* out) {
    __shared__ int tile[512];
    const int t = threadIdx.x, i = blockIdx.x * 256 + t;
    BODY
}
"""
FINE = {
    "two threads of a block write the same value": (
        "out[i] = 2 * x[i]; const int j = blockIdx.x * 256 + (t ^ 37); out[j] = 2 * x[j];"
    ),
    "a value that was never written is left out": (
        "tile[t] = x[i]; __syncthreads(); const volatile int* words = tile;"
        " const int a = words[t], b = words[t + 256]; out[i] = 2 * (t < 256 ? a : b);"
    ),
    "a value that was never written is copied and not used": (
        "tile[t] = x[i]; __syncthreads(); volatile int* words = tile;"
        " const int b = words[256 + t]; words[256 + t] = b; out[i] = 2 * words[t];"
    ),
    "local memory that was never written is copied": (
        "volatile int pair[2]; pair[0] = x[i]; volatile int copy[2]; copy[0] = pair[0];"
        " copy[1] = pair[1]; out[i] = 2 * copy[0];"
    ),
}
FAULTS = {
    "two threads of a block write different values": (
        "out[blockIdx.x * 256 + (t ^ 37)] = 0; out[i] = 2 * x[i];",
        "race: ",
    ),
    "two blocks write different values": (
        "out[(i + 256) % 65536] = 1; out[i] = 2 * x[i];",
        "race: ",
    ),
    "two blocks write the same value": (
        "out[i] = 2 * x[i]; const int j = (i + 256) % 65536; out[j] = 2 * x[j];",
        "race: ",
    ),
    "the last bytes of a vector differ": (
        "int4* rows = (int4*)out; if (t < 64) rows[blockIdx.x * 64 + t] = make_int4(1, 2, 3, t);"
        " if (t >= 192) rows[blockIdx.x * 64 + t - 192] = make_int4(1, 2, 3, t);"
        " __syncthreads(); out[i] = 2 * x[i];",
        "race: ",
    ),
    "a value that was never written is added": (
        "tile[t] = 0; __syncthreads(); const volatile int* words = tile;"
        " out[i] = 2 * x[i] + (words[t + 256] & 1);",
        "uninitialised: ",
    ),
    "a value that was never written decides which loop runs": (
        "const volatile int *words = tile, *values = x;"
        " if (words[t] > 0) for (int n = 0; n < 9; ++n) values[n];"
        " out[i] = 2 * x[i];",
        "uninitialised: ",
    ),
    "a value that was never written is an index": (
        "const volatile int *words = tile, *values = x; values[words[t]]; out[i] = 2 * x[i];",
        "uninitialised: ",
    ),
}


def test_what_has_no_effect_is_not_a_fault(tmp_path: Path) -> None:
    verdicts = judged(tmp_path, "double", *(HEADER.replace("BODY", body) for body in FINE.values()))
    assert dict(zip(FINE, [verdict.reason for verdict in verdicts], strict=True)) == dict.fromkeys(
        FINE, "correct on every case"
    )


def test_what_has_an_effect_is_a_fault(tmp_path: Path) -> None:
    sources = [HEADER.replace("BODY", body) for body, _ in FAULTS.values()]
    for (name, (_, begins)), verdict in zip(
        FAULTS.items(), judged(tmp_path, "double", *sources), strict=True
    ):
        assert verdict.status is Status.fault, (name, verdict.reason)
        assert verdict.reason.startswith(begins), (name, verdict.reason)
