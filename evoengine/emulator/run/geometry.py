"""The geometry of a launch, and CUDA's limits on it."""

from __future__ import annotations

from dataclasses import dataclass

from evoengine.emulator.emulator_errors import LaunchRefused

Dimensions = tuple[int, int, int]

WARP = 32
# CUDA C++ Programming Guide 13.0, technical specifications per compute capability; the same from
# 7.5 to 12.0.
MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_BLOCK = (1024, 1024, 64)
MAX_THREADS = 1024
MAX_LOCAL_BYTES = 512 << 10  # of a thread
MAX_STATIC_SHARED = 48 << 10  # bytes; ptxas refuses more, the rest must be dynamic
MAX_SAVED_BYTES = 1 << 30  # of the warps of one block on one host thread: the emulator's own limit


@dataclass(frozen=True)
class LaunchGeometry:
    """The dimensions and memory of a launch; sizes in bytes."""

    grid: Dimensions
    block: Dimensions
    static_shared: int
    dynamic_shared: int
    frame_bytes: int  # local memory of a thread
    warp_bytes: int  # the record of a warp with its saved registers

    @property
    def threads(self) -> int:
        """Threads of a block."""
        x, y, z = self.block
        return x * y * z

    @property
    def warps(self) -> int:
        """Warps of a block."""
        return -(-self.threads // WARP)

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        x, y, z = self.grid
        return x * y * z

    @property
    def shared(self) -> int:
        """Shared memory of a block in bytes."""
        return self.static_shared + self.dynamic_shared

    @property
    def local(self) -> int:
        """Local memory of the threads of a block in bytes."""
        return self.frame_bytes * self.warps * WARP


def check_dimensions(grid: Dimensions, block: Dimensions, most_threads: int) -> None:
    """Raises LaunchRefused unless CUDA allows these dimensions; `most_threads`: the kernel's launch
    bounds, 0 for none.
    """
    for name, given, most in (("grid", grid, MAX_GRID), ("block", block, MAX_BLOCK)):
        if len(given) != 3:
            raise LaunchRefused(f"{name} must have 3 dimensions, got {given}")
        for axis, value, limit in zip("xyz", given, most, strict=True):
            if not 1 <= value <= limit:
                raise LaunchRefused(f"{name}.{axis} must be 1 to {limit}, got {value}")
    threads = block[0] * block[1] * block[2]
    allowed = min(MAX_THREADS, most_threads or MAX_THREADS)
    if threads > allowed:
        why = (
            "a block has"
            if allowed == MAX_THREADS
            else "by its launch bounds a block of this kernel has"
        )
        raise LaunchRefused(
            f"{why} at most {allowed} threads, got {threads} = {block[0]} x {block[1]} x {block[2]}"
        )


def check_memory(geometry: LaunchGeometry, allowed_shared: int, device: str) -> None:
    """Raises LaunchRefused unless a block's memory fits; `allowed_shared` bytes is the limit of a
    block on `device`.
    """
    if geometry.dynamic_shared < 0:
        raise LaunchRefused(
            f"dynamic shared memory must be at least 0 bytes, got {geometry.dynamic_shared}"
        )
    if geometry.static_shared > MAX_STATIC_SHARED:
        raise LaunchRefused(
            f"{geometry.static_shared} bytes of static shared memory, CUDA allows"
            f" {MAX_STATIC_SHARED}; make it dynamic"
        )
    if geometry.shared > allowed_shared:
        raise LaunchRefused(
            f"{geometry.shared} bytes of shared memory, {device} allows a block {allowed_shared}"
        )
    if geometry.frame_bytes > MAX_LOCAL_BYTES:
        raise LaunchRefused(
            f"{geometry.frame_bytes} bytes of local memory for a thread, CUDA allows"
            f" {MAX_LOCAL_BYTES}"
        )
    if geometry.warp_bytes * geometry.warps > MAX_SAVED_BYTES:
        raise LaunchRefused(
            f"{geometry.warp_bytes} bytes of registers to save for each of {geometry.warps} warps;"
            " the kernel has too many live registers"
        )


def check_chosen_blocks(chosen: tuple[int, ...] | None, blocks: int) -> None:
    """Raises LaunchRefused unless every chosen block is in the grid."""
    wrong = next((number for number in chosen or () if not 0 <= number < blocks), None)
    if wrong is not None:
        raise LaunchRefused(f"block {wrong} was chosen from a grid of {blocks} blocks")
