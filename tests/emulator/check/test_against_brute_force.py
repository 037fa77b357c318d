"""The checker against a brute-force model that records every access to every byte, with a vector
clock for every thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evoengine.emulator.check.findings import RACES, Access, Check, FindingKind, Space
from tests.emulator.check.checker_driver import FULL, CheckerDriver, Launch
from tests.sampling import examples

WARPS, SHARED, FLAGS = 3, 64, 4
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


@dataclass(frozen=True)
class Fence:
    warp: int


@dataclass(frozen=True)
class WriteFlag:
    """A lane writes a flag, which lies behind what the accesses touch."""

    warp: int
    lane: int
    flag: int


@dataclass(frozen=True)
class ReadFlag:
    """A warp reads a flag, for all of its lanes."""

    warp: int
    flag: int


Step = WarpAccess | LaneSync | Barrier | Arrive | Meet | Fence | WriteFlag | ReadFlag


@dataclass
class Model:
    """Happens-before by definition: a sees b iff a's clock has b's time."""

    clock: np.ndarray = field(default_factory=lambda: np.eye(THREADS, dtype=np.int64))
    past: dict[int, list[tuple[int, int, Access]]] = field(default_factory=dict)
    arrived: dict[int, np.ndarray] = field(default_factory=dict)
    arriving: dict[int, set[int]] = field(default_factory=dict)  # the warps, by barrier
    # by barrier, of the last meeting: the warps that waited with their times, and all of them
    met: dict[int, tuple[dict[int, int], set[int]]] = field(default_factory=dict)
    fenced: dict[int, np.ndarray] = field(default_factory=dict)  # the clocks of a warp's lanes
    flags: dict[int, np.ndarray] = field(default_factory=dict)  # what comes before each
    races: int = 0
    mixed: int = 0  # meetings of warps at a barrier that may have met others there

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

    def meet(self, barrier: int, warps: Sequence[int]) -> None:
        """Counts the meeting if one of the warps could have come in place of those before it."""
        group = self.arriving.pop(barrier, set()).union(warps)
        waited, before = self.met.get(barrier, ({}, set()))
        is_mixed = any(
            all(self.clock[32 * warp, 32 * other] < time for other, time in waited.items())
            for warp in set(warps) - before
        )
        self.mixed += bool(waited) and max(len(before), len(group)) > 1 and is_mixed
        self.join(threads_of(warps), self.arrived.pop(barrier, None))
        self.met[barrier] = {w: int(self.clock[32 * w, 32 * w]) for w in warps}, group

    def write_flag(self, step: WriteFlag) -> None:
        """A flag has what its lane knew at the fence, and of its own warp what it has learned since
        of the accesses before the fence.
        """
        own, lane = threads_of([step.warp]), 32 * step.warp + step.lane
        before = np.zeros(THREADS, dtype=np.int64)
        if (at_fence := self.fenced.get(step.warp)) is not None:
            before[:] = at_fence[step.lane]
            before[own] = np.minimum(self.clock[lane, own], at_fence.diagonal(32 * step.warp))
        self.flags[step.flag] = before

    def run(self, steps: Sequence[Step]) -> int:
        """The number of races."""
        self.meet(0, range(WARPS))
        for step in steps:
            match step:
                case WarpAccess():
                    self.touch(step)
                case LaneSync(warp, mask):
                    self.join([32 * warp + lane for lane in range(32) if mask >> lane & 1])
                case Barrier(warps):
                    self.meet(0, warps)
                case Arrive(warp, barrier):
                    self.arriving.setdefault(barrier, set()).add(warp)
                    self.join(threads_of([warp]))
                    known = self.clock[threads_of([warp])].max(axis=0)
                    known[threads_of([warp])] -= 1  # what it does next is not part of it
                    self.arrived[barrier] = np.maximum(self.arrived.get(barrier, 0), known)
                case Meet(barrier, warps):
                    self.meet(barrier, warps)
                case Fence(warp):
                    own = threads_of([warp])
                    self.fenced[warp] = self.clock[own].copy()
                    self.clock[own, own] += 1
                case WriteFlag():
                    self.write_flag(step)
                case ReadFlag(warp, flag) if flag in self.flags:
                    own = threads_of([warp])
                    self.clock[own] = np.maximum(self.clock[own], self.flags[flag])
        return self.races


def threads_of(warps: Sequence[int]) -> list[int]:
    return [32 * warp + lane for warp in warps for lane in range(32)]


def races_found(steps: Sequence[Step]) -> int:
    """The number of races that the checker finds."""
    return found_in(steps)[0]


def found_in(steps: Sequence[Step]) -> tuple[int, int]:
    """The number of races and of mixed barriers that the checker finds."""
    with (
        Launch() as launch,
        CheckerDriver(
            launch, threads=THREADS, shared=SHARED + 4 * FLAGS, checks=Check.RACES
        ) as machine,
    ):
        words = SHARED // 4 + FLAGS
        machine.write(0, range(0, 4 * words, 4), mask=(1 << words) - 1)
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
                case Fence(warp):
                    machine.block_fence(warp)
                case WriteFlag(warp, lane, flag):
                    place = SHARED + 4 * flag
                    machine.access(Space.SHARED, Access.STRONG_WRITE, warp, place, mask=1 << lane)
                case ReadFlag(warp, flag):
                    place = SHARED + 4 * flag
                    machine.access(Space.SHARED, Access.STRONG_READ, warp, place, mask=1)
        found = launch.findings()
        mixed = [item for item in found if item.kind is FindingKind.MIXED_BARRIER]
        races = [item for item in found if item.kind in RACES]
        assert len(mixed) + len(races) == len(found)
        return sum(item.times for item in races), sum(item.times for item in mixed)


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


@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(
        st.one_of(
            st.builds(Barrier, groups),
            st.builds(Arrive, warps, st.integers(1, 3)),
            st.builds(Meet, st.integers(1, 3), groups),
        ),
        max_size=14,
    )
)
def test_warps_that_may_meet_others_at_a_barrier_are_found(steps: list[Step]) -> None:
    model = Model()
    model.run(steps)
    assert found_in(steps)[1] == model.mixed


@st.composite
def handovers(draw: st.DrawFn) -> list[Step]:
    """A warp writes data, synchronises, fences and writes its flag; another reads the flag, and
    then the data. Steps may be missing or in another order.
    """
    flag = draw(st.integers(0, FLAGS - 1))
    warp, lane = flag % WARPS, 5 * (flag // WARPS)  # one writer for each flag
    other = draw(st.sampled_from([it for it in range(WARPS) if it != warp]))
    start = draw(st.integers(0, 3))
    published: list[Step] = [
        LaneSync(warp, draw(st.sampled_from([FULL, FULL, 0xFFF]))),
        Fence(warp),
    ]
    data = st.sampled_from([0xFFF, 1, 0x20, 0xFF])
    steps: list[Step] = [
        WarpAccess(warp, Access.WRITE, draw(data), 4, start, 1),
        *(published if draw(st.booleans()) else reversed(published)),
        WriteFlag(warp, lane, flag),
        ReadFlag(other, flag),
        WarpAccess(
            other, draw(st.sampled_from([Access.READ, Access.WRITE])), draw(data), 4, start, 1
        ),
    ]
    missing = draw(st.integers(0, 2 * len(steps)))
    return [step for place, step in enumerate(steps) if place != missing]


@settings(max_examples=examples(600), deadline=None)
@given(
    st.lists(st.one_of(handovers(), st.builds(Barrier, groups).map(lambda it: [it])), max_size=4)
)
def test_nothing_is_found_where_flags_order_the_warps(parts: list[list[Step]]) -> None:
    steps = [Barrier(tuple(range(WARPS))), *(step for part in parts for step in part)]
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
