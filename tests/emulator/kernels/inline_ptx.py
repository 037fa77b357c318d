"""Inline PTX: lop3, prmt, shf, add.cc, mul.wide, setp and selp, ex2.approx, fma, ld.global.nc and
st.global.cg.
"""

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out


def cases() -> list[Case]:
    return [_case("odd_size", 260, 64), _case("one_warp", 9, 32)]


def _case(name: str, n: int, block: int) -> Case:
    rng = np.random.default_rng(n)
    a, b = (rng.integers(0, 1 << 32, n, dtype=np.uint32) for _ in range(2))
    f = (rng.standard_normal(n) * 3).astype(np.float32)
    x, y, i = a.astype(np.uint64), b.astype(np.uint64), np.arange(n, dtype=np.uint64)
    product, total, mask = x * y, x + y, np.uint64(0xFFFFFFFF)
    low_product = product & mask
    shifted = (((y << np.uint64(32)) | x) << (i & np.uint64(31))) >> np.uint64(32)
    octets = np.stack([a, b], 1).view(np.uint8).astype(np.uint64)
    permuted = sum(octets[:, source] << np.uint64(8 * k) for k, source in enumerate((5, 1, 7, 3)))
    clamped = np.clip(a.view(np.int32), -1_000_000_000, 1_000_000_000).view(np.uint32)
    majority = (x & y) | (x & low_product) | (y & low_product)
    out = np.stack(
        [
            total & mask,
            (product >> np.uint64(32)) + (total >> np.uint64(32)),
            majority,
            shifted & mask,
            permuted,
            clamped,
        ],
        1,
    )
    wide = f.astype(np.float64)
    fout = np.stack([wide * wide + 1, np.minimum(wide, 1), np.exp2(wide)], 1)
    packed = ((x & np.uint64(0xFFFF)) | ((y & np.uint64(0xFFFF)) << np.uint64(16))) << np.uint64(20)
    args = (
        In(a),
        In(b),
        In(f),
        Out((n, 6), "uint32"),
        Out((n, 3), "float32"),
        Out(n, "uint64"),
        np.int32(n),
    )
    return Case(
        name,
        "inline_ptx",
        (-(-n // block), 1, 1),
        (block, 1, 1),
        args,
        {3: out.astype(np.uint32), 4: fout, 5: packed},
        atol=1e-6,
        rtol=1e-6,
        gpu=Close(rtol=5e-7),
    )
