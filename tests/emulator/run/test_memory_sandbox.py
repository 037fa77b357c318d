"""A kernel of any kind changes nothing outside of the arena: it ends the process, or hits memory of
the device.
"""

from __future__ import annotations

import faulthandler
import mmap
import os
import random
import signal
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import pytest

from evoengine.emulator.device import Checks, Emulator
from evoengine.emulator.emulator_errors import EmulatorError
from evoengine.emulator.lower import address, atomic, memory_access
from evoengine.emulator.lower.context import LoweringContext, Value
from tests.emulator.lower.small_kernels import kernel

CANARY_BYTES = 1 << 20
PATTERN = 0x5C
# %q1 is where a kernel aims in all: the 64 bits that it is given; %q2 the same for each lane.
AIMS = {
    "one address": "mov.b64 %q2, %q1;",
    "dense affine": "mul.wide.u32 %q3, %t, 4; add.s64 %q2, %q1, %q3;",
    "wide affine": "mul.wide.u32 %q3, %t, 65536; add.s64 %q2, %q1, %q3;",
    "widest affine": (
        "mul.wide.u32 %q3, %t, 65536; mul.lo.u64 %q3, %q3, 65536; add.s64 %q2, %q1, %q3;"
    ),
    "falling affine": "mul.wide.u32 %q3, %t, 4; sub.s64 %q2, %q1, %q3;",
    "falling wide affine": "mul.wide.u32 %q3, %t, 65536; sub.s64 %q2, %q1, %q3;",
    "scattered": (
        "mul.lo.u32 %r1, %t, 40503; and.b32 %r1, %r1, 1020; cvt.u64.u32 %q3, %r1; xor.b64 %q2, %q1,"
        " %q3;"
    ),
}
HITS = {
    "byte": "st.global.u8 [%q2], %r9;",
    "half": "st.global.b16 [%q2], %h1;",
    "word": "st.global.u32 [%q2], %r9;",
    "guarded word": "@%p1 st.global.u32 [%q2], %r9;",
    "two words": "st.global.v2.u32 [%q2], {%r9, %r9};",
    "four floats": "st.global.v4.f32 [%q2], {%f1, %f1, %f1, %f1};",
    "two longs": "st.global.v2.u64 [%q2+8], {%q9, %q9};",
    "generic": "st.u32 [%q2-4], %r9;",
    "shared": (
        "mov.u64 %q5, 0; cvta.shared.u64 %q5, %q5; sub.s64 %q2, %q2, %q5; st.shared.u32 [%q2], %r9;"
    ),
    "local": (
        "mov.u64 %q5, 0; cvta.local.u64 %q5, %q5; sub.s64 %q2, %q2, %q5; st.local.u32 [%q2], %r9;"
    ),
    "atomic": "atom.global.add.u32 %r8, [%q2], %r9;",
    "atomic in shared memory": (
        "mov.u64 %q5, 0; cvta.shared.u64 %q5, %q5; sub.s64 %q2, %q2, %q5; atom.shared.exch.b32 %r8,"
        " [%q2], %r9;"
    ),
    "swap": "atom.global.cas.b64 %q8, [%q2], %q7, %q9;",
    "reduction": "red.global.add.f32 [%q2], %f1;",
    "asynchronous copy": (
        "mov.u64 %q5, 0; cvta.shared.u64 %q5, %q5; sub.s64 %q2, %q2, %q5; cp.async.ca.shared.global"
        " [%q2], [%rd0], 16;"
    ),
    "store of a matrix": (
        "and.b64 %q2, %q2, -16; stmatrix.sync.aligned.m8n8.x1.shared.b16 [%q2], {%r9};"
    ),
    "tile": (
        "wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%q2], {%f1, %f1, %f1, %f1, %f1, %f1,"
        " %f1, %f1}, %r9;"
    ),
}
VALUES = (
    "mov.u32 %r9, 305419896; mov.u64 %q9, 1311768467463790320; mov.f32 %f1, 0f12345678; mov.b16"
    " %h1, 4660; setp.lt.u32 %p1, %t, 20;"
)


class Canary:
    """Memory that this process shares with its children, outside of any arena."""

    def __init__(self) -> None:
        self._map = mmap.mmap(-1, CANARY_BYTES)
        self.bytes = np.frombuffer(self._map, dtype=np.uint8)
        self.bytes[:] = PATTERN

    @property
    def middle(self) -> int:
        return int(self.bytes.ctypes.data) + CANARY_BYTES // 2

    @property
    def is_whole(self) -> bool:
        return bool((self.bytes == PATTERN).all())


@pytest.fixture
def canary() -> Iterator[Canary]:
    yield Canary()


@cache
def device(scalar_memory: bool) -> Emulator:
    return Emulator("l4", threads=1, without=("avx512", "avx10", "amx") if scalar_memory else ())


def in_child(work: Callable[[], None]) -> int:
    """How a child that does `work` ends: 0, the signal that ended it, negative, or 99 after an
    exception.
    """
    child = os.fork()
    if child == 0:
        code = 99
        try:
            faulthandler.disable()  # of pytest: the end by a signal is what is looked for
            signal.alarm(60)
            work()
            code = 0
        finally:
            # also with an exception on its way: this is not the process that reports tests
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def aimed_at(
    where: int, aim: str, hit: str, *, checked: bool = False, scalar_memory: bool = False
) -> int:
    """How the process ends in which a kernel stores to `where`."""
    emulator = device(scalar_memory)
    text = kernel(f"{VALUES} mov.b64 %q1, %rd1; {AIMS[aim]} {HITS[hit]}", arrays=2, shared=4096)

    def work() -> None:
        source = emulator.memory.allocate(4096)
        args = [source.to_bytes(8, "little"), (where & (1 << 64) - 1).to_bytes(8, "little")]
        emulator.load(text).launch(
            "k", grid=(1, 1, 1), block=(64, 1, 1), args=args, checks=Checks() if checked else None
        )

    return in_child(work)


@pytest.mark.parametrize("hit", HITS)
@pytest.mark.parametrize("aim", ["one address", "scattered"])
def test_no_way_of_writing_reaches_memory_of_the_process(
    aim: str, hit: str, canary: Canary
) -> None:
    end = aimed_at(canary.middle, aim, hit)
    assert end in (0, -signal.SIGSEGV) and canary.is_whole


@pytest.mark.parametrize("aim", AIMS)
@pytest.mark.parametrize("scalar_memory", [False, True], ids=["vector memory", "scalar memory"])
def test_no_variance_of_addresses_reaches_memory_of_the_process(
    aim: str, scalar_memory: bool, canary: Canary
) -> None:
    for hit in ("word", "byte", "four floats", "atomic"):
        assert (
            aimed_at(canary.middle, aim, hit, scalar_memory=scalar_memory) in (0, -signal.SIGSEGV)
            and canary.is_whole
        ), hit


@pytest.mark.parametrize(
    "hit",
    [
        "word",
        "four floats",
        "shared",
        "local",
        "atomic",
        "asynchronous copy",
        "tile",
        "store of a matrix",
    ],
)
def test_in_checked_mode_a_store_out_of_bounds_does_not_end_the_process(
    hit: str, canary: Canary
) -> None:
    assert aimed_at(canary.middle, "scattered", hit, checked=True) == 0 and canary.is_whole


@pytest.mark.parametrize("aim", AIMS)
def test_at_the_edges_of_the_arena_nothing_reaches_beyond(aim: str, canary: Canary) -> None:
    memory = device(False).memory
    for where in (
        memory.base,
        memory.base + (1 << memory.bits) - 4,
        memory.base - 4,
        memory.base + (1 << memory.bits),
    ):
        for hit in ("word", "four floats"):
            assert aimed_at(where, aim, hit) in (0, -signal.SIGSEGV) and canary.is_whole


def test_random_addresses_of_any_space_never_change_the_process(canary: Canary) -> None:
    chance = random.Random(0)  # noqa: S311 - the same addresses every time are wanted
    for _ in range(40):
        where = chance.choice(
            [
                chance.getrandbits(64),
                canary.middle ^ chance.getrandbits(18),
                canary.middle ^ chance.getrandbits(45),
                -chance.getrandbits(20),
            ]
        )
        end = aimed_at(
            where,
            chance.choice(list(AIMS)),
            chance.choice(list(HITS)),
            checked=chance.random() < 0.2,
        )
        assert end in (0, -signal.SIGSEGV) and canary.is_whole


@pytest.mark.parametrize("hit", ["word", "four floats", "shared", "local", "atomic"])
def test_without_masking_the_same_kernels_would_reach_it(
    hit: str, canary: Canary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the tests above can fail."""

    def anywhere(cx: LoweringContext, value: Value) -> Value:
        return value

    def text(cx: LoweringContext, value: Value) -> str:
        return value.text

    for module in (memory_access, atomic):
        monkeypatch.setattr(module, "mask_into_arena", anywhere)
    monkeypatch.setattr(memory_access, "mask_base_into_arena", text)
    assert aimed_at(canary.middle, "one address", hit) == 0 and not canary.is_whole
    assert address.mask_into_arena is not anywhere


def test_reads_beyond_the_parameters_are_refused() -> None:
    text = kernel("ld.param.u64 %q1, [p0+4096]; st.global.u64 [%rd0], %q1;", arrays=1)
    emulator = device(False)
    with pytest.raises(EmulatorError, match="reads byte 4096 of 8 bytes of parameters"):
        emulator.load(text).launch("k", grid=(1, 1, 1), block=(32, 1, 1), args=[bytes(8)])
