"""The counts of a launch: measured by the emulator, read by the timing model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

SECTOR_BYTES = 32  # what L2 and DRAM move at a time


def _nothing() -> Mapping[str, float]:
    return {}


@dataclass(frozen=True)
class CodePiece:
    """Straight-line code: how often warps executed it in all (`times`), and the cost of one
    execution.
    """

    times: float
    instructions: Mapping[str, float] = field(default_factory=_nothing)
    flops: Mapping[str, float] = field(default_factory=_nothing)
    delays: Mapping[str, float] = field(default_factory=_nothing)
    # of shared and of global memory: as counted, else without bank conflicts and coalesced
    wavefronts: float = 0.0
    sectors: float = 0.0  # from and to L2, other than of copies
    copy_sectors: float = 0.0  # of asynchronous copies: nothing waits for them where they stand
    lines: float = 0.0  # of 128 bytes of global and local memory that L1 looks up


@dataclass(frozen=True)
class Counts:
    """Sums over all warps of the counted blocks, as floats, so that samples can be scaled.

    A `wavefront` is one pass of the 32 banks, 128 bytes at most; a `sector` is 32 aligned bytes of
    global memory; a `request` is one warp instruction that reaches memory.
    """

    blocks: float = 0.0
    warps: float = 0.0  # of these blocks
    # warp instructions of machine code by pipe: `pipes.PIPES`
    instructions: Mapping[str, float] = field(default_factory=_nothing)
    # of tensor instructions, by kind: f16, bf16, tf32, fp8, int8, fp64
    flops: Mapping[str, float] = field(default_factory=_nothing)
    # on the longest dependency chain of each basic block, summed over its executions:
    # `pipes.DELAYS`
    delays: Mapping[str, float] = field(default_factory=_nothing)
    # of loads, stores, atomics, fragments and the shared side of copies; not of shuffles
    shared_wavefronts: float = 0.0
    # global, including generic loads of global memory; not asynchronous copies
    load_requests: float = 0.0
    store_requests: float = 0.0
    load_sectors: float = 0.0  # distinct sectors of each request, summed over requests
    store_sectors: float = 0.0
    copy_sectors: float = 0.0  # of asynchronous copies, which bypass L1
    # distinct sectors that a block loads other than by copies, summed over blocks: the misses of an
    # ideal L1
    block_sectors: float = 0.0
    common_sectors: float = 0.0  # how many of a block's sectors are the same for all blocks
    # sectors that a warp loads again after it has loaded many others, and the sum of how many
    reloads: float = 0.0
    reload_span: float = 0.0
    # of 128 bytes of global and local memory that L1 looks up, a request at a time
    lines: float = 0.0
    load_lines: float = 0.0  # those of loads of global memory
    atomic_lines: float = 0.0  # and of atomics,
    atomic_sectors: float = 0.0  # whose sectors are among those that are stored, too
    local_sectors: float = 0.0  # of local memory: stacks and spills
    frame_bytes: float = 0.0  # of local memory that one thread has
    atomics: float = 0.0  # requests with an atomic operation on global memory
    # passes of atomic operations of the whole launch on the line of global memory with the most
    same_line: float = 0.0
    # of the whole launch: lanes that read the address that most of them read before an atomic
    # operation on it, and passes of the line of which that is so, if all of these lanes tried
    visits: float = 0.0
    line_visits: float = 0.0
    # of the lanes that fail in a try, as by a compare-and-swap, the share that tries again
    go_on: float = 0.0
    # from block to block along the longest chain of them, each of which waits for the one before
    hops: float = 0.0
    unique_bytes: float = 0.0  # of global memory that the whole launch accesses
    # warp instructions of the block with the most; 0 if unknown
    most_issued: float = 0.0
    # instructions of the warp with the most of its block, relative to their mean; 0 if unknown
    warp_skew: float = 0.0
    pieces: tuple[
        CodePiece, ...
    ] = ()  # the code by basic block; instructions, flops and delays are their sums

    def __add__(self, other: Counts) -> Counts:
        """The sum of both; unique bytes are added as if they were distinct."""
        sums: dict[str, Any] = {
            name: _sum(getattr(self, name), getattr(other, name))
            for name in _NAMES
            if name != "pieces"
        }
        most = {
            name: max(getattr(self, name), getattr(other, name))
            for name in (
                "most_issued",
                "common_sectors",
                "frame_bytes",
                "warp_skew",
                "same_line",
                "visits",
                "line_visits",
                "go_on",
                "hops",
            )
        }
        return Counts(**(sums | most), pieces=self.pieces + other.pieces)

    def scaled(self, factor: float) -> Counts:
        """The counts of `factor` times as many blocks; values that are not sums over blocks
        stay.
        """
        if factor < 0:
            raise ValueError(f"expected a factor >= 0, got {factor}")
        scaled: dict[str, Any] = {
            name: _times(getattr(self, name), factor) for name in _NAMES if name not in _OF_LAUNCH
        }
        return replace(
            self,
            **scaled,
            pieces=tuple(replace(piece, times=piece.times * factor) for piece in self.pieces),
        )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Counts:
        """The counts from which `dataclasses.asdict` made `values`."""
        return cls(**{**values, "pieces": tuple(CodePiece(**piece) for piece in values["pieces"])})

    @property
    def code(self) -> tuple[CodePiece, ...]:
        """The pieces, or all code as one piece if it was not counted by piece."""
        if self.pieces or not self.warps:
            return self.pieces
        instructions, flops, delays = (
            {name: count / self.warps for name, count in values.items()}
            for values in (self.instructions, self.flops, self.delays)
        )
        return (
            CodePiece(
                self.warps,
                instructions,
                flops,
                delays,
                self.shared_wavefronts / self.warps,
                (self.l2_sectors - self.copy_sectors) / self.warps,
                self.copy_sectors / self.warps,
                self.lines / self.warps,
            ),
        )

    @property
    def issued(self) -> float:
        """Warp instructions of all pipes."""
        return sum(self.instructions.values())

    @property
    def l2_sectors(self) -> float:
        """Sectors that are read from or written to L2."""
        loads = (
            min(self.load_sectors, self.block_sectors) if self.block_sectors else self.load_sectors
        )
        return loads + self.store_sectors + self.copy_sectors


_NAMES = tuple(item.name for item in fields(Counts))
_OF_LAUNCH = (
    "unique_bytes",
    "most_issued",
    "common_sectors",
    "frame_bytes",
    "warp_skew",
    "same_line",
    "visits",
    "line_visits",
    "go_on",
    "hops",
    "pieces",
)


@dataclass
class CountsBuilder:
    """Accumulates the mappings of a Counts."""

    instructions: dict[str, float] = field(default_factory=dict)
    flops: dict[str, float] = field(default_factory=dict)
    delays: dict[str, float] = field(default_factory=dict)

    def add(
        self,
        instructions: Mapping[str, float],
        flops: Mapping[str, float],
        delays: Mapping[str, float],
        times: float,
    ) -> None:
        """Adds `times` executions of a piece of code by one warp."""
        for mine, more in (
            (self.instructions, instructions),
            (self.flops, flops),
            (self.delays, delays),
        ):
            for name, value in more.items():
                mine[name] = mine.get(name, 0.0) + times * value


def _sum(one: object, other: object) -> object:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return {name: one.get(name, 0.0) + other.get(name, 0.0) for name in {**one, **other}}
    assert isinstance(one, int | float) and isinstance(other, int | float)
    return one + other


def _times(value: object, factor: float) -> object:
    if isinstance(value, Mapping):
        return {name: number * factor for name, number in value.items()}
    assert isinstance(value, int | float)
    return value * factor
