"""Flags in shared memory order the warps of a block, as fences and the accesses to a flag say."""

from __future__ import annotations

import pytest

from tests.emulator.check.described_kernel import described

WRITE_FLAG = 'asm volatile("st.release.cta.shared.u32 [%0], 1;" ::"r"(AT(&count)) : "memory");'
READ_FLAG = (
    "unsigned v; do asm volatile("
    '"ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(v) : "r"(AT(&count)) : "memory"); while (!v);'
)
HEAD = """
#define AT(p) (unsigned)__cvta_generic_to_shared(p)
extern "C" __global__ void k(float* a) {
    __shared__ float data[64];
    __shared__ volatile float seen[64];
    __shared__ volatile int flag, empty;
    __shared__ int count;
    const int t = threadIdx.x, lane = t % 32;
    if (t == 0) { flag = 0; empty = 1; count = 0; }
    __syncthreads();
"""
ORDERED = {
    "release and acquire": f"""
        if (t < 32) {{ data[lane] = lane; __syncwarp(); if (lane == 0) {{ {WRITE_FLAG} }} }}
        else {{ if (lane == 0) {{ {READ_FLAG} }} __syncwarp(); a[lane] = data[lane]; }}""",
    "fences and a volatile flag": """
        if (t < 32) { data[lane] = lane; __threadfence_block(); __syncwarp(); if (lane == 0) flag = 1; }
        else { while (flag == 0); __threadfence_block(); a[lane] = data[lane]; }""",
    "a fence of the lane that writes the flag": """
        if (t < 32) { data[lane] = lane; __syncwarp(); if (lane == 0) { __threadfence_block(); flag = 1; } }
        else { while (flag == 0); a[lane] = data[lane]; }""",
    "what one lane writes behind the others": """
        if (t == 0) { data[0] = 1; __threadfence_block(); flag = 1; }
        if (t >= 32) { while (flag == 0); a[lane] = data[0]; }""",
    "a fence of the device and atomic operations": """
        if (t < 32) { data[lane] = lane; __threadfence(); __syncwarp(); if (lane == 0) atomicAdd(&count, 1); }
        else { if (lane == 0) while (atomicAdd(&count, 0) == 0); __syncwarp(); a[lane] = data[lane]; }""",
    "all lanes count themselves": """
        if (t < 32) { data[lane] = lane; __threadfence_block(); atomicAdd(&count, 1); }
        else { while (*(volatile int*)&count < 32); a[lane] = data[lane]; }""",
    "the last warp adds": """
        data[t] = t; __threadfence_block(); __syncwarp();
        int before = 0;
        if (lane == 0) before = atomicAdd(&count, 1);
        if (__shfl_sync(~0u, before, 0) == 1) a[lane] = data[lane] + data[lane + 32];""",
    "half a warp": """
        if (t < 16) { data[lane] = lane; __syncwarp(0xffff); __threadfence_block(); if (lane == 0) flag = 1; }
        if (t >= 32) { while (flag == 0); a[lane] = data[lane % 16]; }""",
    "a place that is filled again once it is empty": """
        for (int i = 0; i < 4; ++i)
            if (t < 32) {
                if (lane == 0) while (empty == 0);
                __syncwarp();
                data[lane] = lane + i; __threadfence_block(); __syncwarp();
                if (lane == 0) { empty = 0; flag = i + 1; }
            } else {
                if (lane == 0) while (flag <= i);
                __syncwarp();
                a[lane] = data[lane]; __threadfence_block(); __syncwarp();
                if (lane == 0) empty = 1;
            }""",
    "by way of a third warp": """
        if (t == 0) { data[0] = 1; __threadfence_block(); flag = 1; }
        if (t == 32) { while (flag == 0); __threadfence_block(); empty = 2; }
        if (t == 64) { while (empty != 2); a[0] = data[0]; }""",
    "words of many atomic operations before it": """
        __shared__ int counts[6000];
        for (int i = t; i < 6000; i += 64) counts[i] = 0;
        __syncthreads();
        if (t < 32) {
            __threadfence_block();
            for (int i = lane; i < 6000; i += 32) atomicAdd(counts + i, 1);
            data[lane] = lane; __threadfence_block(); __syncwarp();
            if (lane == 0) flag = 1;
        } else { while (flag == 0); a[lane] = data[lane]; }""",
}
UNORDERED = {
    "no fence": """
        if (t < 32) { data[lane] = lane; __syncwarp(); if (lane == 0) flag = 1; }
        else { while (flag == 0); a[lane] = data[lane]; }""",
    "the other lanes may still write": """
        if (t < 32) { data[lane] = lane; __threadfence_block(); if (lane == 0) flag = 1; }
        else { while (flag == 0); a[lane] = data[lane]; }""",
    "data behind the fence": """
        if (t < 32) { __threadfence_block(); data[lane] = lane; __syncwarp(); if (lane == 0) flag = 1; }
        else { while (flag == 0); a[lane] = data[lane]; }""",
    "data behind the flag": """
        if (t == 0) { __threadfence_block(); flag = 1; data[0] = 1; }
        if (t >= 32) { while (flag == 0); a[lane] = data[0]; }""",
    "nothing is waited for": """
        if (t < 32) { data[lane] = lane; __threadfence_block(); __syncwarp(); if (lane == 0) flag = 1; }
        else { a[lane] = data[lane]; }""",
    "a plain flag": """
        if (t < 32) { data[lane] = lane; __threadfence_block(); __syncwarp(); if (lane == 0) count = 1; }
        else { while (*(volatile int*)&count == 0); a[lane] = data[lane]; }""",
    "volatile data": """
        seen[t] = t;
        a[t] = seen[t ^ 32];""",
    "lanes of a warp": """
        if (t < 32) { seen[t] = t; if (lane < 16) seen[t] = seen[t] + seen[t + 16]; a[t] = seen[t]; }""",
}


@pytest.mark.parametrize("kernel", ORDERED.values(), ids=ORDERED)
def test_a_flag_orders_what_is_fenced_before_it(kernel: str) -> None:
    assert described(f"{HEAD}{kernel}\n}}", "k", threads=96 if "t == 64" in kernel else 64) == []


@pytest.mark.parametrize("kernel", UNORDERED.values(), ids=UNORDERED)
def test_what_no_fence_or_no_flag_orders_is_a_race(kernel: str) -> None:
    found = described(f"{HEAD}{kernel}\n}}", "k", threads=64)
    assert any(finding.startswith("race: ") for finding in found)
