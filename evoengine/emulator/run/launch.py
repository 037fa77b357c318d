"""Launches: host threads take blocks in turn and run their warps."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy

from evoengine.emulator.check.findings import AccessCounts, Finding
from evoengine.emulator.run.abi import PRINT, BlockRecord, LaunchRecord
from evoengine.emulator.run.geometry import Geometry
from evoengine.emulator.run.host_thread import Fault, HostThread
from evoengine.emulator.run.launch_checker import Checking
from evoengine.emulator.run.memory import DeviceMemory

WORKS = 1 << 16  # blocks whose work is kept apart: half a megabyte

# mask of lanes, addresses of formats and of arguments, kind; whether more may come
Print = Callable[[int, int, int, int], bool]


@dataclass(frozen=True)
class Code:
    """What is run, by its addresses in this process."""

    driver: int  # ev_run
    silence: int  # ev_print_nothing
    kernel: int
    parameters: int
    variables: int  # global and constant
    weights: Sequence[int]  # of each block of the flow: what one execution by a warp counts as work


@dataclass(frozen=True)
class LaunchOutcome:
    """What running blocks gave."""

    counters: numpy.ndarray  # [blocks of the flow, 2]: executions by warps, and by lanes
    fault: Fault | None
    blocks_run: int
    findings: tuple[Finding, ...]
    accesses: AccessCounts | None
    # [blocks run, WORKS at most]: the sum of the weights of what a block executed
    works: numpy.ndarray


def run_blocks(
    code: Code,
    geometry: Geometry,
    memory: DeviceMemory,
    *,
    threads: int,
    fuel: int,
    chosen: Sequence[int] | None,
    printed: Print,
    checking: Checking | None,
) -> LaunchOutcome:
    """Runs the blocks of the grid, or the `chosen` ones (linear indices), on up to `threads` host
    threads of `fuel` each.
    """
    count = len(chosen) if chosen is not None else geometry.blocks
    order = (ctypes.c_uint64 * count)(*chosen) if chosen is not None else None
    turn, stop = ctypes.c_uint64(0), ctypes.c_uint32(0)
    callback = _callback(printed, code.silence)
    weights = numpy.array(code.weights, dtype=numpy.uint32)
    works = numpy.zeros(min(count, WORKS), dtype=numpy.uint64)
    shares: list[HostThread] = []
    try:
        for _ in range(max(1, min(threads, count))):
            launch = _launch(code, geometry, turn, count, order, stop, weights, works)
            shares.append(
                HostThread(
                    memory, geometry, launch, _block(code, geometry, fuel, callback), checking
                )
            )
        _in_parallel(shares, code.driver, stop)
        return LaunchOutcome(
            counters=sum(
                (share.counters for share in shares),
                numpy.zeros((len(weights), 2), dtype=numpy.int64),
            ),
            fault=next((fault for share in shares if (fault := share.fault())), None),
            blocks_run=min(turn.value, count),
            findings=checking.findings() if checking else (),
            accesses=sum((share.accesses() for share in shares), AccessCounts())
            if checking
            else None,
            works=works,
        )
    finally:
        for share in shares:
            share.close()


def _callback(printed: Print, silence: int) -> ctypes._CFunctionType:
    """`printed` for the blocks of a launch; where no more may come, a block goes on with the C
    function at `silence`.
    """

    def print_(
        block: int, mask: int, formats: int | None, arguments: int | None, kind: int
    ) -> None:
        if not printed(mask, formats or 0, arguments or 0, kind):
            ctypes.c_void_p.from_address(block + BlockRecord.print.offset).value = silence

    return PRINT(print_)


def _launch(
    code: Code,
    geometry: Geometry,
    turn: ctypes.c_uint64,
    count: int,
    order: ctypes.Array[ctypes.c_uint64] | None,
    stop: ctypes.c_uint32,
    weights: numpy.ndarray,
    works: numpy.ndarray,
) -> LaunchRecord:
    """The launch as the driver reads it; what it points to belongs to the caller."""
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
        stop=ctypes.addressof(stop),
        weights=weights.ctypes.data,
        nodes=len(weights),
        works=works.ctypes.data,
        works_end=len(works),
    )


def _block(code: Code, geometry: Geometry, fuel: int, callback: object) -> BlockRecord:
    """A block of the launch, without what belongs to a host thread."""
    return BlockRecord(
        grid=(ctypes.c_uint32 * 3)(*geometry.grid),
        globals=code.variables,
        params=code.parameters,
        print=callback,
        fail=callback,
        fuel=fuel,
        dynamic_shared_bytes=geometry.dynamic_shared,
    )


def _in_parallel(shares: Sequence[HostThread], driver: int, stop: ctypes.c_uint32) -> None:
    """Runs all of them at once, the first in this thread; whatever happens, none runs any more
    afterwards.
    """
    others = [threading.Thread(target=share.run, args=(driver,)) for share in shares[1:]]
    started: list[threading.Thread] = []
    try:
        for thread in others:
            thread.start()
            started.append(thread)
        shares[0].run(driver)
    except (
        BaseException
    ):  # a signal, or no more threads: blocks that have begun still end, no further ones begin
        stop.value = 1
        raise
    finally:
        for thread in started:
            thread.join()
