"""Addresses of variables: offsets in the shared window, in a thread's local frame, in the module's
memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from evoengine.emulator.emulator_errors import Unsupported
from evoengine.emulator.ptx.syntax import (
    Address,
    Function,
    Instruction,
    Module,
    Operand,
    Parameter,
    Symbol,
    Variable,
    Vector,
)

SHARED_ALIGN = 16  # minimum alignment of the start of dynamic shared memory
FRAME_ALIGN = 16


@dataclass
class Layout:
    """The offsets of one kernel's variables, in bytes."""

    parameters: dict[str, Parameter]
    parameter_bytes: int
    shared: dict[str, int]
    static_shared: int  # bytes; a launch adds its dynamic ones
    local: dict[str, int]
    frame_bytes: int  # bytes of local memory of one thread
    globals: dict[str, int] = field(default_factory=dict)
    sm_count: int = 1
    arena_base: int = 0
    arena_bits: int = 0

    def place(self, name: str, instruction: Instruction) -> tuple[str, int]:
        """The space and offset of a variable."""
        for space, places in (
            ("shared", self.shared),
            ("local", self.local),
            ("global", self.globals),
        ):
            if name in places:
                return space, places[name]
        if name in self.parameters:
            return "param", self.parameters[name].offset
        raise Unsupported(f"{instruction.text}: the address of {name}", instruction.line)


def lay_out(module: Module, kernel: Function) -> Layout:
    """The layout of `kernel`, whose calls are inlined; only shared and local variables that it uses
    are laid out.
    """
    used = _used(kernel)
    everything = {
        name: item
        for name, item in {**module.variables, **kernel.variables}.items()
        if name in used
    }
    shared, static = _shared(everything.values(), module)
    local, frame = _stack([item for item in everything.values() if item.space == "local"])
    globals_, _ = _stack(
        [item for item in module.variables.values() if item.space in ("global", "const")]
    )
    size = max((item.offset + item.size for item in kernel.parameters), default=0)
    return Layout(
        parameters={item.name: item for item in kernel.parameters},
        parameter_bytes=size,
        shared=shared,
        static_shared=static,
        local=local,
        frame_bytes=_rounded(frame, FRAME_ALIGN),
        globals=globals_,
    )


def _shared(used: Iterable[Variable], module: Module) -> tuple[dict[str, int], int]:
    """Offsets of the shared variables that a kernel uses, and the static bytes of a block, as ptxas
    lays them out.

    Observed with ptxas 13.0 on an H100: each extern array begins after the static variables at the
    next multiple of its own alignment, so two of them may begin at different offsets. The static
    bytes are rounded up to the largest alignment that an extern array of the module has, whether
    this kernel uses it or not.
    """
    mine = [item for item in used if item.space == "shared"]
    places, end = _stack([item for item in mine if not _is_dynamic(item)])
    dynamic = {item.name: _rounded(end, _start(item)) for item in mine if _is_dynamic(item)}
    aligns = [
        _start(item)
        for item in module.variables.values()
        if item.space == "shared" and _is_dynamic(item)
    ]
    return {**places, **dynamic}, _rounded(end, max(aligns, default=SHARED_ALIGN))


def _is_dynamic(item: Variable) -> bool:
    return item.extern or not item.size


def _start(item: Variable) -> int:
    return max(SHARED_ALIGN, item.align)


def _rounded(size: int, align: int) -> int:
    return -(-size // align) * align


def _used(kernel: Function) -> set[str]:
    operands = [
        operand
        for block in kernel.blocks
        for instruction in block.instructions
        for operand in instruction.operands
    ]
    return {symbol.name for operand in operands for symbol in _symbols(operand)}


def _symbols(operand: Operand) -> Iterator[Symbol]:
    match operand:
        case Symbol():
            yield operand
        case Address(base, _):
            yield from _symbols(base)
        case Vector(items):
            for item in items:
                yield from _symbols(item)


def _stack(variables: list[Variable]) -> tuple[dict[str, int], int]:
    """Consecutive offsets of `variables`, and the bytes they take in all."""
    places, end = dict[str, int](), 0
    for item in variables:
        end = _rounded(end, max(1, item.align))
        places[item.name] = end
        end += item.size
    return places, end
