"""matrix.c and wmma.c: fragments are taken apart by the PTX ISA's formulas and multiplied by
numpy.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.run.native_lanes import LANES, Runtime, aligned

BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8}
G, T = np.arange(LANES) // 4, np.arange(LANES) % 4  # groupID and threadID_in_group


def values_of(kind: str, bits: np.ndarray) -> np.ndarray:
    """Elements as float64."""
    bits = bits.astype(np.uint32)
    if kind == "f16":
        return bits.astype(np.uint16).view(np.float16).astype(np.float64)
    if kind == "bf16":
        return (bits << 16).view(np.float32).astype(np.float64)
    if kind == "tf32":
        return (bits & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    if kind in ("e4m3", "e5m2"):
        digits, bias = (3, 7) if kind == "e4m3" else (2, 15)
        field, mantissa = (bits & 0x7F) >> digits, bits & ((1 << digits) - 1)
        normal = (1 + mantissa / 2.0**digits) * 2.0 ** (field.astype(float) - bias)
        return np.where(bits & 0x80, -1, 1) * np.where(
            field == 0, mantissa * 2.0 ** (1 - bias - digits), normal
        )
    return bits.astype(np.uint8).astype(np.int8 if kind == "s8" else np.uint8).astype(np.float64)


def random_bits(kind: str, shape: tuple[int, int], seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    real = rng.standard_normal(shape).astype(np.float32)
    if kind == "f16":
        return real.astype(np.float16).view(np.uint16).astype(np.uint32)
    if kind == "bf16":
        return real.view(np.uint32) >> 16
    if kind == "tf32":
        return real.view(np.uint32)
    return (
        rng.integers(0, 0x70, shape, dtype=np.uint32)
        | rng.integers(0, 2, shape, dtype=np.uint32) << 7
    )


def a_fragment(a: np.ndarray, kind: str) -> np.ndarray:
    """[registers][32] of a 16 x k matrix: register i has rows g (+ 8 for odd i), columns P t + p (+
    4 P for i >= 2).
    """
    parts = 32 // BITS[kind]
    registers = np.zeros((a.shape[1] // (2 * parts), LANES), np.uint32)
    for i in range(len(registers)):
        for p in range(parts):
            registers[i] |= a[G + 8 * (i % 2), parts * T + p + 4 * parts * (i // 2)] << np.uint32(
                BITS[kind] * p
            )
    return registers


def b_fragment(b: np.ndarray, kind: str) -> np.ndarray:
    parts = 32 // BITS[kind]
    registers = np.zeros((b.shape[0] // (4 * parts), LANES), np.uint32)
    for i in range(len(registers)):
        for p in range(parts):
            registers[i] |= b[parts * T + p + 4 * parts * i, G] << np.uint32(BITS[kind] * p)
    return registers


def c_fragment(c: np.ndarray) -> np.ndarray:
    return np.stack([c[G + 8 * (i // 2), 2 * T + i % 2] for i in range(4)])


def pairs(c: np.ndarray) -> np.ndarray:
    """Registers of f16x2 from those of single elements."""
    half = c.astype(np.float16).view(np.uint16).astype(np.uint32)
    return half[0::2] | half[1::2] << np.uint32(16)


FLOATS = [
    *[(16, kind, kind) for kind in ("f16", "bf16")],
    *[(8, kind, kind) for kind in ("f16", "bf16", "tf32")],
    (4, "tf32", "tf32"),
    *[(k, a, b) for k in (16, 32) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")],
]


@pytest.mark.parametrize(("k", "kind_a", "kind_b"), FLOATS)
def test_mma_with_float_accumulators(runtime: Runtime, k: int, kind_a: str, kind_b: str) -> None:
    a, b = random_bits(kind_a, (16, k), 1), random_bits(kind_b, (k, 8), 2)
    c = np.random.default_rng(3).standard_normal((16, 8)).astype(np.float32)
    name = kind_a if kind_a == kind_b and BITS[kind_a] > 8 else f"{kind_a}_{kind_b}"
    d = aligned(c_fragment(c))
    runtime.call(
        f"ev_mma_m16n8k{k}_f32_{name}",
        aligned(a_fragment(a, kind_a)),
        aligned(b_fragment(b, kind_b)),
        d,
        d,
    )
    x, y = values_of(kind_a, a), values_of(kind_b, b)
    bound = (np.abs(x) @ np.abs(y) + np.abs(c)) * (k + 1) * 2.0**-24
    assert np.all(np.abs(d - c_fragment(x @ y + c)) <= c_fragment(bound))


@pytest.mark.parametrize(
    ("k", "kind_a", "kind_b"),
    [(16, "f16", "f16"), (8, "f16", "f16"), (32, "e4m3", "e5m2"), (32, "e5m2", "e4m3")],
)
def test_mma_with_half_accumulators_rounds_at_the_end(
    runtime: Runtime, k: int, kind_a: str, kind_b: str
) -> None:
    # exponents kept small, so that no result overflows
    a, b = random_bits(kind_a, (16, k), 1), random_bits(kind_b, (k, 8), 2)
    if kind_a != "f16":
        a, b = a & 0xBF, b & 0xBF
    c = np.random.default_rng(3).standard_normal((16, 8)).astype(np.float16)
    d = aligned(np.zeros((2, LANES), np.uint32))
    name = "f16" if kind_a == "f16" else f"{kind_a}_{kind_b}"
    fragments = [
        aligned(part)
        for part in (a_fragment(a, kind_a), b_fragment(b, kind_b), pairs(c_fragment(c)))
    ]
    runtime.call(f"ev_mma_m16n8k{k}_f16_{name}", *fragments, d)
    wanted = pairs(c_fragment(values_of(kind_a, a) @ values_of(kind_b, b) + c.astype(np.float64)))
    apart = np.abs(d.view(np.int16).astype(int) - wanted.view(np.int16))
    assert apart.max() <= 1 and np.mean(apart) < 0.02


@pytest.mark.parametrize("k", [16, 32])
@pytest.mark.parametrize("kinds", [("s8", "s8"), ("s8", "u8"), ("u8", "s8"), ("u8", "u8")])
@pytest.mark.parametrize("saturate", [False, True])
def test_mma_of_integers_is_exact(
    runtime: Runtime, k: int, kinds: tuple[str, str], saturate: bool
) -> None:
    rng = np.random.default_rng(k)
    a, b = (
        rng.integers(0, 256, (16, k), dtype=np.uint32),
        rng.integers(0, 256, (k, 8), dtype=np.uint32),
    )
    a[0], b[:, 0] = 255, 255
    c = rng.integers(-(2**31), 2**31, (16, 8)).astype(np.int32)
    c[0, 0], c[1, 1] = 2**31 - 1, -(2**31)
    d = aligned(np.zeros((4, LANES), np.int32))
    name = f"ev_mma_m16n8k{k}_{'satfinite_' if saturate else ''}s32_{kinds[0]}_{kinds[1]}"
    runtime.call(
        name,
        aligned(a_fragment(a, kinds[0])),
        aligned(b_fragment(b, kinds[1])),
        aligned(c_fragment(c)),
        d,
    )
    exact = (values_of(kinds[0], a) @ values_of(kinds[1], b)).astype(np.int64) + c
    wanted = np.clip(exact, -(2**31), 2**31 - 1) if saturate else exact
    assert np.array_equal(d, c_fragment(wanted.astype(np.int32)))


def test_mma_of_doubles(runtime: Runtime) -> None:
    a, b, c = (
        np.random.default_rng(seed).standard_normal(shape)
        for seed, shape in enumerate([(8, 4), (4, 8), (8, 8)])
    )
    d = aligned(np.stack([c[G, 2 * T], c[G, 2 * T + 1]]))
    runtime.call("ev_mma_m8n8k4_f64", aligned(a[G, T]), aligned(b[T, G]), d, d)
    wanted = a @ b + c
    assert np.allclose(d, np.stack([wanted[G, 2 * T], wanted[G, 2 * T + 1]]), rtol=1e-14)


def test_infinities_and_nans_go_through_the_product(runtime: Runtime) -> None:
    a, b = np.zeros((16, 16), np.uint32), np.zeros((16, 8), np.uint32)
    a[3, 5], b[5, 2], a[4, 5], b[5, 3] = 0x7C00, 0x3C00, 0x7E00, 0x0000
    d = aligned(np.zeros((4, LANES), np.float32))
    runtime.call(
        "ev_mma_m16n8k16_f32_f16",
        aligned(a_fragment(a, "f16")),
        aligned(b_fragment(b, "f16")),
        d,
        d,
    )
    wanted = np.zeros((16, 8))
    wanted[3], wanted[4] = np.nan, np.nan
    wanted[3, 2] = np.inf
    assert np.array_equal(d, c_fragment(wanted), equal_nan=True)


SHAPES = {
    "m16n16k16": (16, 16, 16),
    "m32n8k16": (32, 8, 16),
    "m8n32k16": (8, 32, 16),
    "m16n16k8": (16, 16, 8),
}
WMMA = [
    *[
        (shape, kind)
        for shape in ("m16n16k16", "m32n8k16", "m8n32k16")
        for kind in ("f16", "bf16", "s8", "u8")
    ],
    ("m16n16k8", "tf32"),
]


def stored(matrix: np.ndarray, row_major: bool, stride: int) -> np.ndarray:
    """Memory that holds the matrix with lines `stride` elements apart."""
    lines = matrix if row_major else matrix.T
    memory = np.zeros((len(lines), stride), matrix.dtype)
    memory[:, : lines.shape[1]] = lines
    return memory


def element_type(kind: str) -> type:
    return {8: np.uint8, 16: np.uint16, 32: np.uint32}[BITS[kind]]


@pytest.mark.parametrize(("shape", "kind"), WMMA)
@pytest.mark.parametrize("row_a", [True, False])
@pytest.mark.parametrize("row_b", [True, False])
@pytest.mark.parametrize("row_c", [True, False])
def test_wmma_loads_multiplies_and_stores(
    runtime: Runtime, shape: str, kind: str, row_a: bool, row_b: bool, row_c: bool
) -> None:
    m, n, k = SHAPES[shape]
    integer = kind in ("s8", "u8")
    a, b = random_bits(kind, (m, k), 4), random_bits(kind, (k, n), 5)
    c = (np.random.default_rng(6).standard_normal((m, n)) * 100).astype(
        np.int32 if integer else np.float32
    )
    fragments = [aligned(np.zeros((8, LANES), np.uint32)) for _ in range(3)]
    loaded = "s8" if kind == "u8" else kind
    for operand, matrix, row, fragment in (
        ("a", a, row_a, fragments[0]),
        ("b", b, row_b, fragments[1]),
    ):
        memory = stored(matrix.astype(element_type(kind)), row, 40)
        runtime.call(f"ev_wmma_load_{operand}_{shape}_{loaded}", memory, 40, row, fragment)
    whole = "m16n16k16" if shape == "m16n16k8" else shape
    runtime.call(f"ev_wmma_load_c_{whole}_f32", stored(c, row_c, 36), 36, row_c, fragments[2])
    runtime.call(
        f"ev_wmma_mma_{shape}_{'s32' if integer else 'f32'}_{kind}", *fragments, fragments[2]
    )
    memory = stored(np.zeros((m, n), c.dtype), row_c, 36)
    runtime.call(f"ev_wmma_store_d_{whole}_f32", memory, 36, row_c, fragments[2])
    got = memory[:m, :n] if row_c else memory[:n, :m].T
    wanted = values_of(kind, a) @ values_of(kind, b) + c
    assert np.allclose(got, wanted, rtol=1e-5, atol=0 if integer else 1e-4)
    outside = memory[:, n:] if row_c else memory[:, m:]
    assert not outside.any()


@pytest.mark.parametrize("shape", ["m16n16k16", "m32n8k16", "m8n32k16"])
@pytest.mark.parametrize("row", [True, False])
def test_wmma_with_half_accumulators(runtime: Runtime, shape: str, row: bool) -> None:
    m, n, k = SHAPES[shape]
    a, b = random_bits("f16", (m, k), 4), random_bits("f16", (k, n), 5)
    c = np.random.default_rng(6).standard_normal((m, n)).astype(np.float16)
    fragments = [aligned(np.zeros((8, LANES), np.uint32)) for _ in range(3)]
    runtime.call(
        f"ev_wmma_load_a_{shape}_f16", stored(a.astype(np.uint16), True, 24), 24, 1, fragments[0]
    )
    runtime.call(
        f"ev_wmma_load_b_{shape}_f16", stored(b.astype(np.uint16), True, 40), 40, 1, fragments[1]
    )
    runtime.call(f"ev_wmma_load_c_{shape}_f16", stored(c, row, 40), 40, row, fragments[2])
    runtime.call(f"ev_wmma_mma_{shape}_f16_f16", *fragments, fragments[2])
    memory = stored(np.zeros((m, n), np.float16), row, 40)
    runtime.call(f"ev_wmma_store_d_{shape}_f16", memory, 40, row, fragments[2])
    got = memory[:m, :n] if row else memory[:n, :m].T
    assert np.allclose(
        got.astype(float), values_of("f16", a) @ values_of("f16", b) + c, rtol=2e-3, atol=2e-3
    )


def test_accumulators_of_m16n16k16_have_the_layout_that_programs_expect(runtime: Runtime) -> None:
    matrix = np.arange(256, dtype=np.float32).reshape(16, 16)
    fragment = aligned(np.zeros((8, LANES), np.float32))
    runtime.call("ev_wmma_load_c_m16n16k16_f32", matrix, 16, 1, fragment)
    for i in range(8):
        assert np.array_equal(
            fragment[i], matrix[G + 8 * (i // 2 % 2), 2 * T + i % 2 + 8 * (i // 4)]
        )


def test_a_stride_of_zero_repeats_one_line(runtime: Runtime) -> None:
    line = np.arange(16, dtype=np.uint16)
    fragment = aligned(np.zeros((8, LANES), np.uint32))
    runtime.call("ev_wmma_load_a_m16n16k16_f16", line, 0, 1, fragment)
    assert np.array_equal(fragment[0], line[2 * T] | line[2 * T + 1].astype(np.uint32) << 16)
    assert np.array_equal(fragment[1], fragment[0]) and np.array_equal(fragment[4:], fragment[:4])


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", [False, True])
def test_ldmatrix_and_stmatrix_follow_the_layout(runtime: Runtime, count: int, trans: bool) -> None:
    matrices = np.random.default_rng(1).integers(0, 65536, (count, 8, 8)).astype(np.uint16)
    addresses = aligned(
        np.resize(matrices.ctypes.data + 16 * np.arange(8 * count), LANES).astype(np.uint64)
    )
    out = aligned(np.zeros((count, LANES), np.uint32))
    runtime.call("ev_ldmatrix", addresses, count, trans, out)
    seen = matrices.transpose(0, 2, 1) if trans else matrices
    assert np.array_equal(out, seen[:, G, 2 * T] | seen[:, G, 2 * T + 1].astype(np.uint32) << 16)
    target = np.zeros_like(matrices)
    addresses = aligned(
        np.resize(target.ctypes.data + 16 * np.arange(8 * count), LANES).astype(np.uint64)
    )
    runtime.call("ev_stmatrix", addresses, count, trans, out)
    assert np.array_equal(target, matrices)
