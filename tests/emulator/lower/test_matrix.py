"""mma and wmma on integers, which every format represents exactly, against numpy's products."""

from __future__ import annotations

import numpy as np
import pytest

from evoengine.emulator.device import Checks
from evoengine.emulator.emulator_errors import Unsupported
from tests.emulator.float_formats import bfloat16
from tests.emulator.lower.small_kernels import listed, load_registers, run, store_registers

LANES = 32
RNG = np.random.default_rng(8)
FP8 = {"e4m3": (0x00, 0x38, 0x40, 0x44, 0x48), "e5m2": (0x00, 0x3C, 0x40, 0x42, 0x44)}  # 0 to 4
BITS = {
    "f16": 16,
    "bf16": 16,
    "tf32": 32,
    "f32": 32,
    "s32": 32,
    "s8": 8,
    "u8": 8,
    "e4m3": 8,
    "e5m2": 8,
    "f64": 64,
}
UNSIGNED = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


def _encoded(numbers: np.ndarray, type_: str) -> np.ndarray:
    """Integers as the bits of a PTX type."""
    if type_ in FP8:
        return np.asarray(FP8[type_], np.uint8)[numbers.astype(int)]
    if type_ == "bf16":
        return bfloat16(numbers.astype(np.float32)).view(np.uint16)
    dtype = {
        "f16": np.float16,
        "tf32": np.float32,
        "f32": np.float32,
        "f64": np.float64,
        "s32": np.int32,
        "s8": np.int8,
        "u8": np.uint8,
    }[type_]
    return numbers.astype(dtype).view(UNSIGNED[BITS[type_]])


def _decoded(bits: np.ndarray, type_: str) -> np.ndarray:
    dtype = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "s32": np.int32}[type_]
    return bits.view(dtype).astype(np.float64)


def _numbers(shape: tuple[int, ...], type_: str) -> np.ndarray:
    signed = type_ not in ("u8", *FP8)
    return RNG.integers(-4 if signed else 0, 5, shape).astype(np.float64)


# ---------------------------------------------------------------- mma.sync, layouts of PTX ISA
# 9.7.14.5


def _fragment(matrix: np.ndarray, type_: str, columns: bool) -> np.ndarray:
    """The registers [register, lane] of A, or with `columns` of B, as 32-bit words."""
    lines = matrix.T if columns else matrix
    per = 32 // BITS[type_]
    bits, found = _encoded(lines, type_), []
    for part in range(matrix.shape[0 if columns else 1] // (4 * per)):
        for block in range(len(lines) // 8):
            words = [
                bits[8 * block + lane // 4, per * (4 * part + lane % 4) :][:per]
                for lane in range(LANES)
            ]
            found.append(np.stack(words).copy().view(np.uint32)[:, 0])
    return np.stack(found)


def _accumulators(matrix: np.ndarray, type_: str) -> np.ndarray:
    bits = _encoded(matrix, type_)
    pairs = [
        [bits[8 * block + lane // 4, lane % 4 * 2 :][:2] for lane in range(LANES)]
        for block in range(len(matrix) // 8)
    ]
    if type_ == "f16":
        return np.stack([np.stack(pair).copy().view(np.uint32)[:, 0] for pair in pairs])
    return np.stack([np.stack(pair)[:, odd] for pair in pairs for odd in range(2)])


MMA = [
    *[
        ("m16n8k16", "f32", "f16"),
        ("m16n8k8", "f32", "f16"),
        ("m16n8k16", "f16", "f16"),
        ("m16n8k8", "f16", "f16"),
    ],
    *[
        ("m16n8k16", "f32", "bf16"),
        ("m16n8k8", "f32", "bf16"),
        ("m16n8k8", "f32", "tf32"),
        ("m16n8k4", "f32", "tf32"),
    ],
    *[
        ("m16n8k32", "s32", "s8"),
        ("m16n8k16", "s32", "u8"),
        ("m16n8k32", "f32", "e4m3"),
        ("m16n8k32", "f16", "e5m2"),
    ],
]


def _mma(
    shape: str, d: str, a: str, b: str, guard: str = "", *, satfinite: str = "", into: int = 30
) -> tuple[str, list[np.ndarray], np.ndarray]:
    m, n, k = (int(item) for item in shape[1:].replace("n", " ").replace("k", " ").split())
    left, right, plus = _numbers((m, k), a), _numbers((k, n), b), _numbers((m, n), d)
    sources = [
        _fragment(left, a, columns=False),
        _fragment(right, b, columns=True),
        _accumulators(plus, d),
    ]
    ra, rb, rc = (len(item) for item in sources)
    body = f"""
    {load_registers(0, ra, 0)} {load_registers(10, rb, 1)} {load_registers(20, rc, 2)}
    {guard} mma.sync.aligned.{shape}.row.col.{satfinite}{d}.{a}.{b}.{d}
        {listed("r", into, rc)}, {listed("r", 0, ra)}, {listed("r", 10, rb)}, {listed("r", 20, rc)};
    {store_registers(into, rc, 3)}"""
    return body, [*sources, np.zeros_like(sources[2])], left @ right + plus


@pytest.mark.parametrize(("shape", "d", "a"), MMA)
def test_mma_multiplies_fragments(shape: str, d: str, a: str) -> None:
    body, arrays, product = _mma(shape, d, a, a)
    np.testing.assert_array_equal(run(body, arrays).arrays[3], _accumulators(product, d))


@pytest.mark.parametrize(
    ("a", "b"), [("s8", "u8"), ("u8", "s8"), ("e4m3", "e5m2"), ("e5m2", "e4m3")]
)
def test_mma_takes_two_types(a: str, b: str) -> None:
    d = "s32" if a.endswith("8") else "f32"
    body, arrays, product = _mma("m16n8k32", d, a, b)
    np.testing.assert_array_equal(run(body, arrays).arrays[3], _accumulators(product, d))


@pytest.mark.parametrize("into", [20, 0, 10, 22, 2, 9])
def test_mma_may_write_over_its_sources(into: int) -> None:
    """Over C, A and B, and over parts of them: A is in %r0 to %r3, B in %r10 and %r11, C in %r20 to
    %r23.
    """
    body, arrays, product = _mma("m16n8k16", "f32", "f16", "f16", into=into)
    np.testing.assert_array_equal(run(body, arrays).arrays[3], _accumulators(product, "f32"))


def test_accumulators_are_preserved_while_a_warp_is_suspended() -> None:
    """Two warps that do the same, three times with a barrier behind each."""
    body, arrays, _ = _mma("m16n8k16", "f32", "f16", "f16", into=20)
    arrays[2][:] = 0
    once = run(body, arrays).arrays[3].view(np.float32)
    mma = body[body.index("mma.sync") :].partition(";")[0] + ";"
    loop = (
        f"mov.u32 %r50, 0; again: {mma} bar.sync 0; add.u32 %r50, %r50, 1; setp.lt.u32 %p0, %r50,"
        " 3; @%p0 bra again;"
    )
    by_lane = " ".join(f"add.s64 %own{index}, %rd{index}, %q0;" for index in range(4))
    thrice = run(
        f"mul.wide.u32 %q0, %lane, 4; {by_lane} {body.replace(mma, loop)}", arrays, threads=64
    ).arrays[3]
    np.testing.assert_array_equal(thrice.view(np.float32), 3 * once)


def test_mma_of_integers_saturates_with_satfinite() -> None:
    wraps, saturates = (
        _mma("m16n8k16", "s32", "s8", "s8", satfinite=item) for item in ("", "satfinite.")
    )
    for body, arrays, _ in (wraps, saturates):
        arrays[0][:] = arrays[1][:] = 0x01010101
        arrays[2][:] = 0x7FFFFFFF
        expected = 0x7FFFFFFF if "satfinite" in body else 0x8000000F
        assert (run(body, arrays).arrays[3] == expected).all()


def test_mma_in_double_precision() -> None:
    a, b, c = RNG.random((8, 4)), RNG.random((4, 8)), RNG.random((8, 8))
    body = """
    shl.b64 %q0, %wide, 1; add.s64 %q1, %rd0, %q0; add.s64 %q2, %rd1, %q0;
    shl.b64 %q0, %wide, 2; add.s64 %q3, %rd2, %q0; add.s64 %q4, %rd3, %q0;
    ld.global.f64 %d0, [%q1]; ld.global.f64 %d1, [%q2]; ld.global.v2.f64 {%d2, %d3}, [%q3];
    mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d4, %d5}, {%d0}, {%d1}, {%d2, %d3};
    st.global.v2.f64 [%q4], {%d4, %d5};"""
    got = run(body, [a, b.T, c, np.zeros((8, 8))]).arrays[3]
    np.testing.assert_allclose(got, a @ b + c, rtol=1e-15)


def test_mma_leaves_registers_unchanged_if_its_guard_fails() -> None:
    body, arrays, _ = _mma(
        "m16n8k16", "f32", "f16", "f16", guard="setp.ge.u32 %p0, %lane, 32; mov.u32 %r30, 7; @%p0"
    )
    got = run(body, arrays).arrays[3]
    assert got.tolist() == [[7] * LANES, *[[0] * LANES] * 3]


@pytest.mark.parametrize(
    "text",
    [
        (
            "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%r0, %r1, %r2, %r3}, {%r8, %r9},"
            " {%r8, %r9}, {%r0, %r1, %r2, %r3}"
        ),
        (
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {%r0, %r1, %r2, %r3}, {%r4, %r5,"
            " %r6, %r7}, {%r8, %r9}, {%r0, %r1, %r2, %r3}"
        ),
        (
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r0, %r1, %r2, %r3}, {%r4, %r5},"
            " {%r8, %r9}, {%r0, %r1, %r2, %r3}"
        ),
        "mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32 {%r0, %r1}, {%r4}, {%r8}, {%r0, %r1}",
        "wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.s4.s32 {%r0, %r1}, {%r4}, {%r8}, {%r0, %r1}",
        "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0, %r1}, [%r2]",
    ],
)
def test_unknown_shapes_and_types_are_refused(text: str) -> None:
    with pytest.raises(Unsupported, match=text.split()[0].replace(".", r"\.")):
        run(f"{text};", [])


# ---------------------------------------------------------------- wmma

WMMA = [
    *[(shape, "f32", "f16", "f32") for shape in ("m16n16k16", "m32n8k16", "m8n32k16")],
    *[
        ("m16n16k16", "f16", "f16", "f16"),
        ("m32n8k16", "f32", "f16", "f16"),
        ("m16n16k16", "f16", "f16", "f32"),
    ],
    *[(shape, "f32", "bf16", "f32") for shape in ("m16n16k16", "m32n8k16", "m8n32k16")],
    ("m16n16k8", "f32", "tf32", "f32"),
    *[
        (shape, "s32", type_, "s32")
        for shape in ("m16n16k16", "m32n8k16", "m8n32k16")
        for type_ in ("s8", "u8")
    ],
]
OPERANDS = {
    ("bf16", "m16n16k16"): (4, 4),
    ("bf16", "m32n8k16"): (8, 2),
    ("bf16", "m8n32k16"): (2, 8),
    **{
        ("8", shape): counts
        for shape, counts in (("m16n16k16", (2, 2)), ("m32n8k16", (4, 1)), ("m8n32k16", (1, 4)))
    },
    ("tf32", "m16n16k8"): (4, 4),
}


def _padded(matrix: np.ndarray, type_: str, layout: str) -> tuple[np.ndarray, int]:
    """A matrix in memory with 16 bytes of padding per line, and its stride in elements."""
    lines = _encoded(matrix if layout == "row" else matrix.T, type_)
    wide = np.full((len(lines), lines.shape[1] + 128 // BITS[type_]), 0x5A, lines.dtype)
    wide[:, : lines.shape[1]] = lines
    return wide, wide.shape[1]


def _wmma(
    shape: str, d: str, a: str, c: str, layouts: tuple[str, str, str], *, space: str = ""
) -> tuple[str, list[np.ndarray], np.ndarray]:
    m, n, k = (int(item) for item in shape[1:].replace("n", " ").replace("k", " ").split())
    matrices = _numbers((m, k), a), _numbers((k, n), a), _numbers((m, n), c)
    ra, rb = OPERANDS.get((a[1:] if a.endswith("8") else a, shape), (8, 8))
    rc, rd = (4 if type_ == "f16" else 8 for type_ in (c, d))
    types = f"{d}.{c}" if a == "f16" else f"{d}.{a}.{a}.{c}"
    stored = [
        _padded(matrix, type_, layout)
        for matrix, type_, layout in zip(matrices, (a, a, c), layouts, strict=True)
    ]
    left, right, third = (
        f"wmma.load.{{}}.sync.aligned.{layout}.{shape}{space}" for layout in layouts
    )
    body = f"""
    {left.format("a")}.{a} {listed("r", 0, ra)}, [%rd0], {stored[0][1]};
    {right.format("b")}.{a} {listed("r", 10, rb)}, [%rd1], {stored[1][1]};
    {third.format("c")}.{c} {listed("r", 20, rc)}, [%rd2], {stored[2][1]};
    wmma.mma.sync.aligned.{layouts[0]}.{layouts[1]}.{shape}.{types}
        {listed("r", 30, rd)}, {listed("r", 0, ra)}, {listed("r", 10, rb)}, {listed("r", 20, rc)};
    wmma.store.d.sync.aligned.{layouts[2]}.{shape}{space}.{d} [%rd3], {listed("r", 30, rd)}, {{stride}};"""
    result, stride = _padded(np.zeros((m, n)), d, layouts[2])
    return (
        body.replace("{stride}", str(stride)),
        [*(item for item, _ in stored), result],
        matrices[0] @ matrices[1] + matrices[2],
    )


@pytest.mark.parametrize(("shape", "d", "a", "c"), WMMA)
@pytest.mark.parametrize("layouts", [("row", "col", "row"), ("col", "row", "col")])
@pytest.mark.parametrize("checks", [None, Checks()], ids=["", "checked"])
def test_wmma_loads_multiplies_and_stores(
    shape: str, d: str, a: str, c: str, layouts: tuple[str, str, str], checks: Checks | None
) -> None:
    body, arrays, product = _wmma(shape, d, a, c, layouts)
    ran = run(body, arrays, checks=checks)
    assert ran.kinds() == []
    want, _ = _padded(product, d, layouts[2])
    np.testing.assert_array_equal(ran.arrays[3], want)  # what is between the lines too


def test_wmma_without_a_stride_takes_contiguous_lines() -> None:
    tile = np.arange(256, dtype=np.float32).reshape(16, 16)
    body = f"""
    wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {listed("r", 0, 8)}, [%rd0];
    wmma.store.d.sync.aligned.col.m16n16k16.global.f32 [%rd1], {listed("r", 0, 8)};"""
    np.testing.assert_array_equal(run(body, [tile, np.zeros_like(tile)]).arrays[1], tile.T)


def test_wmma_takes_the_address_of_the_active_lanes() -> None:
    tile = np.arange(256, dtype=np.float32).reshape(16, 16)
    body = f"""
    mov.u64 %q0, 0; setp.ge.u32 %p0, %lane, 3; @%p0 mov.u64 %q0, %rd0;
    @%p0 wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {listed("r", 0, 8)}, [%q0];
    @%p0 wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd1], {listed("r", 0, 8)};
    setp.ge.u32 %p1, %lane, 32; mov.u64 %q0, 64;
    @%p1 wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {listed("r", 10, 8)}, [%q0];"""
    got = run(body, [tile, np.zeros_like(tile)]).arrays[1]
    for row in (0, 8):  # the first three lanes hold pairs of these rows, and loaded nothing
        tile[row, 0:6] = tile[row, 8:14] = 0
    np.testing.assert_array_equal(got, tile)
