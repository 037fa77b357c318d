"""The layout of shared variables: as by ptxas 13.0 on an H100 for the same declarations, minus the
bytes that sm_90 reserves.
"""

from __future__ import annotations

import pytest

from evoengine.emulator.front.clang import compile_cuda
from evoengine.emulator.lower.layout import Layout, lay_out
from evoengine.emulator.ptx.inline import inline_calls
from evoengine.emulator.ptx.parser import parse

# volatile: clang keeps loads with unused results
INT, FIVE = (
    "__shared__ volatile int s; s = n",
    "__shared__ volatile char c[5]; c[n] = n",
)


def kernel(name: str, variables: str, *arrays: str) -> str:
    """A kernel that uses its static `variables` and the extern arrays, e.g. "char d[]"."""
    names = [array.partition("[")[0].split()[-1] for array in arrays]
    extern = "".join(f"extern __shared__ {array};" for array in arrays)
    stores = "".join(f"*(volatile char*)({item} + n) = n;" for item in names)
    return f'extern "C" __global__ void {name}(int n) {{ {variables}; {extern} {stores} }}\n'


def layout(source: str, name: str = "a") -> Layout:
    module = parse(compile_cuda(source, name="k.cu", macros={}, arch="sm_89", kernels=[name]).ptx)
    return lay_out(module, inline_calls(module, name))


@pytest.mark.parametrize(
    ("variables", "arrays", "places", "static"),
    [
        (INT, ["char d[]"], [16], 16),
        (FIVE, ["short d[]"], [16], 16),
        (INT, ["float4 d[]"], [16], 16),
        (INT, ["__align__(32) char d[]"], [32], 32),
        (INT, ["__align__(128) char d[]"], [128], 128),
        (INT, ["__align__(1024) char d[]"], [1024], 1024),
        ("__shared__ volatile int c[20]; c[n] = n", ["float d[]"], [80], 80),
        (INT, ["char d[]", "__align__(64) char e[]"], [16, 64], 64),
        (INT, ["__align__(64) char e[]", "char d[]"], [64, 16], 64),
        ("", ["__align__(1024) char d[]"], [0], 0),
    ],
)
def test_extern_arrays_begin_where_ptxas_has_them(
    variables: str, arrays: list[str], places: list[int], static: int
) -> None:
    found = layout(kernel("a", variables, *arrays))
    names = [array.partition("[")[0].split()[-1] for array in arrays]
    assert [found.shared[name] for name in names] == places
    assert found.static_shared == static


def test_static_bytes_are_rounded_for_an_array_that_only_another_kernel_uses() -> None:
    source = (
        kernel("a", INT, "float4 d[]")
        + kernel("b", INT, "__align__(128) char e[]")
        + kernel("none", "", "char g[]")
    )
    assert (layout(source).shared["d"], layout(source).static_shared) == (16, 128)
    assert (layout(source, "b").shared["e"], layout(source, "b").static_shared) == (128, 128)
    assert layout(source, "none").static_shared == 0


def test_static_variables_keep_their_own_alignment() -> None:
    variables = (
        "__shared__ volatile char c[3]; __shared__ volatile double q; __shared__ __align__(64)"
        " volatile char z[2];"
    )
    found = layout(kernel("a", f"{variables} c[n] = n; q = n; z[n] = n", "float d[]"))
    places = {name[-1]: place for name, place in found.shared.items()}
    assert sorted(places) == ["c", "d", "q", "z"]
    assert (places["q"] % 8, places["z"] % 64) == (0, 0)
    ends = [places["c"] + 3, places["q"] + 8, places["z"] + 2]
    assert places["d"] == found.static_shared == -(-max(ends) // 16) * 16
