"""What a kernel's machine code says without running it, in a few plain sentences: for prompts and
for reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from evoengine.candidate.residency import residency
from evoengine.records import KernelResources, MachineCode

NARROW_BYTES = 4  # of a thread: a load of 16 takes a quarter of the instructions
MOST_KINDS = 6  # that are listed
_MOVES = ("global load", "global store", "asynchronous copy", "shared load", "shared store")


def facts(kernel: KernelResources) -> tuple[str, ...]:
    """Sentences without a full stop: occupancy, instruction mix, accesses, then what may be slow.

    Numbers of instructions are those in the machine code, not those that run.
    """
    code = kernel.machine_code
    lines = [_occupancy(kernel)]
    if code is not None:
        lines += [_mix(code), _accesses(code), *_hints(code)]
    return tuple(line for line in lines if line)


def limits(kernel: KernelResources) -> tuple[str, ...]:
    """Of `facts` those that say what may be slow: of another specialisation of a known kernel."""
    hints = _hints(kernel.machine_code) if kernel.machine_code is not None else ()
    return tuple(line for line in (_occupancy(kernel), *hints) if line)


def _occupancy(kernel: KernelResources) -> str:
    found = residency(kernel)
    if found is None:
        return ""
    if not found.blocks:
        return f"no block of {kernel.block_threads} threads fits on an SM"
    plural = "s" if found.blocks > 1 else ""
    return (
        f"{found.blocks} block{plural} of {kernel.block_threads} threads fit on an SM:"
        f" {found.warps} of {found.most_warps} warps ({found.share:.0%}), limited by"
        f" {' and '.join(found.limiters)}"
    )


def _mix(code: MachineCode) -> str:
    if not code.loops_known:
        where, counts = "", code.kinds
    elif code.loop_kinds:
        where, counts = f", {sum(count for _, count in code.loop_kinds)} in loops", code.loop_kinds
    else:
        where, counts = ", no loops", code.kinds
    ordered = sorted(counts, key=lambda item: -item[1])
    shown = ", ".join(f"{count} {kind}" for kind, count in ordered[:MOST_KINDS])
    shapes = "; ".join(f"{count} {shape}" for shape, count in code.tensor_shapes)
    tensor = f"; tensor instructions: {shapes}" if shapes else ""
    return f"{code.instructions} instructions{where}: {shown}{tensor}"


def _accesses(code: MachineCode) -> str:
    in_loops = bool(code.loop_accesses)
    counts = code.loop_accesses if in_loops else code.accesses
    parts = []
    for name in _MOVES:
        widths = _widths((size, count) for kind, size, count in counts if kind == name)
        if widths:
            parts.append(f"{name} {widths}")
    if not parts:
        return ""
    where = "accesses in loops" if in_loops else "accesses"
    return f"{where}, bytes a thread: {', '.join(parts)}"


def _widths(counts: Iterable[tuple[int, int]]) -> str:
    return " + ".join(f"{count}x{size}" for size, count in counts)


def _hints(code: MachineCode) -> Iterator[str]:
    """What often costs time; what is not said here is not known to be good."""
    if local := _count(code.accesses, "local load", "local store"):
        looped = _count(code.loop_accesses, "local load", "local store")
        yield (
            f"{_some(local, 'access', 'accesses')} to local memory ({looped} in loops): spilled"
            " registers, or arrays with indices that are not constant"
        )
    loads = _count(code.loop_accesses, "global load")
    narrow = sum(
        count
        for kind, size, count in code.loop_accesses
        if kind == "global load" and size <= NARROW_BYTES
    )
    if narrow and 2 * narrow >= loads:
        yield f"{narrow} of {loads} global loads in loops: {NARROW_BYTES} bytes a thread or fewer"
    for count, one, more in (
        (code.loop_integer_divisions, "integer division", "integer divisions"),
        (code.loop_float_divisions, "exact float division", "exact float divisions"),
        (code.loop_barriers, "block barrier", "block barriers"),
    ):
        if count:
            yield f"{_some(count, one, more)} in loops"


def _some(count: int, one: str, more: str) -> str:
    return f"{count} {one if count == 1 else more}"


def _count(counts: Iterable[tuple[str, int, int]], *names: str) -> int:
    return sum(count for kind, _, count in counts if kind in names)
