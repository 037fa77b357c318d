"""cp.async: what it copies, what it leaves unchanged, and pending copies in checked mode."""

from __future__ import annotations

import numpy as np
import pytest

from evoengine.emulator.device import Checks
from evoengine.emulator.emulator_errors import Unsupported
from tests.emulator.lower.small_kernels import run

SOURCE = np.random.default_rng(3).integers(1, 256, 32 * 16).astype(np.uint8)
# Each lane has a piece of 16 bytes: %q1 in shared memory, %q2 in array 0, %q3 in array 1.
PLACES = """
    mul.wide.u32 %q0, %t, 16; mov.u64 %q1, tile; add.s64 %q1, %q1, %q0; add.s64 %q2, %rd0, %q0; add.s64 %q3, %rd1, %q0;
    mov.b32 %r1, 0; mov.b32 %r2, -1; st.shared.v4.b32 [%q1], {%r2, %r2, %r2, %r2};"""
WAIT = "cp.async.commit_group; cp.async.wait_group 0;"
OUT = (
    "ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%q1]; st.global.v4.b32 [%q3], {%r10, %r11, %r12,"
    " %r13};"
)


def _copied(
    copy: str, wait: str = WAIT, threads: int = 32, checks: Checks | None = None
) -> tuple[np.ndarray, list[str]]:
    ran = run(
        f"{PLACES} {copy} {wait} {OUT}",
        [SOURCE, np.zeros_like(SOURCE)],
        shared=512,
        threads=threads,
        checks=checks,
    )
    return ran.arrays[1].reshape(32, 16), ran.kinds()


def _expected(size: int, given: np.ndarray) -> np.ndarray:
    """Pieces of 0xff of which each lane's first `size` bytes are copied, zero from its `given`
    on.
    """
    pieces = np.full((32, 16), 0xFF, np.uint8)
    for lane, piece in enumerate(SOURCE.reshape(32, 16)):
        pieces[lane, :size] = 0
        pieces[lane, : min(size, given[lane])] = piece[: min(size, given[lane])]
    return pieces


@pytest.mark.parametrize("checks", [None, Checks()], ids=["", "checked"])
@pytest.mark.parametrize(("how", "size"), [("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)])
def test_full_sizes_are_copied(how: str, size: int, checks: Checks | None) -> None:
    got, kinds = _copied(f"cp.async.{how}.shared.global [%q1], [%q2], {size};", checks=checks)
    np.testing.assert_array_equal(got, _expected(size, np.full(32, 16)))
    assert kinds == []


@pytest.mark.parametrize("checks", [None, Checks()], ids=["", "checked"])
@pytest.mark.parametrize("size", [4, 8, 16])
def test_bytes_beyond_the_source_are_zero(size: int, checks: Checks | None) -> None:
    copy = (
        f"and.b32 %r0, %lane, 3; mul.lo.u32 %r0, %r0, {size // 4}; cp.async.ca.shared.global [%q1],"
        f" [%q2], {size}, %r0;"
    )
    got, kinds = _copied(copy, checks=checks)
    np.testing.assert_array_equal(got, _expected(size, np.arange(32) % 4 * (size // 4)))
    assert kinds == []


@pytest.mark.parametrize("checks", [None, Checks()], ids=["", "checked"])
def test_a_source_of_no_bytes_is_not_accessed(checks: Checks | None) -> None:
    copy = """
    setp.lt.u32 %p0, %lane, 9; selp.u32 %r0, 16, 0, %p0; @!%p0 mov.u64 %q2, 0;
    cp.async.cg.shared.global.L2::128B [%q1], [%q2], 16, %r0;"""
    got, kinds = _copied(copy, checks=checks)
    np.testing.assert_array_equal(got, _expected(16, np.where(np.arange(32) < 9, 16, 0)))
    assert kinds == []


def test_a_predicate_ignores_the_source() -> None:
    copy = (
        "setp.gt.u32 %p0, %lane, 20; @%p0 mov.u64 %q2, 0; cp.async.cg.shared.global [%q1], [%q2],"
        " 16, %p0;"
    )
    np.testing.assert_array_equal(
        _copied(copy)[0], _expected(16, np.where(np.arange(32) > 20, 0, 16))
    )


@pytest.mark.parametrize("form", ["guard", "branch"])
def test_inactive_lanes_copy_nothing(form: str) -> None:
    copy = "cp.async.cg.shared.global [%q1], [%q2], 16;"
    skip = f"@%p0 {copy}" if form == "guard" else f"@!%p0 bra SKIP; {copy} SKIP:"
    got, _ = _copied(f"setp.lt.u32 %p0, %lane, 13; @!%p0 mov.u64 %q2, 0; {skip}")
    np.testing.assert_array_equal(got[:13], SOURCE.reshape(32, 16)[:13])
    assert (got[13:] == 0xFF).all()


def test_a_partial_warp_copies_for_its_threads() -> None:
    got, _ = _copied("cp.async.cg.shared.global [%q1], [%q2], 16;", threads=21)
    np.testing.assert_array_equal(got[:21], SOURCE.reshape(32, 16)[:21])
    assert not got[21:].any()


COPY = "cp.async.ca.shared.global [%q1], [%q2], 16;"


@pytest.mark.parametrize(
    ("wait", "kinds"),
    [
        ("", ["ASYNC_READ"]),
        ("cp.async.commit_group;", ["ASYNC_READ"]),
        ("cp.async.wait_group 0;", ["ASYNC_READ"]),  # nothing is committed
        ("cp.async.commit_group; cp.async.wait_group 1;", ["ASYNC_READ"]),
        ("cp.async.commit_group; cp.async.commit_group; cp.async.wait_group 1;", []),
        ("cp.async.wait_all;", []),
        (WAIT, []),
    ],
)
def test_reading_before_the_wait_is_found(wait: str, kinds: list[str]) -> None:
    assert _copied(COPY, wait, checks=Checks())[1] == kinds


def test_copies_outside_buffers_are_found_and_not_executed() -> None:
    for move in ("add.s64 %q1, %q1, 512;", "add.s64 %q2, %q2, 512;"):
        body = (
            f"{PLACES} mov.u64 %q4, %q1; setp.eq.u32 %p0, %lane, 7; @%p0 {move} {COPY} {WAIT}"
            f" {OUT.replace('%q1', '%q4')}"
        )
        ran = run(body, [SOURCE, np.zeros_like(SOURCE)], shared=512, checks=Checks())
        assert ran.kinds() == ["OUT_OF_BOUNDS"]
        got = ran.arrays[1].reshape(32, 16)
        assert (got[7] == 0xFF).all()
        np.testing.assert_array_equal(np.delete(got, 7, 0), np.delete(SOURCE.reshape(32, 16), 7, 0))


@pytest.mark.parametrize("offset", [512, 1 << 20, 0xFFFFFFF0])
def test_a_target_beyond_shared_memory_does_not_leave_its_red_zone(offset: int) -> None:
    got, _ = _copied(f"mov.u64 %q5, %q1; add.s64 %q5, %q5, {offset}; {COPY.replace('%q1', '%q5')}")
    assert (got == 0xFF).all()


@pytest.mark.parametrize(
    "text",
    [
        "cp.async.ca.shared.global [%q1], [%q2], 12",
        "cp.async.mbarrier.arrive.shared.b64 [%q1]",
        "cp.async.bulk.commit_group",
    ],
)
def test_other_copies_are_refused(text: str) -> None:
    with pytest.raises(Unsupported, match=r"cp\.async"):
        _copied(f"{text};")
