"""A race between two rounds says after which of its lines the barrier is missing."""

from __future__ import annotations

import pytest

from tests.emulator.check.described_kernel import described

KERNEL = """
__device__ __noinline__ float total(float value, float* slots) {
    if (threadIdx.x % 32 == 0)
        slots[threadIdx.x / 32] = value;
    INSIDE
    float sum = 0;
    for (int warp = 0; warp < 4; ++warp)
        sum += slots[warp];
    return sum;
}
extern "C" __global__ void k(float* out) {
    __shared__ float slots[4];
    const float first = total(1, slots);
    out[threadIdx.x] = total(first, slots);
}"""
BARRIER = "__syncthreads();"


@pytest.mark.parametrize(("inside", "is_later"), [(BARRIER, True), ("", False)])
def test_the_round_is_said_where_a_barrier_stands_between_the_lines(
    inside: str, is_later: bool
) -> None:
    found = described(KERNEL.replace("INSIDE", inside), "k", 128)
    races = [line for line in found if line.startswith("race")]
    assert races, found
    said = [line for line in races if "is of a later round" in line]
    assert bool(said) is is_later, races
    if is_later:
        assert any("a barrier is missing after the read at line 8" in line for line in said)
