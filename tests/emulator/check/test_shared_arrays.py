"""Findings in shared memory name the array, as in the source."""

from __future__ import annotations

import pytest

from evoengine.emulator.check.shared_arrays import shared_array, source_name
from tests.emulator.check.described_kernel import described

KERNEL = """
__device__ float first(float x) {
    __shared__ float kept[32];
    kept[threadIdx.x % 32] = x;
    __syncthreads();
    return kept[5];
}
template <int D> __global__ void k(float* out) {
    __shared__ float keys[64], values[D];
    extern __shared__ float more[];
    keys[threadIdx.x] = first(1);
    values[threadIdx.x] = 2;
    more[threadIdx.x] = 3;
    RACE
    out[threadIdx.x] = keys[63 - threadIdx.x];
}"""


@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        ("_ZZ1kILi64EEvPfE4keys", "keys"),
        ("_ZZ1ffE4keys_0", "keys"),
        ("_ZZ6attendPK6__halfE6peak_4", "peak_4"),
        ("more", "more"),
        ("_Z4mine", ""),
        ("_ZZ1ffE9keys", ""),
    ],
)
def test_the_name_is_that_of_the_source(mangled: str, name: str) -> None:
    assert source_name(mangled) == name


def test_the_array_is_the_last_that_begins_before() -> None:
    offsets = {"_ZZ1fvE1a": 0, "_ZZ1fvE1b": 128, "more": 256}
    assert [shared_array(at, offsets) for at in (0, 127, 128, 300)] == ["a", "a", "b", "more"]
    assert shared_array(5, {}) == ""


def test_a_race_names_the_array() -> None:
    said = described(KERNEL.replace("RACE", ""), "k<64>", 64, shared_bytes=256)
    assert any(
        "no __syncthreads() between" in line and " of keys (shared+" in line for line in said
    )
