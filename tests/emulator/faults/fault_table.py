"""Kernels with one planted fault each, and the findings that checked mode must report.

The fault shows at lines with `// FAULT`: a finding of one of the kinds must have one of them as its
own or its other line. With -DFIXED the kernel is correct, and there must be no findings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from evoengine.emulator.check.findings import RACES, FindingKind, Space
from tests.emulator.corpus import Argument, Case, In, InOut, Out

FOLDER = Path(__file__).resolve().parent
MARK = "// FAULT"


@dataclass(frozen=True)
class PlantedFault:
    """A kernel FOLDER/NAME.cu; `case.expected` is empty: only findings count here."""

    case: Case
    kinds: frozenset[FindingKind]  # any of them
    space: Space

    @property
    def name(self) -> str:
        return self.case.kernel

    @property
    def source(self) -> str:
        return (FOLDER / f"{self.name}.cu").read_text(encoding="utf-8")

    @property
    def lines(self) -> frozenset[int]:
        """The marked lines, counted from 1."""
        return frozenset(
            number for number, line in enumerate(self.source.splitlines(), 1) if MARK in line
        )

    @property
    def fixed(self) -> Case:
        """The launch of the repaired twin."""
        return replace(self.case, name="fixed", macros={**self.case.macros, "FIXED": 1})


def numbers(count: int) -> In:
    return In(np.linspace(-1.0, 1.0, count, dtype=np.float32))


def halves(count: int) -> In:
    return In(np.linspace(-1.0, 1.0, count).astype(np.float16))


def floats(count: int) -> Out:
    return Out(count, "float32")


def changed(count: int) -> InOut:
    return InOut(np.zeros(count, np.float32))


def _fault(
    name: str,
    kinds: frozenset[FindingKind],
    space: Space,
    blocks: int,
    threads: int,
    *args: Argument,
    shared_bytes: int = 0,
) -> PlantedFault:
    return PlantedFault(
        Case("faulty", name, (blocks, 1, 1), (threads, 1, 1), args, {}, shared_bytes=shared_bytes),
        kinds,
        space,
    )


BOUNDS, SKEWED, UNSET, EARLY = (
    frozenset({kind})
    for kind in (
        FindingKind.OUT_OF_BOUNDS,
        FindingKind.MISALIGNED,
        FindingKind.UNINITIALISED,
        FindingKind.ASYNC_READ,
    )
)
AFTER_WRITE = frozenset({FindingKind.READ_AFTER_WRITE})
AFTER_READ = frozenset({FindingKind.WRITE_AFTER_READ})
TWO_WRITES = frozenset({FindingKind.WRITE_AFTER_WRITE})
SHARED, GLOBAL, LOCAL = Space.SHARED, Space.GLOBAL, Space.LOCAL
ORDER = In(np.concatenate([np.arange(16), np.arange(16)[::-1]]).astype(np.int32))
NINE = In(np.arange(9, dtype=np.int32))
BINS = In((np.arange(256) * 7 % 16).astype(np.int32))
COUNTER, COUNTS = InOut(np.zeros(1, np.uint32)), InOut(np.zeros(16, np.int32))
BYTES = In(np.arange(64, dtype=np.uint8))
i32 = np.int32

FAULTS = (
    _fault("tile_used_before_barrier", AFTER_WRITE, SHARED, 2, 64, numbers(128), floats(128)),
    _fault("tile_reloaded_too_early", AFTER_READ, SHARED, 1, 64, numbers(192), floats(64), i32(3)),
    _fault("double_buffer_of_one", AFTER_READ, SHARED, 1, 64, numbers(192), floats(64), i32(3)),
    _fault("reduction_without_barrier", RACES, SHARED, 2, 128, numbers(256), floats(2)),
    _fault("reduction_without_syncwarp", RACES, SHARED, 2, 32, numbers(64), floats(2)),
    _fault(
        "scores_not_shared_yet",
        AFTER_WRITE,
        SHARED,
        2,
        64,
        numbers(32),
        numbers(1024),
        numbers(1024),
        floats(32),
    ),
    _fault("barrier_for_half_the_threads", AFTER_WRITE, SHARED, 1, 64, numbers(64), floats(64)),
    _fault("producer_does_not_wait", RACES, SHARED, 1, 64, numbers(128), floats(32), i32(4)),
    _fault("tile_partly_loaded", UNSET, SHARED, 1, 64, numbers(100), floats(64)),
    _fault("returned_without_loading", UNSET, SHARED, 1, 64, numbers(50), floats(50), i32(50)),
    _fault("read_without_guard", BOUNDS, GLOBAL, 2, 64, numbers(100), floats(100), i32(100)),
    _fault("write_without_guard", BOUNDS, GLOBAL, 2, 64, numbers(100), floats(100), i32(100)),
    _fault("neighbour_before_the_first", BOUNDS, GLOBAL, 2, 64, numbers(128), floats(128)),
    _fault("one_row_too_many", BOUNDS, GLOBAL, 1, 32, numbers(320), floats(32), i32(10)),
    _fault(
        "rows_for_columns", BOUNDS, GLOBAL, 20, 64, numbers(1000), floats(1000), i32(20), i32(50)
    ),
    _fault(
        "dynamic_shared_too_small", BOUNDS, SHARED, 1, 32, numbers(96), floats(32), shared_bytes=256
    ),
    _fault("shared_array_overrun", TWO_WRITES, SHARED, 1, 64, numbers(128), floats(64)),
    _fault("shared_index_too_large", BOUNDS, SHARED, 1, 64, numbers(64), floats(64), i32(1)),
    _fault("wait_group_off_by_one", EARLY, SHARED, 1, 64, numbers(1024), floats(64), i32(4)),
    _fault("copy_never_waited_for", EARLY, SHARED, 1, 32, numbers(128), floats(32)),
    _fault("copy_waited_for_without_barrier", AFTER_WRITE, SHARED, 1, 64, numbers(256), floats(64)),
    _fault("copy_over_a_used_tile", AFTER_READ, SHARED, 1, 64, numbers(768), floats(64), i32(3)),
    _fault("copy_beyond_the_end", BOUNDS, GLOBAL, 1, 32, numbers(101), floats(101), i32(101)),
    _fault("misaligned_float4", SKEWED, GLOBAL, 4, 8, numbers(144), floats(32)),
    _fault("misaligned_half2", SKEWED, GLOBAL, 1, 32, halves(66), floats(32), i32(1)),
    _fault("local_array_uninitialised", UNSET, LOCAL, 1, 32, ORDER, floats(32)),
    _fault("local_array_overrun", BOUNDS, LOCAL, 1, 32, NINE, floats(32), i32(9)),
    _fault("scratch_read_first", UNSET, GLOBAL, 1, 64, numbers(256), floats(64)),
    _fault("output_accumulated_into", UNSET, GLOBAL, 2, 64, numbers(128), floats(128)),
    _fault("blocks_write_the_same_rows", TWO_WRITES, GLOBAL, 4, 64, numbers(256), floats(256)),
    _fault("overlapping_tiles", TWO_WRITES, GLOBAL, 3, 64, numbers(192), floats(192)),
    _fault("sum_without_atomic", AFTER_WRITE | TWO_WRITES, GLOBAL, 4, 32, numbers(128), changed(1)),
    _fault("histogram_without_atomic", RACES, SHARED, 2, 128, BINS, COUNTS),
    _fault("counter_not_cleared", UNSET, SHARED, 2, 64, BINS, Out(2, "int32")),
    _fault(
        "barrier_in_a_branch",
        frozenset({FindingKind.DIVERGENT_BARRIER}),
        SHARED,
        1,
        64,
        numbers(64),
        floats(128),
        i32(48),
    ),
    _fault(
        "barrier_of_two_pairs",
        frozenset({FindingKind.MIXED_BARRIER}),
        SHARED,
        1,
        128,
        numbers(384),
        floats(128),
        i32(3),
    ),
    _fault("ldmatrix_before_barrier", AFTER_WRITE, SHARED, 1, 64, halves(256), Out(256, "uint32")),
    _fault("wmma_before_barrier", AFTER_WRITE, SHARED, 1, 64, halves(256), floats(512)),
    _fault("shared_memory_reused", AFTER_READ, SHARED, 2, 64, numbers(128), floats(128)),
    _fault("vector_store_over_the_end", BOUNDS, GLOBAL, 1, 8, numbers(30), floats(30), i32(30)),
    _fault("bytes_written_twice", TWO_WRITES, SHARED, 1, 64, BYTES, Out(64, "uint8")),
    _fault(
        "partial_sums_without_fence",
        AFTER_WRITE,
        GLOBAL,
        4,
        32,
        numbers(128),
        floats(4),
        COUNTER,
        floats(1),
    ),
    _fault(
        "volatile_sums_without_fence",
        AFTER_WRITE,
        GLOBAL,
        4,
        64,
        numbers(256),
        floats(4),
        COUNTER,
        floats(1),
    ),
    _fault(
        "histogram_copied_without_fence",
        AFTER_WRITE,
        GLOBAL,
        4,
        64,
        BINS,
        COUNTS,
        COUNTER,
        Out(16, "int32"),
    ),
    _fault(
        "scale_exchanged_without_fence",
        AFTER_WRITE,
        GLOBAL,
        2,
        32,
        numbers(32),
        changed(1),
        COUNTER,
        floats(32),
    ),
    _fault("scalar_not_shared_yet", AFTER_WRITE, SHARED, 1, 64, numbers(64), floats(64)),
    _fault("stencil_in_place", AFTER_READ, GLOBAL, 1, 128, changed(128)),
    _fault("halo_in_place", AFTER_READ, GLOBAL, 3, 64, changed(192), floats(192), i32(192)),
)


def by_name() -> Mapping[str, PlantedFault]:
    return {fault.name: fault for fault in FAULTS}
