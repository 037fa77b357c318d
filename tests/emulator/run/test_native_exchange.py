"""exchange.c, bits.c, atomic.c and memory.c against the PTX ISA's pseudo-code, written out in
Python.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emulator.run.native_lanes import LANES, Runtime, aligned
from tests.sampling import examples

WORDS = st.lists(st.integers(0, 2**32 - 1), min_size=LANES, max_size=LANES)
WHOLE = Runtime("whole")
FULL = 0xFFFFFFFF


def lanes_of(mask: int) -> list[int]:
    return [lane for lane in range(LANES) if mask >> lane & 1]


def shfl_model(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """9.7.9.6: the lane to read, and p."""
    bval, cval, segment = b & 31, c & 31, c >> 8 & 31
    top, bottom = (lane & segment) | (cval & ~segment), lane & segment
    j = {
        "up": lane - bval,
        "down": lane + bval,
        "bfly": lane ^ bval,
        "idx": bottom | (bval & ~segment),
    }[mode]
    p = j >= top if mode == "up" else j <= top
    return (j if p else lane), p


@settings(max_examples=examples(150), deadline=None)
@given(
    st.sampled_from(["up", "down", "bfly", "idx"]),
    WORDS,
    WORDS,
    st.integers(0, 5),
    st.integers(0, FULL),
)
def test_shuffles_follow_ptx(
    mode: str, x: list[int], lane: list[int], width: int, mask: int
) -> None:
    c = (32 - (1 << width)) << 8 | (0 if mode == "up" else 31)
    inside, out = aligned(np.zeros(1, np.uint32)), aligned(np.full(LANES, 7, np.uint32))
    arrays = [aligned(np.array(values, np.uint32)) for values in (x, lane, [c] * LANES)]
    WHOLE.call(f"ev_shfl_{mode}_b32", *arrays, mask, out, inside)
    for i in range(LANES):
        source, p = shfl_model(mode, i, lane[i], c)
        active = mask >> i & 1
        assert out[i] == (x[source] if active else 7) and (int(inside[0]) >> i & 1) == (
            p and active
        )


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.integers(0, 3), min_size=LANES, max_size=LANES),
    st.integers(1, FULL),
    st.sampled_from([(32, np.uint32), (64, np.uint64)]),
)
def test_match_finds_equal_lanes(x: list[int], mask: int, width: tuple[int, type]) -> None:
    bits, kind = width
    values, out = aligned(np.array(x, kind) << kind(bits - 3)), aligned(np.zeros(LANES, np.uint32))
    WHOLE.call(f"ev_match_any_b{bits}", values, mask, out)
    for lane in lanes_of(mask):
        assert out[lane] == sum(1 << other for other in lanes_of(mask) if x[other] == x[lane])
    same = len({x[lane] for lane in lanes_of(mask)}) == 1
    assert WHOLE.call(f"ev_match_all_b{bits}", values, mask, returns=ctypes.c_uint32) == (
        mask if same else 0
    )


@settings(max_examples=examples(60), deadline=None)
@given(WORDS, st.integers(1, FULL))
def test_redux_reduces_the_lanes_of_the_mask(x: list[int], mask: int) -> None:
    values = aligned(np.array(x, np.uint32))
    chosen = [x[lane] for lane in lanes_of(mask)]
    signed = [value - (value >> 31 << 32) for value in chosen]
    wanted = {
        "add_u32": sum(chosen) & FULL,
        "min_u32": min(chosen),
        "max_u32": max(chosen),
        "and_b32": FULL,
        "or_b32": 0,
        "xor_b32": 0,
    }
    for value in chosen:
        wanted["and_b32"] &= value
        wanted["or_b32"] |= value
        wanted["xor_b32"] ^= value
    for name, value in wanted.items():
        assert WHOLE.call(f"ev_redux_{name}", values, mask, returns=ctypes.c_uint32) == value
    for name, value in (("min_s32", min(signed)), ("max_s32", max(signed))):
        assert WHOLE.call(f"ev_redux_{name}", values, mask, returns=ctypes.c_int32) == value


def test_redux_of_floats_ignores_nan() -> None:
    x = aligned(np.array([np.nan, 2.0, -3.0] + [np.nan] * 29, np.float32))
    assert WHOLE.call("ev_redux_min_f32", x, 0b111, returns=ctypes.c_float) == -3.0
    assert WHOLE.call("ev_redux_max_f32", x, 0b111, returns=ctypes.c_float) == 2.0
    assert np.isnan(WHOLE.call("ev_redux_max_f32", x, 0b1, returns=ctypes.c_float))


def prmt_model(mode: str, a: int, b: int, c: int) -> int:
    """9.7.8.7, its table."""
    s = c & 3
    picks = {
        "": [c >> (4 * i) & 15 for i in range(4)],
        "_f4e": [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6]][s],
        "_b4e": [[0, 7, 6, 5], [1, 0, 7, 6], [2, 1, 0, 7], [3, 2, 1, 0]][s],
        "_rc8": [s] * 4,
        "_ecl": [[0, 1, 2, 3], [1, 1, 2, 3], [2, 2, 2, 3], [3, 3, 3, 3]][s],
        "_ecr": [[0, 0, 0, 0], [0, 1, 1, 1], [0, 1, 2, 2], [0, 1, 2, 3]][s],
        "_rc16": [[0, 1, 0, 1], [2, 3, 2, 3]][s & 1],
    }[mode]
    source = (b << 32 | a).to_bytes(8, "little")
    chosen = [(0xFF if source[p & 7] & 0x80 else 0) if p & 8 else source[p & 7] for p in picks]
    return int.from_bytes(bytes(chosen), "little")


def bfe_model(a: int, b: int, c: int, bits: int, signed: bool) -> int:
    """9.7.1.19, bit by bit."""
    pos, length = b & 255, c & 255
    fill = a >> min(pos + length - 1, bits - 1) & 1 if signed and length else 0
    return sum(
        ((a >> (pos + i) & 1) if i < length and pos + i < bits else fill) << i for i in range(bits)
    )


def bfi_model(a: int, b: int, pos: int, length: int, bits: int) -> int:
    for i in range(length & 255):
        at = (pos & 255) + i
        if at < bits:
            b = b & ~(1 << at) | (a >> i & 1) << at
    return b


def bfind_model(a: int, bits: int, signed: bool, shift: bool) -> int:
    if signed and a >> (bits - 1):
        a = ~a & ((1 << bits) - 1)
    if not a:
        return FULL
    return bits - a.bit_length() if shift else a.bit_length() - 1


def dp_model(a: int, b: int, c: int, parts: int, high: bool, signs: tuple[bool, bool]) -> int:
    def part(x: int, width: int, i: int, signed: bool) -> int:
        value = x >> (width * i) & ((1 << width) - 1)
        return value - (1 << width) if signed and value >> (width - 1) else value

    terms = (
        part(a, 32 // parts, i, signs[0]) * part(b, 8, i + 2 * high, signs[1]) for i in range(parts)
    )
    return (c + sum(terms)) & FULL


def fns_model(mask: int, base: int, offset: int) -> int:
    if base > 31:
        return FULL
    if offset == 0:
        return base if mask >> base & 1 else FULL
    order = range(base, 32) if offset > 0 else range(base, -1, -1)
    found = [i for i in order if mask >> i & 1]
    return found[abs(offset) - 1] if len(found) >= abs(offset) else FULL


def three(
    name: str, model: Callable[[int, int, int], int], *arrays: np.ndarray, result: type = np.uint32
) -> None:
    got = WHOLE.lanes(name, result, *arrays).tolist()
    assert got == [
        model(*values) for values in zip(*(array.tolist() for array in arrays), strict=True)
    ], name


def words(seed: int, kind: type = np.uint32) -> np.ndarray:
    bits = np.iinfo(kind).bits
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 2**bits, 320, dtype=kind) >> rng.integers(0, bits, 320).astype(kind)
    values[:4] = [0, 1, 2**bits - 1, 2 ** (bits - 1)]
    return values


@pytest.mark.parametrize("mode", ["", "_f4e", "_b4e", "_rc8", "_ecl", "_ecr", "_rc16"])
def test_prmt_in_every_mode(mode: str) -> None:
    three(
        f"ev_prmt{mode}",
        lambda a, b, c: prmt_model(mode, a, b, c),
        words(1),
        words(2),
        np.random.default_rng(3).integers(0, 65536, 320, dtype=np.uint32),
    )


@pytest.mark.parametrize(("bits", "kind"), [(32, np.uint32), (64, np.uint64)])
def test_bit_fields_at_every_position(bits: int, kind: type) -> None:
    rng = np.random.default_rng(4)
    pos, length = (
        rng.integers(0, 80, 320, dtype=np.uint32),
        rng.integers(0, 80, 320, dtype=np.uint32),
    )
    pos[:8], length[4:12] = [0, 31, 32, 63, 64, 255, 256, 0], [0, 1, 32, 64, 255, 256, 31, 63]
    for sign, signed in (("u", False), ("s", True)):
        model = lambda a, b, c, s=signed: bfe_model(a, b, c, bits, s)  # noqa: E731
        three(f"ev_bfe_{sign}{bits}", model, words(5, kind), pos, length, result=kind)
    got = WHOLE.lanes(f"ev_bfi_b{bits}", kind, words(6, kind), words(7, kind), pos, length).tolist()
    rows = zip(
        words(6, kind).tolist(), words(7, kind).tolist(), pos.tolist(), length.tolist(), strict=True
    )
    assert got == [bfi_model(*row, bits) for row in rows]


@pytest.mark.parametrize(("bits", "kind"), [(32, np.uint32), (64, np.uint64)])
def test_bfind_finds_the_highest_bit_that_differs_from_the_sign(bits: int, kind: type) -> None:
    for sign in "us":
        for form in ("", "shiftamt_"):
            got = WHOLE.lanes(f"ev_bfind_{form}{sign}{bits}", np.uint32, words(8, kind)).tolist()
            assert got == [
                bfind_model(a, bits, sign == "s", bool(form)) for a in words(8, kind).tolist()
            ]


@pytest.mark.parametrize("a", ["u32", "s32"])
@pytest.mark.parametrize("b", ["u32", "s32"])
def test_dot_products_of_bytes_and_halves(a: str, b: str) -> None:
    signs = (a == "s32", b == "s32")
    x, y, z = (
        np.random.default_rng(seed).integers(0, 2**32, 320, dtype=np.uint32) for seed in range(3)
    )
    for name, parts, high in (("dp4a", 4, False), ("dp2a_lo", 2, False), ("dp2a_hi", 2, True)):
        three(
            f"ev_{name}_{a}_{b}",
            lambda p, q, r, n=parts, h=high: dp_model(p, q, r, n, h, signs),
            x,
            y,
            z,
        )


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 255), WORDS, WORDS, WORDS)
def test_lop3_looks_every_bit_up(table: int, a: list[int], b: list[int], c: list[int]) -> None:
    arrays = [aligned(np.array(values, np.uint32)) for values in (a, b, c)]
    WHOLE.call("ev_lop3", *arrays, table, arrays[0])
    for x, y, z, got in zip(a, b, c, arrays[0].tolist(), strict=True):
        assert got == sum(
            (table >> ((x >> i & 1) * 4 + (y >> i & 1) * 2 + (z >> i & 1)) & 1) << i
            for i in range(32)
        )


def test_fns_counts_set_bits_both_ways() -> None:
    rng = np.random.default_rng(9)
    mask, base = words(10), rng.integers(0, 34, 320, dtype=np.uint32)
    offset = rng.integers(-6, 7, 320).astype(np.int32)
    offset[:2] = [-(2**31), 2**31 - 1]
    three("ev_fns", fns_model, mask, base, offset)


# ---- memory and atomics
# ---------------------------------------------------------------------------------------------


def addresses(memory: np.ndarray, places: np.ndarray) -> np.ndarray:
    return aligned((memory.ctypes.data + places * memory.itemsize).astype(np.uint64))


ATOMICS: dict[str, tuple[type, Callable[[int, int], int]]] = {
    **{
        f"add_{name}": (kind, lambda x, y: x + y)
        for name, kind in (
            ("u32", np.uint32),
            ("s32", np.int32),
            ("u64", np.uint64),
            ("s64", np.int64),
        )
    },
    **{
        f"min_{name}": (kind, min)
        for name, kind in (
            ("u32", np.uint32),
            ("s32", np.int32),
            ("u64", np.uint64),
            ("s64", np.int64),
        )
    },
    **{
        f"max_{name}": (kind, max)
        for name, kind in (
            ("u32", np.uint32),
            ("s32", np.int32),
            ("u64", np.uint64),
            ("s64", np.int64),
        )
    },
    **{
        f"and_{name}": (kind, lambda x, y: x & y)
        for name, kind in (("u32", np.uint32), ("u64", np.uint64))
    },
    **{
        f"or_{name}": (kind, lambda x, y: x | y)
        for name, kind in (("u32", np.uint32), ("s64", np.int64))
    },
    **{
        f"xor_{name}": (kind, lambda x, y: x ^ y)
        for name, kind in (("s32", np.int32), ("u64", np.uint64))
    },
    **{
        f"exch_{name}": (kind, lambda x, y: y)
        for name, kind in (("b16", np.uint16), ("u32", np.uint32), ("u64", np.uint64))
    },
    "inc_u32": (np.uint32, lambda x, y: 0 if x >= y else x + 1),
    "dec_u32": (np.uint32, lambda x, y: y if x == 0 or x > y else x - 1),
}


@pytest.mark.parametrize("name", ATOMICS)
def test_atomics_go_lane_by_lane_upwards(name: str) -> None:
    kind, step = ATOMICS[name]
    rng = np.random.default_rng(1)
    limits = np.iinfo(kind)
    memory = rng.integers(limits.min, limits.max, 4, dtype=kind)
    values, places, mask = (
        aligned(rng.integers(limits.min, limits.max, LANES, dtype=kind)),
        rng.integers(0, 4, LANES),
        0xF0F3C5A7,
    )
    if name in ("inc_u32", "dec_u32"):
        memory[:], values[:] = [3, 0, 9, 5], 4
    model, old, expected = [int(v) for v in memory], aligned(np.full(LANES, 11, kind)), [11] * LANES
    for lane in lanes_of(mask):
        expected[lane] = model[places[lane]]
        wrapped = step(model[places[lane]], int(values[lane])) & (2**limits.bits - 1)
        model[places[lane]] = (
            wrapped - (wrapped >> (limits.bits - 1) << limits.bits) if limits.min else wrapped
        )
    WHOLE.call(f"ev_atomic_{name}", addresses(memory, places), values, mask, old)
    assert memory.tolist() == model and old.tolist() == expected


@pytest.mark.parametrize(("bits", "kind"), [(16, np.uint16), (32, np.uint32), (64, np.uint64)])
def test_compare_and_swap_swaps_once(bits: int, kind: type) -> None:
    memory, old = np.array([5], kind), aligned(np.zeros(LANES, kind))
    expected, values = aligned(np.full(LANES, 5, kind)), aligned(np.arange(100, 132).astype(kind))
    WHOLE.call(
        f"ev_atomic_cas_b{bits}",
        addresses(memory, np.zeros(LANES, int)),
        expected,
        values,
        0xFFFFFFF0,
        old,
    )
    assert memory[0] == 104 and old[4] == 5 and set(old[5:].tolist()) == {104} and not old[:4].any()


@pytest.mark.parametrize("name", ["f32", "f64", "f16", "bf16", "f16x2", "bf16x2"])
def test_atomic_sums_of_floats(name: str) -> None:
    kind = {"f32": np.uint32, "f64": np.uint64, "f16": np.uint16, "bf16": np.uint16}.get(
        name, np.uint32
    )
    ones = {
        "f32": 0x3F800000,
        "f64": 0x3FF0000000000000,
        "f16": 0x3C00,
        "bf16": 0x3F80,
        "f16x2": 0x3C004000,
        "bf16x2": 0x3F804000,
    }
    total = {
        "f32": 0x42000000,
        "f64": 0x4040000000000000,
        "f16": 0x5000,
        "bf16": 0x4200,
        "f16x2": 0x50005400,
        "bf16x2": 0x42004280,
    }
    memory, old = np.zeros(1, kind), aligned(np.zeros(LANES, kind))
    WHOLE.call(
        f"ev_atomic_add_{name}",
        addresses(memory, np.zeros(LANES, int)),
        aligned(np.full(LANES, ones[name], kind)),
        FULL,
        old,
    )
    assert memory[0] == total[name] and old[0] == 0 and old[1] == ones[name]


@pytest.mark.parametrize("name", ["add_f32", "add_u32", "add_f16x2"])
def test_no_addition_of_several_threads_is_lost(name: str) -> None:
    kind, one = np.uint32, {"add_f32": 0x3F800000, "add_u32": 1, "add_f16x2": 0x00010000}[name]
    memory = np.zeros(1, kind)
    place = addresses(memory, np.zeros(LANES, int))
    function = ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p
    )(WHOLE.native.address(f"ev_atomic_{name}"))
    values, rounds = aligned(np.full(LANES, one, kind)), 15

    def work(_: int) -> None:
        old = aligned(np.zeros(LANES, kind))
        for _turn in range(rounds):
            function(place.ctypes.data, values.ctypes.data, FULL, old.ctypes.data)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    count = 4 * rounds * LANES
    assert (
        memory[0]
        == {
            "add_f32": int(np.float32(count).view(np.uint32)),
            "add_u32": count,
            "add_f16x2": count << 16,
        }[name]
    )


@pytest.mark.parametrize(
    ("bits", "kind"), [(8, np.uint8), (16, np.uint16), (32, np.uint32), (64, np.uint64)]
)
def test_gather_and_scatter_access_active_lanes_only(bits: int, kind: type) -> None:
    raw = np.random.default_rng(2).integers(0, 256, 1024, dtype=np.uint8)
    offsets = np.random.default_rng(3).integers(0, 1000, LANES)
    mask = 0x5555F00F
    active = np.array([mask >> lane & 1 for lane in range(LANES)], bool)
    # address 0: to touch it would end us
    place = aligned(np.where(active, raw.ctypes.data + offsets, 0).astype(np.uint64))
    out = aligned(np.full(LANES, 9, kind))
    WHOLE.call(f"ev_gather_{bits}", place, mask, out)
    for lane in range(LANES):
        assert out[lane] == (
            raw[offsets[lane] : offsets[lane] + bits // 8].view(kind)[0] if active[lane] else 9
        )
    values = aligned(np.random.default_rng(4).integers(0, 2**bits, LANES, dtype=kind))
    model = raw.copy()
    for lane in lanes_of(mask):
        model[offsets[lane] : offsets[lane] + bits // 8] = values[lane : lane + 1].view(np.uint8)
    WHOLE.call(f"ev_scatter_{bits}", place, mask, values)
    assert np.array_equal(raw, model)


@pytest.mark.parametrize("size", [4, 8, 16])
def test_copy_async_fills_with_zeros(size: int) -> None:
    source, shared = np.arange(512, dtype=np.uint8), np.full(1024, 99, np.uint8)
    given_bytes = aligned(np.arange(LANES, dtype=np.uint32) % (size + 1))
    offsets = aligned((np.arange(LANES) * 32).astype(np.uint32))
    mask = 0xFFFF0FFF
    WHOLE.call(
        "ev_copy_async",
        offsets,
        shared,
        aligned((source.ctypes.data + np.arange(LANES) * 16).astype(np.uint64)),
        given_bytes,
        size,
        mask,
    )
    model = np.full(1024, 99, np.uint8)
    for lane in lanes_of(mask):
        count = int(given_bytes[lane])
        model[32 * lane : 32 * lane + size] = 0
        model[32 * lane : 32 * lane + count] = source[16 * lane : 16 * lane + count]
    assert np.array_equal(shared, model)
