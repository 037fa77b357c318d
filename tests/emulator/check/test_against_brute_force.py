"""The checker against a brute-force model that records every access to every byte, with a vector
clock for every thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evoengine.emulator.check.findings import RACES, Access, Check, Space
from tests.emulator.check.checker_driver import FULL, CheckerDriver, Launch
from tests.sampling import examples

WARPS, SHARED = 3, 64
THREADS = 32 * WARPS


@dataclass(frozen=True)
class WarpAccess:
    """One instruction of a warp: lane l of `mask` accesses start + stride * l, wrapped into shared
    memory.
    """

    warp: int
    kind: Access
    mask: int
    nbytes: int
    start: int
    stride: int

    def address(self, lane: int) -> int:
        return (self.start + self.stride * lane) * self.nbytes % SHARED


@dataclass(frozen=True)
class LaneSync:
    warp: int
    mask: int


@dataclass(frozen=True)
class Barrier:
    warps: tuple[int, ...]


@dataclass(frozen=True)
class Arrive:
    """Some warps arrive, later others wait, at a barrier that is used for nothing else."""

    warp: int
    barrier: int


@dataclass(frozen=True)
class Meet:
    barrier: int
    warps: tuple[int, ...]


Step = WarpAccess | LaneSync | Barrier | Arrive | Meet


@dataclass
class Model:
    """Happens-before by definition: a sees b iff a's clock has b's time."""

    clock: np.ndarray = field(default_factory=lambda: np.eye(THREADS, dtype=np.int64))
    past: dict[int, list[tuple[int, int, Access]]] = field(default_factory=dict)
    arrived: dict[int, np.ndarray] = field(default_factory=dict)
    races: int = 0

    def join(self, threads: Sequence[int], more: np.ndarray | None = None) -> None:
        known = self.clock[list(threads)].max(axis=0)
        self.clock[list(threads)] = known if more is None else np.maximum(known, more)
        for thread in threads:
            self.clock[thread, thread] += 1

    def touch(self, step: WarpAccess) -> None:
        fresh = []
        for lane in range(32):
            if step.mask >> lane & 1:
                thread = 32 * step.warp + lane
                for byte in range(step.address(lane), step.address(lane) + step.nbytes):
                    self.races += sum(
                        self.conflict(thread, step.kind, entry) for entry in self.past.get(byte, ())
                    )
                    fresh.append((byte, (thread, int(self.clock[thread, thread]), step.kind)))
        for byte, entry in fresh:
            self.past.setdefault(byte, []).append(entry)

    def conflict(self, thread: int, kind: Access, entry: tuple[int, int, Access]) -> bool:
        other, time, before = entry
        if (
            other == thread
            or (kind is Access.READ and before is Access.READ)
            or (kind is Access.ATOMIC and before is Access.ATOMIC)
        ):
            return False
        return bool(time > self.clock[thread, other])

    def run(self, steps: Sequence[Step]) -> int:
        for step in steps:
            match step:
                case WarpAccess():
                    self.touch(step)
                case LaneSync(warp, mask):
                    self.join([32 * warp + lane for lane in range(32) if mask >> lane & 1])
                case Barrier(warps):
                    self.join(threads_of(warps))
                case Arrive(warp, barrier):
                    self.join(threads_of([warp]))
                    known = self.clock[threads_of([warp])].max(axis=0)
                    known[threads_of([warp])] -= 1  # what it does next is not part of it
                    self.arrived[barrier] = np.maximum(self.arrived.get(barrier, 0), known)
                case Meet(barrier, warps):
                    self.join(threads_of(warps), self.arrived.pop(barrier, None))
        return self.races


def threads_of(warps: Sequence[int]) -> list[int]:
    return [32 * warp + lane for warp in warps for lane in range(32)]


def races_found(steps: Sequence[Step]) -> int:
    with (
        Launch() as launch,
        CheckerDriver(launch, threads=THREADS, shared=SHARED, checks=Check.RACES) as machine,
    ):
        machine.write(0, range(0, SHARED, 4), mask=(1 << SHARED // 4) - 1)
        machine.barrier()
        for step in steps:
            match step:
                case WarpAccess(warp, kind, mask, nbytes):
                    addresses = [step.address(lane) for lane in range(32) if mask >> lane & 1]
                    machine.access(Space.SHARED, kind, warp, addresses, mask=mask, bytes=nbytes)
                case LaneSync(warp, mask):
                    machine.warp_sync(warp, mask)
                case Barrier(warps):
                    machine.barrier(warps)
                case Arrive(warp, barrier):
                    machine.arrive(warp, barrier)
                case Meet(barrier, warps):
                    machine.barrier(warps, barrier)
        assert all(found.kind in RACES for found in launch.findings())
        return sum(found.times for found in launch.findings())


warps = st.integers(0, WARPS - 1)
masks = st.one_of(
    st.just(FULL), st.sampled_from([0xFFFF, 0xFFFF0000, 1, 2, 0x80000000]), st.integers(1, FULL)
)
groups = st.lists(warps, min_size=1, unique=True).map(lambda chosen: tuple(sorted(chosen)))


def accesses_of(kinds: Sequence[Access]) -> st.SearchStrategy[Step]:
    return st.builds(
        WarpAccess,
        warps,
        st.sampled_from(kinds),
        masks,
        st.sampled_from([1, 2, 4, 8]),
        st.integers(0, 40),
        st.integers(-2, 2),
    )


def programs(
    kinds: Sequence[Access], lane_masks: st.SearchStrategy[int]
) -> st.SearchStrategy[list[Step]]:
    syncs = st.builds(LaneSync, warps, lane_masks)
    meetings = [
        st.builds(Barrier, groups),
        st.builds(Arrive, warps, st.integers(1, 3)),
        st.builds(Meet, st.integers(1, 3), groups),
    ]
    return st.lists(
        st.one_of(accesses_of(kinds), accesses_of(kinds), syncs, *meetings), max_size=14
    )


@settings(max_examples=examples(300), deadline=None)
@given(programs([Access.READ, Access.WRITE], st.just(FULL)))
def test_a_race_is_found_exactly_where_there_is_one(steps: list[Step]) -> None:
    assert (races_found(steps) > 0) == (Model().run(steps) > 0)


@settings(max_examples=examples(300), deadline=None)
@given(programs([Access.READ, Access.WRITE, Access.ATOMIC], masks))
def test_nothing_is_found_where_there_is_no_race(steps: list[Step]) -> None:
    if not Model().run(steps):
        assert races_found(steps) == 0


def well_synchronised(steps: list[Step]) -> list[Step]:
    """The program with a barrier of all warps before everything that would race."""
    done: list[Step] = []
    for step in steps:
        if Model().run([*done, step]):
            done.append(Barrier(tuple(range(WARPS))))
        done.append(step)
    return done


@settings(max_examples=examples(150), deadline=None)
@given(programs([Access.READ, Access.WRITE], st.just(FULL)), st.integers(0, 20))
def test_a_program_with_all_its_barriers_is_clean_and_one_that_lacks_a_needed_one_is_not(
    steps: list[Step], chosen: int
) -> None:
    program = well_synchronised(steps)
    assert races_found(program) == 0
    places = [at for at, step in enumerate(program) if isinstance(step, Barrier)]
    if places:
        lacking = [step for at, step in enumerate(program) if at != places[chosen % len(places)]]
        assert (races_found(lacking) > 0) == (Model().run(lacking) > 0)
