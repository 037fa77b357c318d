"""Kernels that print, fail and sleep without end: they cost no more than their loops, and say what
ended them.
"""

from __future__ import annotations

from pathlib import Path

from evoengine.records import Status
from tests.evaluate.worker.emulated.judging import judged

SOURCE = """/* evoengine
name: floods
precision: exact
launches:
  - {kernel: twice, grid: ["N // 256"], block: [256], args: [x, out]}
*/
#include <cassert>
__device__ char raw[4] = {'%', 'd', 'e', 's'};  // without a zero
extern "C" __global__ void twice(const int* x, int* out) {
  int i = blockIdx.x * 256 + threadIdx.x;
  out[i] = 2 * x[i];
  BODY
}
"""
ASSERTION = "assert(x[i] > 1000);"


RIGHT = {
    # 16 million lines
    "printf": 'for (int k = 0; k < 256; ++k) printf("thread %d says %d\\n", i, k);',
    "printf of nothing": 'for (int k = 0; k < 256; ++k) printf("%s", "");',
    "nanosleep": "for (int k = 0; k < 256; ++k) __nanosleep(1000000);",
    "format without end": "printf(raw, i);",
    "junk pointers": (
        'printf("%s %s %n %*d %", (const char*)0x10, (const char*)(out + 65536), (int*)0x18, 1 <<'
        " 30, i);"
    ),
    "string without end": (
        'char text[64]; for (char& c : text) c = i % 26 + 65; printf("%s", text);'
    ),
}
WRONG = {
    "printf without end": ('for (;;) printf("on and on\\n");', Status.timeout, "out of fuel in a loop at line 12"),
    "assertion after a flood": (
        f'for (int k = 0; k < 256; ++k) printf("%d\\n", k); {ASSERTION}', Status.crash, "assertion `x[i] > 1000` failed",
    ),
    "runs away through memory": (
        "for (int k = i; k < 65536; k -= 256) out[k] = 2 * x[k];", Status.fault, "out of bounds",
    ),
    "every thread asserts": (ASSERTION, Status.crash, "assertion `x[i] > 1000` failed"),
    "every thread traps": ('asm volatile("trap;");', Status.crash, "the kernel trapped at line 12"),
}  # fmt: skip


def test_a_right_kernel_stays_right_however_much_it_says(tmp_path: Path) -> None:
    verdicts = judged(
        tmp_path, "double", *(SOURCE.replace("BODY", body) for body in RIGHT.values())
    )
    wrong = {
        name: verdict.reason
        for name, verdict in zip(RIGHT, verdicts, strict=True)
        if verdict.status is not Status.correct
    }
    assert wrong == {}
    assert all(verdict.modelled for verdict in verdicts)


def test_a_flood_hides_neither_an_end_nor_its_reason(tmp_path: Path) -> None:
    verdicts = judged(
        tmp_path, "double", *(SOURCE.replace("BODY", body) for body, _, _ in WRONG.values())
    )
    for (name, (_, status, says)), verdict in zip(WRONG.items(), verdicts, strict=True):
        assert (verdict.status, says in verdict.reason) == (
            status,
            True,
        ), f"{name}: {verdict.reason}"
