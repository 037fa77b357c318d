"""atom and red against one lane after another."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from evoengine.emulator.device import Checks
from evoengine.emulator.emulator_errors import Unsupported
from tests.emulator.lower.small_kernels import run

LANES = 32
CELLS = np.arange(LANES) * 5 % 8  # four lanes share a cell
GIVEN = np.arange(LANES) * 7 % 19 - 6
# (what is there, what is given) -> what is there then
Model = Callable[[np.ndarray, np.ndarray], object]

_INTEGER: dict[str, Model] = {
    "add": lambda old, new: old + new,
    "min": min,
    "max": max,
    "and": lambda old, new: old & new,
    "or": lambda old, new: old | new,
    "xor": lambda old, new: old ^ new,
    "exch": lambda old, new: new,
    "inc": lambda old, new: 0 if old >= new else old + 1,
    "dec": lambda old, new: new if old == 0 or old > new else old - 1,
}
CASES = [
    *[("add", type_) for type_ in ("u32", "s32", "u64", "f32", "f64")],
    *[(op, type_) for op in ("min", "max") for type_ in ("u32", "s32", "u64", "s64")],
    *[(op, type_) for op in ("and", "or", "xor", "exch") for type_ in ("b32", "b64")],
    *[("inc", "u32"), ("dec", "u32"), ("add", "noftz.f16")],
]
DTYPES = {
    **{
        "u32": np.uint32,
        "b32": np.uint32,
        "s32": np.int32,
        "u64": np.uint64,
        "b64": np.uint64,
        "s64": np.int64,
    },
    **{"f32": np.float32, "f64": np.float64, "f16": np.float16},
}
LETTER = {2: "%h", 4: "%r", 8: "%q"}


def _model(
    operation: str, cells: np.ndarray, given: np.ndarray, lanes: range | list[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Cells and results after all lanes, one after another; an inactive lane gets 77."""
    cells, results = cells.copy(), np.full_like(given, 77)
    with np.errstate(over="ignore"):
        for lane in lanes:
            results[lane] = cells[CELLS[lane]]
            cells[CELLS[lane]] = _INTEGER[operation](cells[CELLS[lane]], given[lane])
    return cells, results


def _places(size: int) -> str:
    """%q8: the lane's cell in array 0, %q9 its element of array 1, %q10 of array 2."""
    return f"""
    mul.lo.u32 %r0, %lane, 5; and.b32 %r0, %r0, 7; mul.wide.u32 %q0, %r0, {size}; add.s64 %q8, %rd0, %q0;
    mul.wide.u32 %q0, %lane, {size}; add.s64 %q9, %rd1, %q0; add.s64 %q10, %rd2, %q0;
    mov.b{8 * size} {LETTER[size]}5, 77; ld.global.b{8 * size} {LETTER[size]}6, [%q9];"""


def _end(size: int) -> str:
    return f"st.global.b{8 * size} [%q10], {LETTER[size]}5;"


def _arrays(type_: str) -> list[np.ndarray]:
    dtype = DTYPES[type_.removeprefix("noftz.")]
    return [
        np.arange(3, 11).astype(dtype),
        np.abs(GIVEN).astype(dtype) if dtype in (np.uint32, np.uint64) else GIVEN.astype(dtype),
    ]


@pytest.mark.parametrize(("operation", "type_"), CASES)
@pytest.mark.parametrize("checks", [None, Checks()], ids=["", "checked"])
def test_lanes_that_share_a_cell_are_serialised(
    operation: str, type_: str, checks: Checks | None
) -> None:
    cells, given = _arrays(type_)
    size, letter = cells.itemsize, LETTER[cells.itemsize]
    body = (
        f"{_places(size)} atom.global.{operation}.{type_} {letter}5, [%q8], {letter}6; {_end(size)}"
    )
    ran = run(body, [cells, given, np.zeros_like(given)], checks=checks)
    after, results = _model(operation, cells, given, range(LANES))
    np.testing.assert_array_equal(ran.arrays[0], after)
    np.testing.assert_array_equal(ran.arrays[2], results)
    assert ran.kinds() == []


@pytest.mark.parametrize("form", ["guard", "branch"])
def test_inactive_lanes_access_nothing(form: str) -> None:
    cells, given = _arrays("s32")
    atom = "atom.global.add.s32 %r5, [%q8], %r6;"
    part = f"@%p0 {atom}" if form == "guard" else f"@!%p0 bra SKIP; {atom} SKIP:"
    body = (
        f"{_places(4)} and.b32 %r1, %lane, 2; setp.eq.u32 %p0, %r1, 2; @!%p0 mov.u64 %q8, 0; {part}"
        f" {_end(4)}"
    )
    ran = run(body, [cells, given, np.zeros_like(given)])
    after, results = _model("add", cells, given, [lane for lane in range(LANES) if lane & 2])
    np.testing.assert_array_equal(ran.arrays[0], after)
    np.testing.assert_array_equal(ran.arrays[2], results)


@pytest.mark.parametrize("threads", [1, 21, 96])
def test_red_of_every_thread_counts(threads: int) -> None:
    ran = run(
        "red.relaxed.gpu.global.add.u32 [%rd0], 3;",
        [np.array([4], np.uint32)],
        threads=threads,
        blocks=5,
    )
    assert ran.arrays[0].tolist() == [4 + 3 * 5 * threads]


@pytest.mark.parametrize("space", ["shared", "generic"])
@pytest.mark.parametrize("checks", [None, Checks()], ids=["", "checked"])
def test_shared_cells(space: str, checks: Checks | None) -> None:
    generic = "cvta.shared.u64 %q0, %q0;" if space == "generic" else ""
    dot = ".shared" if space == "shared" else ""
    body = f"""
    mov.u64 %q0, tile; setp.eq.u32 %p0, %t, 0; @%p0 st.shared.u32 [%q0], 100; bar.sync 0; {generic}
    atom{dot}.add.u32 %r1, [%q0], %t; bar.sync 0; ld{dot}.u32 %r2, [%q0]; st.global.u32 [%own0], %r2; st.global.u32 [%own1], %r1;"""
    ran = run(
        body,
        [np.zeros(64, np.uint32), np.zeros(64, np.uint32)],
        threads=64,
        shared=16,
        checks=checks,
    )
    assert ran.arrays[0].tolist() == [100 + 64 * 63 // 2] * 64
    assert ran.arrays[1].tolist() == [100 + thread * (thread - 1) // 2 for thread in range(64)]
    assert ran.kinds() == []


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_compare_and_swap_succeeds_only_with_the_expected_value(bits: int) -> None:
    dtype, letter = {16: np.uint16, 32: np.uint32, 64: np.uint64}[bits], LETTER[bits // 8]
    convert = {
        16: "cvt.u16.u32 %h0, %lane;",
        32: "mov.u32 %r0, %lane;",
        64: "cvt.u64.u32 %q0, %lane;",
    }[bits]
    body = f"""
    {convert} add.u{bits} {letter}1, {letter}0, 1; mul.wide.u32 %q9, %lane, {bits // 8}; add.s64 %q9, %rd1, %q9;
    atom.global.cas.b{bits} {letter}2, [%rd0], {letter}0, {letter}1; st.global.b{bits} [%q9], {letter}2;"""
    cell, old = run(body, [np.zeros(4, dtype), np.zeros(LANES, dtype)]).arrays
    assert cell.tolist() == [LANES, 0, 0, 0]  # every lane found what the one before it left
    assert old.tolist() == list(range(LANES))


def test_packed_halves_add_both() -> None:
    given = np.arange(64, dtype=np.float16).reshape(32, 2)
    ran = run(
        "ld.global.b32 %r0, [%own1]; red.global.add.noftz.f16x2 [%rd0], %r0;",
        [np.zeros(2, np.float16), given],
    )
    assert ran.arrays[0].tolist() == given.astype(float).sum(0).tolist()


@pytest.mark.parametrize(("offset", "kind"), [(8 * 4, "OUT_OF_BOUNDS"), (2, "MISALIGNED")])
def test_a_cell_out_of_bounds_is_found_and_not_accessed(offset: int, kind: str) -> None:
    cells, given = _arrays("u32")
    body = (
        f"{_places(4)} setp.eq.u32 %p0, %lane, 9; @%p0 add.s64 %q8, %q8, {offset};"
        f" atom.global.add.u32 %r5, [%q8], %r6; {_end(4)}"
    )
    ran = run(body, [cells, given, np.zeros_like(given)], checks=Checks())
    assert ran.kinds() == [kind]
    after, _ = _model("add", cells, given, [lane for lane in range(LANES) if lane != 9])
    np.testing.assert_array_equal(ran.arrays[0], after)


MESSAGE = """
    mov.u32 %r0, %ctaid.x; setp.eq.u32 %p0, %r0, 0; @!%p0 bra READER;
    st.global.u32 [%rd0], 5; {release} bra END;
    READER: {acquire} ld.global.u32 %r2, [%rd0]; st.global.u32 [%rd0+4], %r2;
    END:"""


@pytest.mark.parametrize(
    ("release", "kinds"),
    [
        ("red.release.gpu.global.add.u32 [%rd0+8], 1;", []),
        ("atom.acq_rel.sys.global.add.u32 %r1, [%rd0+8], 1;", []),
        ("membar.gl; red.relaxed.gpu.global.add.u32 [%rd0+8], 1;", []),
        ("fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%rd0+8], 1;", []),
        ("st.release.gpu.global.u32 [%rd0+8], 1;", []),
        ("red.relaxed.gpu.global.add.u32 [%rd0+8], 1;", ["READ_AFTER_WRITE"]),
        ("red.release.cta.global.add.u32 [%rd0+8], 1;", ["READ_AFTER_WRITE"]),
        ("membar.cta; red.relaxed.gpu.global.add.u32 [%rd0+8], 1;", ["READ_AFTER_WRITE"]),
    ],
)
@pytest.mark.parametrize(
    "acquire",
    [
        "ld.acquire.gpu.global.u32 %r1, [%rd0+8];",
        "atom.acquire.gpu.global.or.b32 %r1, [%rd0+8], 0;",
    ],
)
def test_a_release_orders_earlier_accesses(release: str, kinds: list[str], acquire: str) -> None:
    ran = run(
        MESSAGE.format(release=release, acquire=acquire),
        [np.zeros(4, np.uint32)],
        threads=1,
        blocks=2,
        checks=Checks(),
    )
    assert ran.arrays[0].tolist() == [5, 5, 1, 0]
    assert ran.kinds() == kinds


@pytest.mark.parametrize(
    "text",
    [
        "atom.global.add.v2.f32 {%f0, %f1}, [%rd0], {%f2, %f3}",
        "atom.global.min.f32 %f0, [%rd0], %f1",
        "atom.global.add.b32 %r0, [%rd0], %r1",
        "red.async.relaxed.cluster.global.add.u32 [%rd0], %r1",
    ],
)
def test_other_atomics_are_refused(text: str) -> None:
    with pytest.raises(Unsupported, match=text.split()[0].replace(".", r"\.")):
        run(f"{text};", [np.zeros(4, np.uint32)])
