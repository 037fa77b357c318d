"""Kernels that print, fail and sleep without end: they cost no more than their loops, and say what ended them."""

from __future__ import annotations

from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    "body",
    [
        'for (int k = 0; k < 256; ++k) printf("thread %d says %d\\n", i, k);',  # 16 million lines
        'for (int k = 0; k < 256; ++k) printf("%s", "");',
        "for (int k = 0; k < 256; ++k) __nanosleep(1000000);",
        "printf(raw, i);",
        'printf("%s %s %n %*d %", (const char*)0x10, (const char*)(out + 65536), (int*)0x18, 1 << 30, i);',
        'char text[64]; for (char& c : text) c = i % 26 + 65; printf("%s", text);',
    ],
    ids=["printf", "printf of nothing", "nanosleep", "format without end", "junk pointers", "string without end"],
)
def test_a_right_kernel_stays_right_however_much_it_says(body: str, tmp_path: Path) -> None:
    (verdict,) = judged(tmp_path, "double", SOURCE.replace("BODY", body))
    assert verdict.status is Status.correct, f"{verdict.reason}\n{verdict.detail[:2000]}"
    assert verdict.modelled


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ('for (;;) printf("on and on\\n");', Status.timeout, "out of fuel in a loop at line 12"),
        (f'for (int k = 0; k < 256; ++k) printf("%d\\n", k); {ASSERTION}', Status.crash, "assertion `x[i] > 1000` failed"),
        (ASSERTION, Status.crash, "assertion `x[i] > 1000` failed"),
        ('asm volatile("trap;");', Status.crash, "the kernel ended itself at line 12"),
    ],
    ids=["printf without end", "assertion after a flood", "every thread asserts", "every thread traps"],
)
def test_a_flood_hides_neither_an_end_nor_its_reason(body: str, status: Status, says: str, tmp_path: Path) -> None:
    (verdict,) = judged(tmp_path, "double", SOURCE.replace("BODY", body))
    assert (verdict.status, says in verdict.reason) == (status, True), verdict.reason
