"""The findings of checked mode in words: what is missing, in CUDA's terms, and both lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evoengine.emulator.check.buffer_shape import BufferShape
from evoengine.emulator.check.findings import (
    NOT_COMMITTED,
    NOT_WAITED,
    RACES,
    STRAYS,
    Finding,
    FindingKind,
    Space,
)

_PLACES = {
    Space.GLOBAL: "global memory",
    Space.SHARED: "shared memory",
    Space.LOCAL: "local memory, an array of the thread,",
    Space.GENERIC: "memory",
}
_GAP = (
    "; it lies in a gap of {bytes} bytes in what {line} wrote, as when padded rows are read with"
    " another leading dimension"
)
_WITHIN_A_BLOCK = {
    FindingKind.READ_AFTER_WRITE: (
        "race: no {missing} between the write at {other_line} ({other}) and the read at {line}"
        " ({thread}) of {memory}"
    ),
    FindingKind.WRITE_AFTER_READ: (
        "race: no {missing} between the read at {other_line} ({other}) and the write at {line}"
        " ({thread}) of {memory}"
    ),
    FindingKind.WRITE_AFTER_WRITE: (
        "race: no {missing} between the write at {other_line} ({other}) and the write at {line}"
        " ({thread}) of {memory}"
    ),
    FindingKind.SAME_ADDRESS_WRITE: (
        "same address: {thread} and {other} write {memory} with one instruction at {line}; which"
        " value is kept is undefined"
    ),
    FindingKind.OUT_OF_BOUNDS: (
        "out of bounds: {thread} {access} {bytes} bytes at {memory} at {line}, {distance}"
    ),
    FindingKind.MISALIGNED: (
        "misaligned: {thread} {access} {bytes} bytes at {memory} at {line}, not a multiple of"
        " {bytes}"
    ),
    FindingKind.UNINITIALISED: (
        "uninitialised: {thread} reads {memory} at {line}, {place} to which nothing was written"
        " before{gap}"
    ),
    FindingKind.ASYNC_READ: (
        "async copy: {thread} reads {memory} at {line} before the cp.async at {other_line}"
        " ({other}) is complete{wait}"
    ),
    FindingKind.ASYNC_WRITE: (
        "async copy: {thread} writes {memory} at {line} before the cp.async at {other_line}"
        " ({other}) is complete{wait}"
    ),
    FindingKind.DIVERGENT_BARRIER: (
        "divergent barrier: {thread} waits at {line}, {other} of its warp does not reach it"
    ),
    FindingKind.MIXED_BARRIER: (
        "mixed barrier: the warps of {other} ({other_line}) and {thread} ({line}) wait at barrier"
        " {number} with different warps, and nothing orders them: either may go on with those of"
        " the other; each group of warps needs a number of its own, or the barrier must count all"
        " of them"
    ),
}
_EARLY_READ = (
    "race: no {missing} between the write at {line} ({thread}) and the read at {other_line}"
    " ({other}) of {memory}, which came first"
)
_BETWEEN_BLOCKS = {
    FindingKind.READ_AFTER_WRITE: (
        "race: {thread} reads {memory} at {line} that {other} of block {other_block} wrote at"
        " {other_line}; blocks of a launch run in any order unless atomic operations with"
        " __threadfence() order them"
    ),
    FindingKind.WRITE_AFTER_READ: (
        "race: {thread} writes {memory} at {line} that {other} of block {other_block} read at"
        " {other_line}; blocks of a launch run in any order unless atomic operations with"
        " __threadfence() order them"
    ),
    FindingKind.WRITE_AFTER_WRITE: (
        "race: {thread} writes {memory} at {line} that {other} of block {other_block} wrote at"
        " {other_line}, without an atomic operation; blocks of a launch run in any order{overlap}"
    ),
}
_OVERLAP = ", and their indices overlap: both take the place for their own"
# by kind, and whether the accesses are of two blocks
_SENTENCES = {
    **{(kind, False): words for kind, words in _WITHIN_A_BLOCK.items()},
    **{(kind, True): words for kind, words in _BETWEEN_BLOCKS.items()},
}


def words_of(
    found: Finding,
    site_name: Callable[[int], str] = "instruction {}".format,
    buffers: Sequence[str] = (),
    access: str = "accesses",
    shapes: Sequence[BufferShape | None] = (),
    array: Callable[[int], str] = lambda _: "",
) -> str:
    """The finding in one line; `site_name(site)` describes an instruction ("line 42"), `buffers`
    are the names of buffers by index and `shapes` their shapes, `access` is what the instruction
    does, `array(offset)` names the array at an offset of shared memory.
    """
    line, other_line = site_name(found.site), site_name(found.other_site)
    sentence = _SENTENCES[found.kind, _is_between_blocks(found)]
    shape = _shape(found, shapes)
    what = (_EARLY_READ if found.is_early_read else sentence).format(
        thread=f"thread {found.thread}",
        bytes=found.bytes,
        number=found.offset,  # of a barrier
        memory=_memory(found, buffers, shape, array),
        line=line,
        other=f"thread {found.other_thread}",
        other_line=other_line,
        other_block=found.other_block,
        missing=_missing(found, line == other_line),
        access=access,
        distance=_distance(found) + _beyond(found, shape),
        place=_PLACES[found.space],
        gap=_gap(found, site_name),
        wait=_wait(found),
        overlap=_OVERLAP if line == other_line else "",
    )
    return f"{what} (block {found.block}" + (f", {found.times} times)" if found.times > 1 else ")")


def _gap(found: Finding, site_name: Callable[[int], str]) -> str:
    """The gap in what one line wrote; "" where two lines wrote around it, such as two arrays."""
    if found.other_site < 0:
        return ""
    line = site_name(found.other_site)
    is_one = found.end_site < 0 or site_name(found.end_site) == line
    return _GAP.format(bytes=found.distance, line=line) if is_one else ""


def _is_between_blocks(found: Finding) -> bool:
    return found.kind in RACES and found.other_block not in (-1, found.block)


def _missing(found: Finding, is_one_line: bool) -> str:
    """What would order two accesses of one block; an atomic may do where one line has both."""
    return _barrier(found) + (" and no atomic operation" if is_one_line else "")


def _barrier(found: Finding) -> str:
    is_one_warp = found.thread // 32 == found.other_thread // 32
    return "__syncwarp()" if is_one_warp else "__syncthreads()"


def _wait(found: Finding) -> str:
    """Why the copy is not complete before the access, as far as it is known."""
    is_own = found.thread == found.other_thread
    then = "" if is_own else f", in that thread, with {_barrier(found)} after it"
    if found.distance == NOT_COMMITTED:
        return (
            f"; its group is not committed: cp.async.commit_group and wait_group are missing{then}"
        )
    if found.distance == NOT_WAITED:
        return f"; cp.async.wait_group is missing between them{then}"
    if found.distance < 0:
        return ""
    most = f"{found.distance} or less" if found.distance else "0"
    # what was asked for last is read: in a loop that copies ahead, most often by the wrong stage
    stage = "" if found.distance else ", or a stage is meant that is not being filled"
    return f"; the cp.async.wait_group between them must be {most}{then}{stage}"


def _distance(found: Finding) -> str:
    if found.space is Space.GLOBAL and found.buffer < 0:
        return "far from any buffer"
    return f"{abs(found.distance)} bytes " + (
        "before its start" if found.distance < 0 else "beyond its end"
    )


def _shape(found: Finding, shapes: Sequence[BufferShape | None]) -> BufferShape | None:
    is_known = found.space is Space.GLOBAL and 0 <= found.buffer < len(shapes)
    return shapes[found.buffer] if is_known else None


def _beyond(found: Finding, shape: BufferShape | None) -> str:
    """Which element an access beyond the end of a buffer would have."""
    return f": {shape.beyond(found.offset)}" if shape and found.distance > 0 else ""


def _memory(
    found: Finding,
    buffers: Sequence[str],
    shape: BufferShape | None,
    array: Callable[[int], str],
) -> str:
    named = array(found.offset) if found.space is Space.SHARED else ""
    if named:
        return f"{named} (shared{found.offset:+d})"
    if found.space is not Space.GLOBAL:
        return f"{found.space.name.lower()}{found.offset:+d}"
    if found.buffer < 0:
        address = found.offset & (1 << 64) - 1
        # larger ones come from the addresses of buffers, which differ from run to run
        return f"address 0x{address:x}" if address < 1 << 32 else "an address"
    name = buffers[found.buffer] if found.buffer < len(buffers) else f"buffer {found.buffer}"
    element = "" if shape is None or found.kind in STRAYS else shape.inside(found.offset)
    return f"{name}{found.offset:+d}" + (f" ({element})" if element else "")
