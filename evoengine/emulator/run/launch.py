"""Runs a launch: host threads take thread blocks in turn and run their warps."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy

from evoengine.emulator.check.findings import AccessCounts, Contention, Finding, SiteCounts
from evoengine.emulator.run.abi import PRINT, BlockRecord, LaunchRecord
from evoengine.emulator.run.geometry import LaunchGeometry
from evoengine.emulator.run.host_thread import HostThread, LaunchFault
from evoengine.emulator.run.launch_checker import LaunchChecker
from evoengine.emulator.run.memory import DeviceMemory

MAX_BLOCK_WORK = 1 << 16  # blocks whose work is recorded individually: half a megabyte
# blocks whose warps are told apart: summing work takes as long as a basic block or two
MAX_WARP_WORK = 32
WHAT_OF_VISITS = 5  # EV_VISITS and what follows it in checker.h, as in Contention
COMMON_OF = 64  # blocks of which the checker knows which addresses they have in common

# (mask of lanes, address of formats, address of arguments, kind) -> whether more may be printed
PrintCallback = Callable[[int, int, int, int], bool]


@dataclass(frozen=True)
class LaunchCode:
    """The code of a launch, by its addresses in this process."""

    driver: int  # ev_run, or ev_run_guarded
    print_nothing: int  # ev_print_nothing
    kernel: int
    parameters: int
    variables: int  # global and constant
    weights: Sequence[int]  # work of one execution of each basic block by a warp
    poison: int  # the byte that fills local memory, and shared memory before each block


@dataclass(frozen=True)
class LaunchOutcome:
    """The result of running blocks."""

    counters: numpy.ndarray  # int64 [basic blocks, 2]: executions by warps, and by lanes
    fault: LaunchFault | None
    blocks_run: int
    findings: tuple[Finding, ...]
    accesses: AccessCounts | None
    site_accesses: tuple[SiteCounts, ...]  # by instruction; empty without a checker
    contention: Contention
    rounds: int  # of loops that one host thread ran, at most: what its fuel is counted in
    # uint64 [blocks run, MAX_BLOCK_WORK at most]: sum of the weights that each block executed
    block_work: numpy.ndarray
    # uint64 [blocks run, MAX_WARP_WORK at most, warps of a block]: the same for each warp
    warp_work: numpy.ndarray


def run_blocks(
    code: LaunchCode,
    geometry: LaunchGeometry,
    memory: DeviceMemory,
    *,
    threads: int,
    fuel: int,
    chosen: Sequence[int] | None,
    on_print: PrintCallback | None,
    launch_checker: LaunchChecker | None,
) -> LaunchOutcome:
    """Runs the blocks of the grid, or the `chosen` ones (linear indices), on up to `threads` host
    threads of `fuel` each. Without `on_print` nothing is printed.
    """
    count = len(chosen) if chosen is not None else geometry.blocks
    order = (ctypes.c_uint64 * count)(*chosen) if chosen is not None else None
    turn, stop = ctypes.c_uint64(0), ctypes.c_uint32(0)
    callback = (
        PRINT(code.print_nothing) if on_print is None else _callback(on_print, code.print_nothing)
    )
    weights = numpy.array(code.weights, dtype=numpy.uint32)
    block_work = numpy.zeros(min(count, MAX_BLOCK_WORK), dtype=numpy.uint64)
    warp_work = numpy.zeros((min(count, MAX_WARP_WORK), geometry.warps), dtype=numpy.uint64)
    host_threads: list[HostThread] = []
    try:
        for _ in range(max(1, min(threads, count))):
            launch = _launch(
                code, geometry, turn, count, order, stop, weights, block_work, warp_work
            )
            host_threads.append(
                HostThread(
                    memory, geometry, launch, _block(code, geometry, fuel, callback), launch_checker
                )
            )
        _in_parallel(host_threads, code.driver, stop)
        return LaunchOutcome(
            counters=sum(
                (host_thread.counters for host_thread in host_threads),
                numpy.zeros((len(weights), 2), dtype=numpy.int64),
            ),
            fault=next(
                (fault for host_thread in host_threads if (fault := host_thread.fault())), None
            ),
            blocks_run=min(turn.value, count),
            findings=launch_checker.findings() if launch_checker else (),
            accesses=sum((host_thread.accesses() for host_thread in host_threads), AccessCounts())
            if launch_checker
            else None,
            site_accesses=_by_site(host_threads),
            contention=_contention(launch_checker, count) if launch_checker else Contention(),
            rounds=fuel - min(host_thread.fuel for host_thread in host_threads),
            block_work=block_work,
            warp_work=warp_work,
        )
    finally:
        for host_thread in host_threads:
            host_thread.close()


def _contention(checker: LaunchChecker, blocks: int) -> Contention:
    """What `blocks` blocks have in common: lines and addresses that at least half of them have; and
    how they wait for one another.
    """
    shared_by = max(2, min(blocks, COMMON_OF) // 2)
    return Contention(
        checker.most_on_line(1),
        checker.most_on_line(shared_by),
        checker.most_hops(),
        *(checker.visits(shared_by, what) for what in range(WHAT_OF_VISITS)),
    )


def _by_site(host_threads: Iterable[HostThread]) -> tuple[SiteCounts, ...]:
    """The accesses of each instruction, summed over the host threads."""
    found: dict[int, SiteCounts] = {}
    for counts in (item for host_thread in host_threads for item in host_thread.site_accesses()):
        before = found.get(counts.site)
        found[counts.site] = before + counts if before else counts
    return tuple(found[site] for site in sorted(found))


def _callback(on_print: PrintCallback, print_nothing: int) -> ctypes._CFunctionType:
    """`on_print` as a C callback for the blocks of a launch; once no more may be printed, a block
    continues with the C function at `print_nothing`.
    """

    def print_(
        block: int, mask: int, formats: int | None, arguments: int | None, kind: int
    ) -> None:
        if not on_print(mask, formats or 0, arguments or 0, kind):
            ctypes.c_void_p.from_address(block + BlockRecord.print.offset).value = print_nothing

    return PRINT(print_)


def _launch(
    code: LaunchCode,
    geometry: LaunchGeometry,
    turn: ctypes.c_uint64,
    count: int,
    order: ctypes.Array[ctypes.c_uint64] | None,
    stop: ctypes.c_uint32,
    weights: numpy.ndarray,
    block_work: numpy.ndarray,
    warp_work: numpy.ndarray,
) -> LaunchRecord:
    """The launch record for the driver; the caller owns what it points to."""
    return LaunchRecord(
        run=code.kernel,
        next=ctypes.addressof(turn),
        end=count,
        chosen=ctypes.addressof(order) if order is not None else None,
        grid=(ctypes.c_uint32 * 3)(*geometry.grid),
        threads=geometry.threads,
        warps=geometry.warps,
        warp_bytes=geometry.warp_bytes,
        shared_bytes=geometry.shared,
        dynamic_shared_bytes=geometry.dynamic_shared,
        poison=code.poison,
        stop=ctypes.addressof(stop),
        weights=weights.ctypes.data,
        nodes=len(weights),
        block_work=block_work.ctypes.data,
        block_work_end=len(block_work),
        warp_work=warp_work.ctypes.data,
        warp_work_end=len(warp_work),
    )


def _block(code: LaunchCode, geometry: LaunchGeometry, fuel: int, callback: object) -> BlockRecord:
    """A block record of the launch, without the fields of a host thread."""
    return BlockRecord(
        grid=(ctypes.c_uint32 * 3)(*geometry.grid),
        globals=code.variables,
        params=code.parameters,
        print=callback,
        fail=callback,
        fuel=fuel,
        dynamic_shared_bytes=geometry.dynamic_shared,
    )


def _in_parallel(host_threads: Sequence[HostThread], driver: int, stop: ctypes.c_uint32) -> None:
    """Runs all host threads in parallel, the first in this thread; none is still running when this
    returns or raises.
    """
    others = [
        threading.Thread(target=host_thread.run, args=(driver,)) for host_thread in host_threads[1:]
    ]
    started: list[threading.Thread] = []
    try:
        for thread in others:
            thread.start()
            started.append(thread)
        host_threads[0].run(driver)
    except (
        BaseException
    ):  # a signal, or no more threads: blocks that have begun still finish, no further ones begin
        stop.value = 1
        raise
    finally:
        for thread in started:
            thread.join()
