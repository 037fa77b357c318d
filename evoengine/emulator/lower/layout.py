"""Where variables lie: offsets in the shared window, in a thread's local frame, in the module's memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from evoengine.emulator.errors import Unsupported
from evoengine.emulator.ptx.program import Address, Function, Instruction, Module, Operand, Parameter, Symbol, Variable, Vector

SHARED_ALIGN = 16  # where dynamic shared memory begins behind the static one
FRAME_ALIGN = 16


@dataclass
class Layout:
    """The places of one kernel's variables."""

    parameters: dict[str, Parameter]
    parameter_bytes: int
    shared: dict[str, int]
    static_shared: int  # bytes; dynamic shared memory begins behind
    local: dict[str, int]
    frame_bytes: int  # local memory of one thread
    globals: dict[str, int] = field(default_factory=dict)
    sm_count: int = 1
    arena_base: int = 0
    arena_bits: int = 0

    def place(self, name: str, instruction: Instruction) -> tuple[str, int]:
        """The space and offset of a variable."""
        for space, places in (("shared", self.shared), ("local", self.local), ("global", self.globals)):
            if name in places:
                return space, places[name]
        if name in self.parameters:
            return "param", self.parameters[name].offset
        raise Unsupported(f"{instruction.text}: the address of {name}", instruction.line)


def lay_out(module: Module, kernel: Function) -> Layout:
    """The layout of `kernel`, whose calls are inlined; of shared and local variables only those that it uses get a place."""
    used = _used(kernel)
    everything = {name: item for name, item in {**module.variables, **kernel.variables}.items() if name in used}
    shared, static = _stack([item for item in everything.values() if item.space == "shared" and not item.extern and item.size])
    static = -(-static // SHARED_ALIGN) * SHARED_ALIGN
    dynamic = {item.name: static for item in everything.values() if item.space == "shared" and (item.extern or not item.size)}
    local, frame = _stack([item for item in everything.values() if item.space == "local"])
    globals_, _ = _stack([item for item in module.variables.values() if item.space in ("global", "const")])
    size = max((item.offset + item.size for item in kernel.parameters), default=0)
    return Layout(
        parameters={item.name: item for item in kernel.parameters},
        parameter_bytes=size,
        shared={**shared, **dynamic},
        static_shared=static,
        local=local,
        frame_bytes=-(-frame // FRAME_ALIGN) * FRAME_ALIGN,
        globals=globals_,
    )


def _used(kernel: Function) -> set[str]:
    operands = [operand for block in kernel.blocks for instruction in block.instructions for operand in instruction.operands]
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
    """Places one behind the other, and the bytes they take."""
    places, end = dict[str, int](), 0
    for item in variables:
        align = max(1, item.align)
        end = -(-end // align) * align
        places[item.name] = end
        end += item.size
    return places, end
