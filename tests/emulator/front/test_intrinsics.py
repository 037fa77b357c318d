"""Functions that the headers implement in plain C++, against Python's integers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.emulator.corpus import Case, In, Kernel, Out
from tests.emulator.corpus_launch import launch
from tests.emulator.lower.small_kernels import emulator
from tests.emulator.narrow_formats import BFLOAT16, Array

ASSETS = Path(__file__).parent / "assets"


def launched(name: str, source: str, *args: In | Out, threads: int = 64) -> Array:
    """The last argument after a launch of one block."""
    case = Case("one_block", name, (1, 1, 1), (threads, 1, 1), args, {})
    return launch(emulator(), Kernel(name, source, (case,)), case).results[len(args) - 1]


def average(x: int, y: int) -> int:
    return (x + y) >> 1 if x + y < 0 else (x + y + 1) >> 1


# name -> whether the parts are signed, and what becomes of two of them; `low` and `high` are the
# ends of a part's type
VIDEO: dict[str, tuple[bool, Callable[[int, int, int, int], int]]] = {
    "vadd": (False, lambda x, y, low, high: x + y),
    "vaddss": (True, lambda x, y, low, high: min(max(x + y, low), high)),
    "vaddus": (False, lambda x, y, low, high: min(x + y, high)),
    "vsub": (False, lambda x, y, low, high: x - y),
    "vsubss": (True, lambda x, y, low, high: min(max(x - y, low), high)),
    "vsubus": (False, lambda x, y, low, high: max(x - y, 0)),
    "vabsdiffs": (True, lambda x, y, low, high: abs(x - y)),
    "vabsdiffu": (False, lambda x, y, low, high: abs(x - y)),
    "vavgs": (True, lambda x, y, low, high: average(x, y)),
    "vavgu": (False, lambda x, y, low, high: (x + y + 1) // 2),
    "vhaddu": (False, lambda x, y, low, high: (x + y) // 2),
    "vmaxs": (True, lambda x, y, low, high: max(x, y)),
    "vmaxu": (False, lambda x, y, low, high: max(x, y)),
    "vmins": (True, lambda x, y, low, high: min(x, y)),
    "vminu": (False, lambda x, y, low, high: min(x, y)),
    "vcmpeq": (False, lambda x, y, low, high: -(x == y)),
    "vcmpgts": (True, lambda x, y, low, high: -(x > y)),
    "vcmpgtu": (False, lambda x, y, low, high: -(x > y)),
    "vcmples": (True, lambda x, y, low, high: -(x <= y)),
    "vsetltu": (False, lambda x, y, low, high: x < y),
    "vsetges": (True, lambda x, y, low, high: x >= y),
    "vsetne": (False, lambda x, y, low, high: x != y),
}


def by_parts(
    a: int, b: int, count: int, signed: bool, what: Callable[[int, int, int, int], int]
) -> int:
    bits, result = 32 // count, 0
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    for shift in range(0, 32, bits):
        x, y = ((word >> shift & (1 << bits) - 1) for word in (a, b))
        x, y = (part - (1 << bits) if part > high else part for part in (x, y))
        result |= (int(what(x, y, low, high)) & (1 << bits) - 1) << shift
    return result


@pytest.mark.parametrize("count", [2, 4])
def test_video_instructions_work_on_every_part(count: int) -> None:
    random = np.random.default_rng(count)
    pieces = random.choice(np.array([0, 1, 0x7F, 0x80, 0x81, 0xFE, 0xFF, 0x20], np.uint8), (64, 8))
    a, b = (
        np.ascontiguousarray(half).view(np.uint32).reshape(-1)
        for half in (pieces[:, :4], pieces[:, 4:])
    )
    calls = "".join(
        f"out[i * {len(VIDEO)} + {k}] = __{name}{count}(a[i], b[i]);"
        for k, name in enumerate(VIDEO)
    )
    source = (
        "__global__ void video(const unsigned* a, const unsigned* b, unsigned* out) { int i ="
        f" threadIdx.x; {calls} }}"
    )
    got = launched("video", source, In(a), In(b), Out((64, len(VIDEO)), "uint32"))
    for k, (name, (signed, what)) in enumerate(VIDEO.items()):
        assert got[:, k].tolist() == [
            by_parts(int(x), int(y), count, signed, what) for x, y in zip(a, b, strict=True)
        ], name


def test_an_integer_becomes_bfloat16_in_one_rounding() -> None:
    # The first eight lie so near the middle of two bfloat16 numbers that float, on the way, makes
    # them the middle.
    near = [(257 << k) + by for k in (20, 21, 22) for by in (-1, 1)] + [
        -(257 << 22) - 1,
        (259 << 22) - 1,
    ]
    random = np.random.default_rng(3).integers(-(2**31), 2**31, 50).tolist()
    x = np.array([*near, *random, 0, 1, -1, 300, -(2**31), 2**31 - 1], np.int32)
    modes = ("rn", "rz", "rd", "ru")
    calls = "".join(
        f"out[i * 5 + {k}] = __int2bfloat16_{mode}(x[i]);" for k, mode in enumerate(modes)
    )
    source = f"""#include <cuda_bf16.h>
        __global__ void convert(const int* x, __nv_bfloat16* out) {{
            int i = threadIdx.x;
            {calls} out[i * 5 + 4] = __nv_bfloat16(x[i]);
        }}"""
    got = launched("convert", source, In(x), Out((64, 5), "bfloat16"))
    for k, mode in enumerate((*modes, "rn")):
        assert got[:, k].tolist() == BFLOAT16.encode(x.astype(np.float64), mode).tolist(), mode


def test_conversion_to_a_small_integer_saturates() -> None:
    x = np.array(
        [
            0,
            1.5,
            -1.5,
            127.5,
            130,
            -130,
            300,
            32767,
            40000,
            -40000,
            65504,
            np.inf,
            -np.inf,
            np.nan,
            -0.5,
            255.5,
        ],
        np.float16,
    )
    source = """#include <cuda_fp16.h>
        #include <cuda_bf16.h>
        __global__ void narrow(const __half* x, int* out) {
            const __half h = x[threadIdx.x];
            const __nv_bfloat16 b = __float2bfloat16_rz(__half2float(h));
            int* o = out + 8 * threadIdx.x;
            o[0] = __half2char_rz(h); o[1] = __half2uchar_rz(h); o[2] = __half2short_rz(h); o[3] = __half2ushort_rz(h);
            o[4] = (short)h; o[5] = (unsigned char)h; o[6] = __bfloat162short_rz(b); o[7] = (signed char)b;
        }"""
    got = launched("narrow", source, In(x), Out((16, 8), "int32"), threads=16)
    half = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0))
    # a half has three bits more than a bfloat16
    cut = (x.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)
    bfloat = np.trunc(np.nan_to_num(cut.astype(np.float64), nan=0.0))
    char, uchar, short, ushort = (-128, 127), (0, 255), (-(2**15), 2**15 - 1), (0, 2**16 - 1)
    wanted = [
        (half, char),
        (half, uchar),
        (half, short),
        (half, ushort),
        (half, short),
        (half, uchar),
        (bfloat, short),
        (bfloat, char),
    ]
    for k, (value, ends) in enumerate(wanted):
        assert got[:, k].tolist() == np.clip(value, *ends).tolist(), k


def find_nth_set(mask: int, base: int, offset: int) -> int:
    if offset == 0:
        return base if mask >> base & 1 else 2**32 - 1
    places = [
        place
        for place in (range(base, 32) if offset > 0 else range(base, -1, -1))
        if mask >> place & 1
    ]
    return places[abs(offset) - 1] if len(places) >= abs(offset) else 2**32 - 1


@pytest.mark.parametrize("mask", [0, 0xF0F0, 0x80000001, 0xFFFFFFFF])
def test_fns_finds_the_nth_set_bit_either_way(mask: int) -> None:
    offsets = [0, 1, 2, 3, 7, 32, 33, -1, -2, -5, -32, -40]
    calls = "".join(
        f"out[i * {len(offsets)} + {k}] = __fns({mask}u, i, {offset});"
        for k, offset in enumerate(offsets)
    )
    got = launched(
        "find",
        f"__global__ void find(unsigned* out) {{ int i = threadIdx.x; {calls} }}",
        Out((32, len(offsets)), "uint32"),
        threads=32,
    )
    assert got.tolist() == [
        [find_nth_set(mask, base, offset) for offset in offsets] for base in range(32)
    ]


def test_groups_are_split_by_size_label_and_predicate() -> None:
    r = np.arange(64)
    lane, odd = r % 32, r % 2 == 1
    got = launched("groups", (ASSETS / "groups.cu").read_text(), Out((64, 12), "int32")).astype(
        np.int64
    )
    alike = (r[:, None] % 3 == r % 3) & (r[:, None] // 32 == r // 32)
    expected = {
        "labelled: size": (0, slice(None), alike.sum(1)),
        "labelled: rank": (1, slice(None), np.tril(alike, -1).sum(1)),
        "labelled: groups": (2, slice(None), np.full(64, 3)),
        "two: size": (3, slice(None), np.where(r % 4 == 1, 8, 24)),
        "coalesced by four: size": (4, odd, np.full(32, 4)),
        "coalesced by four: rank": (5, odd, (lane // 2 % 4)[odd]),
        "coalesced by four: group": (6, odd, (lane // 8)[odd]),
        "coalesced by four: sum": (7, odd, r[odd].reshape(-1, 4).sum(1).repeat(4)),
        "of sixteen by four: group": (8, slice(None), lane % 16 // 4),
        "of sixteen by four: groups": (9, slice(None), np.full(64, 4)),
        "block as thread_group: sum": (10, slice(0, 1), r.sum(keepdims=True)),
        "eight as thread_group: sum": (11, slice(None, None, 8), r.reshape(8, 8).sum(1)),
    }
    for what, (column, threads, wanted) in expected.items():
        assert got[threads, column].tolist() == wanted.tolist(), what


def test_small_types_pass_through_the_functions_of_a_warp() -> None:
    source = """
        __global__ void small(int* out) {
            const int i = threadIdx.x;
            int same, differs;
            int* o = out + 8 * i;
            o[0] = __match_all_sync(~0u, i < 32, &same) == ~0u && same;
            o[1] = __match_all_sync(~0u, i % 2 == 0, &differs) == 0 && !differs;
            o[2] = __match_any_sync(~0u, (short)(i % 2)) == (i % 2 ? 0xaaaaaaaau : 0x55555555u);
            o[3] = __shfl_sync(~0u, (unsigned char)(200 + i), 3);
            o[4] = __shfl_down_sync(~0u, i == 1, 1);
            o[5] = __reduce_add_sync(~0u, (short)-i);
            o[6] = __popc(__ballot_sync(~0u, 1ull << 33 > (unsigned long long)i));
            o[7] = __any_sync(~0u, i == 31) + 2 * __all_sync(~0u, i < 31);
        }"""
    got = launched("small", source, Out((32, 8), "int32"), threads=32)
    assert got.tolist() == [[1, 1, 1, 203, int(i == 0), -496, 32, 1] for i in range(32)]
