"""What is the same in all lanes of a warp, what is a ramp over the lanes, and where lanes part.

Shapes of registers and regions of divergence are found together, because what a block writes while
only some lanes run is not the same in all lanes any more. Lanes that have ended do not count:
nobody looks at them again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from evoengine.emulator.analyse.address_registers import only_addresses
from evoengine.emulator.analyse.affine import Sources, ramp_rule
from evoengine.emulator.analyse.control_flow_graph import Flow
from evoengine.emulator.analyse.lane_variance import (
    UNIFORM,
    VARYING,
    WARP,
    Ramp,
    Shape,
    meet,
    special_shape,
    thread_shape,
)
from evoengine.emulator.analyse.regions import Influence, Region, influences, regions_of
from evoengine.emulator.analyse.registers import read, registers_of, written
from evoengine.emulator.ptx.syntax import (
    Address,
    Function,
    Instruction,
    Integer,
    Not,
    Operand,
    Register,
    Special,
    Vector,
)

__all__ = ["UNIFORM", "VARYING", "Ramp", "Region", "Shape", "Shapes", "shapes_of", "thread_shape"]

VECTOR_ONLY = frozenset(("mma", "wmma", "ldmatrix", "movmatrix", "atom", "match", "call", "elect"))
# These give one value for all lanes of a member mask, whatever their other operands are.
COLLECTIVE = frozenset(("vote", "redux"))


@dataclass
class Shapes:
    """The shape of every register, and the regions of divergence."""

    of: dict[str, Shape]
    regions: list[Region]
    region_of: dict[int, int] = field(default_factory=dict)  # block -> number of its region
    local: frozenset[str] = frozenset()  # registers that live in one block only


def shapes_of(function: Function, flow: Flow, block: tuple[int, int, int]) -> Shapes:
    """The shapes for thread blocks of `block` = (x, y, z) threads."""
    analysis = _Analysis(function, flow, block)
    parts: list[Influence] = []
    divergent: frozenset[int] = frozenset()
    while True:
        found = analysis.shapes(divergent)
        parts = influences(flow, lambda name, found=found: found.get(name) is UNIFORM)  # type: ignore[misc]  # mypy knows no lambda defaults
        grown = divergent.union(*(blocks for blocks, _ in parts))
        if grown == divergent:
            break
        divergent = grown
    regions = regions_of(parts)
    region_of = {number: index for index, region in enumerate(regions) for number in region.blocks}
    return Shapes(found, regions, region_of, analysis.local)


class _Analysis:
    """The least fixed point: everything starts out unknown and only gets worse."""

    def __init__(self, function: Function, flow: Flow, block: tuple[int, int, int]) -> None:
        self.function = function
        self.flow = flow
        self.block = block
        self.written = {
            name for node in flow.nodes for item in node.instructions for name in written(item)
        }
        self.constants = self._constants()
        self.addresses = only_addresses(function, flow)
        alive = set[str]().union(*(node.live_in for node in flow.nodes))
        self.local = frozenset(name for name in function.registers if name not in alive)

    def _constants(self) -> dict[str, int]:
        """Registers that hold one integer literal all their life."""
        writers: dict[str, list[Instruction]] = {}
        for node in self.flow.nodes:
            for instruction in node.instructions:
                for name in written(instruction):
                    writers.setdefault(name, []).append(instruction)
        found = {}
        for name, (first, *others) in writers.items():
            source = first.operands[1] if len(first.operands) > 1 else None
            if (
                not others
                and first.op == "mov"
                and first.guard is None
                and isinstance(source, Integer)
            ):
                found[name] = source.value
        return found

    def shapes(self, divergent: frozenset[int]) -> dict[str, Shape]:
        """Of every register, when only some lanes may run the blocks `divergent`.

        What nobody writes, or only from itself, is the same in all lanes, whatever it is. Compilers
        leave such registers in half-used vectors, so what is computed from them still counts.
        """
        found: dict[str, Shape] = dict.fromkeys(
            self.function.registers.keys() - self.written, UNIFORM
        )
        while True:
            self._settle(found, divergent)
            missing = self.function.registers.keys() - found.keys()
            if not missing:
                return found
            found.update(dict.fromkeys(missing, UNIFORM))

    def _settle(self, found: dict[str, Shape], divergent: frozenset[int]) -> None:
        changed = True
        while changed:
            changed = False
            for number, node in enumerate(self.flow.nodes):
                for instruction in node.instructions:
                    changed |= self._step(found, instruction, number in divergent)

    def _step(self, found: dict[str, Shape], instruction: Instruction, divergent: bool) -> bool:
        """Whether an instruction made the shape of a register worse."""
        names = written(instruction)
        if not names or any(name not in found for name in read(instruction)):
            return False
        changed = False
        for name in names:
            shape = self._written_shape(found, instruction, name, divergent)
            before = found.get(name)
            after = shape if before is None else meet(before, shape)
            changed |= after != before
            found[name] = after
        return changed

    def _written_shape(
        self, found: dict[str, Shape], instruction: Instruction, name: str, divergent: bool
    ) -> Shape:
        """What a register has when some lanes may keep what was there."""
        if divergent and name not in self.local:
            return VARYING
        shape = self._result(found, instruction)
        if instruction.guard and (
            found.get(instruction.guard.register.name) is not UNIFORM or isinstance(shape, Ramp)
        ):
            return VARYING
        return shape

    def _result(self, found: dict[str, Shape], instruction: Instruction) -> Shape:
        op, of_local = instruction.op, instruction.has("local")
        if op == "activemask":
            return UNIFORM
        if op in VECTOR_ONLY or (of_local and (op == "ld" or not instruction.has("to"))):
            return VARYING
        shapes = [self._operand(found, item) for item in instruction.operands[1:]]
        if op in COLLECTIVE:
            return UNIFORM if shapes and shapes[-1] is UNIFORM else VARYING
        if op == "shfl":
            return UNIFORM if self._is_broadcast(instruction, shapes) else VARYING
        if all(shape is UNIFORM for shape in shapes) and all(
            found.get(item) is UNIFORM for item in read(instruction)
        ):
            return UNIFORM
        addressing = all(name in self.addresses for name in written(instruction))
        return ramp_rule(
            instruction,
            Sources(shapes, [self._integer(item) for item in instruction.operands[1:]], addressing),
        )

    def _operand(self, found: dict[str, Shape], operand: Operand) -> Shape:
        if isinstance(operand, Register):
            return found.get(operand.name, UNIFORM)
        if isinstance(operand, Special):
            return special_shape(operand.name, self.block)
        if isinstance(operand, Address):
            return self._operand(found, operand.base)
        if isinstance(operand, Vector | Not):
            return (
                UNIFORM
                if all(found.get(item.name) is UNIFORM for item in registers_of(operand))
                else VARYING
            )
        return UNIFORM

    def _integer(self, operand: Operand) -> int | None:
        """The value of a literal, or of a register that holds one."""
        if isinstance(operand, Integer):
            return operand.value
        return self.constants.get(operand.name) if isinstance(operand, Register) else None

    def _is_broadcast(self, instruction: Instruction, shapes: list[Shape]) -> bool:
        """A shuffle that gives one lane's value to the whole warp: shfl.idx d, a, lane, 31,
        members.
        """
        if len(shapes) != 4 or not instruction.has("idx"):
            return False
        return (
            shapes[1] is UNIFORM
            and self._integer(instruction.operands[3]) == WARP - 1
            and shapes[3] is UNIFORM
        )
