"""What is the same in all lanes of a warp, what is a ramp over the lanes, and where lanes part.

Three shapes of a register: UNIFORM (one value for the warp), a Ramp (base + stride x lane, with
a known stride), and VARYING. Found together with the divergent regions, because what a block
writes while only some lanes run is not the same in all lanes any more. Lanes that have ended do
not count: nobody looks at them again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from evoengine.emulator.analyse.graph import Flow, suspends
from evoengine.emulator.analyse.registers import read, written
from evoengine.emulator.ptx.program import (
    Address,
    Function,
    Instruction,
    Integer,
    Operand,
    Register,
    Special,
)

WARP = 32
TID = ("%tid.x", "%tid.y", "%tid.z")
PER_LANE = frozenset(
    ("%laneid", "%lanemask_eq", "%lanemask_le", "%lanemask_lt", "%lanemask_ge", "%lanemask_gt", "%clock", "%clock64", "%clock_hi")
)
VECTOR_ONLY = frozenset(("mma", "wmma", "ldmatrix", "movmatrix", "atom", "match", "call", "elect"))
# These give one value for all lanes of a member mask, whatever their other operands are.
COLLECTIVE = frozenset(("vote", "redux"))


@dataclass(frozen=True)
class Ramp:
    """base + stride * lane; `even` when base is known to be a multiple of 32 strides (tid.x of a warp)."""

    stride: int
    even: bool = False
    thread: bool = False  # it is threadIdx.x itself


class _Uniform:
    def __repr__(self) -> str:
        return "UNIFORM"


class _Varying:
    def __repr__(self) -> str:
        return "VARYING"


UNIFORM, VARYING = _Uniform(), _Varying()
Shape = _Uniform | _Varying | Ramp


@dataclass
class Region:
    """Blocks in which only some lanes may run; all lanes meet again at `join`."""

    blocks: tuple[int, ...]
    join: int


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
    divergent: frozenset[int] = frozenset()
    while True:
        found = analysis.shapes(divergent)
        grown = divergent | analysis.divergent_blocks(found)
        if grown == divergent:
            break
        divergent = grown
    regions = _regions(flow, analysis.influences(found))
    region_of = {number: index for index, region in enumerate(regions) for number in region.blocks}
    return Shapes(found, regions, region_of, analysis.local)


def thread_shape(name: str, block: tuple[int, int, int]) -> Shape:
    """The shape of a component of threadIdx."""
    if name == "%tid.x":
        if block[0] % WARP == 0 or block[1] * block[2] == 1:
            return Ramp(1, even=True, thread=True)
        return VARYING
    extent = 1 if name == "%tid.y" else block[1]
    rows = block[0] * extent
    if (name == "%tid.y" and block[1] == 1) or (name == "%tid.z" and block[2] == 1):
        return UNIFORM
    return UNIFORM if rows % WARP == 0 else VARYING


class _Analysis:
    def __init__(self, function: Function, flow: Flow, block: tuple[int, int, int]) -> None:
        self.function = function
        self.flow = flow
        self.block = block
        self.constants = self._constants()
        self.local = self._block_local()

    def _constants(self) -> dict[str, int]:
        """Registers that hold one integer literal all their life."""
        writers: dict[str, list[Instruction]] = {}
        for node in self.flow.nodes:
            for instruction in node.instructions:
                for name in written(instruction):
                    writers.setdefault(name, []).append(instruction)
        found = {}
        for name, items in writers.items():
            only = items[0]
            if len(items) == 1 and only.op == "mov" and only.guard is None and isinstance(only.operands[1], Integer):
                found[name] = only.operands[1].value
        return found

    def _block_local(self) -> frozenset[str]:
        """Registers that no block needs from another one: written before they are read, and nowhere alive at a block's start."""
        alive = set[str]().union(*(node.live_in for node in self.flow.nodes)) if self.flow.nodes else set[str]()
        return frozenset(name for name in self.function.registers if name not in alive)

    def shapes(self, divergent: frozenset[int]) -> dict[str, Shape]:
        """The least fixed point: everything starts out unknown and only gets worse."""
        found: dict[str, Shape] = {}
        changed = True
        while changed:
            changed = False
            for number, node in enumerate(self.flow.nodes):
                for instruction in node.instructions:
                    if self._step(found, instruction, number in divergent):
                        changed = True
        for name in self.function.registers:
            found.setdefault(name, UNIFORM)  # never written: whatever it is, it is the same for all
        return found

    def _step(self, found: dict[str, Shape], instruction: Instruction, divergent: bool) -> bool:
        names = written(instruction)
        if not names:
            return False
        sources = [found.get(name) for name in read(instruction)]
        if any(shape is None for shape in sources):
            return False
        changed = False
        for name in names:
            shape = self._result(found, instruction, name)
            if divergent and name not in self.local:
                shape = VARYING
            if instruction.guard and found.get(instruction.guard.register.name) is not UNIFORM:
                shape = VARYING
            elif instruction.guard and isinstance(shape, Ramp):
                shape = VARYING
            before = found.get(name)
            after = shape if before is None or before == shape else _meet(before, shape)
            if after != before:
                found[name] = after
                changed = True
        return changed

    def operand(self, found: dict[str, Shape], operand: Operand) -> Shape:
        """The shape of one operand."""
        if isinstance(operand, Register):
            return found.get(operand.name, UNIFORM)
        if isinstance(operand, Special):
            if operand.name in TID:
                return thread_shape(operand.name, self.block)
            if operand.name == "%laneid":
                return Ramp(1, even=True)
            return VARYING if operand.name in PER_LANE else UNIFORM
        if isinstance(operand, Address):
            return self.operand(found, operand.base)
        return UNIFORM

    def integer(self, operand: Operand) -> int | None:
        """The value of a literal, or of a register that holds one."""
        if isinstance(operand, Integer):
            return operand.value
        return self.constants.get(operand.name) if isinstance(operand, Register) else None

    def _result(self, found: dict[str, Shape], instruction: Instruction, name: str) -> Shape:
        op = instruction.op
        if op == "activemask":
            return UNIFORM
        if op in VECTOR_ONLY or (instruction.has("local") and (op == "ld" or not instruction.has("to"))):
            return VARYING
        sources = [self.operand(found, item) for item in instruction.operands[1:]]
        if op in COLLECTIVE:
            return UNIFORM if sources[-1] is UNIFORM else VARYING
        if op == "shfl":
            return UNIFORM if self._is_broadcast(instruction, sources) else VARYING
        if all(shape is UNIFORM for shape in sources) and all(
            found.get(item) is UNIFORM for item in read(instruction) if item in self.function.registers
        ):
            return UNIFORM
        rule = _RAMP_RULES.get(op)
        return rule(self, instruction, sources) if rule else VARYING

    def _is_broadcast(self, instruction: Instruction, sources: list[Shape]) -> bool:
        """A shuffle that gives one lane's value to the whole warp."""
        whole = self.integer(instruction.operands[3]) == WARP - 1
        return instruction.has("idx") and sources[1] is UNIFORM and whole and sources[3] is UNIFORM

    def influences(self, found: dict[str, Shape]) -> list[tuple[frozenset[int], int]]:
        """For every branch at which lanes part: the blocks up to where they meet, and that place."""
        parts = []
        for number, node in enumerate(self.flow.nodes):
            last = node.last
            if last is not None and last.op == "bra" and last.guard and found[last.guard.register.name] is not UNIFORM:
                parts.append(self._until_all_meet(self.flow.influence(number), self.flow.post_dominator[number]))
        return parts

    def _until_all_meet(self, blocks: frozenset[int], join: int) -> tuple[frozenset[int], int]:
        """Where some lanes wait at a barrier the others do not wait for them at the join: they go on to their end."""
        if join == self.flow.exit or not any(self._waits(number) for number in blocks):
            return blocks, join
        return blocks | self.flow.reachable(join), self.flow.exit

    def _waits(self, number: int) -> bool:
        last = self.flow.nodes[number].last
        return last is not None and suspends(last)

    def divergent_blocks(self, found: dict[str, Shape]) -> frozenset[int]:
        """All blocks in which only some lanes may run."""
        return frozenset[int]().union(*(blocks for blocks, _ in self.influences(found)))


def _meet(a: Shape, b: Shape) -> Shape:
    if isinstance(a, Ramp) and isinstance(b, Ramp) and a.stride == b.stride:
        return Ramp(a.stride, a.even and b.even)
    return VARYING


def _regions(flow: Flow, influences: list[tuple[frozenset[int], int]]) -> list[Region]:
    """Overlapping influences become one region; the one that reaches furthest has the common join."""
    merged: list[tuple[set[int], list[int]]] = []
    for blocks, join in influences:
        if not blocks:
            continue
        fresh, joins, rest = set(blocks), [join], []
        for other, others in merged:
            if other & fresh:
                fresh |= other
                joins += others
            else:
                rest.append((other, others))
        merged = [*rest, (fresh, joins)]
    if any(a & b for i, (a, _) in enumerate(merged) for b, _ in merged[:i]):
        return _regions(flow, [(frozenset(blocks), join) for blocks, joins in merged for join in joins])
    found = []
    for blocks, joins in merged:
        outside = {join for join in joins if join not in blocks}
        assert len(outside) == 1, "overlapping regions meet in one place, because each join is on every path to the other"
        found.append(Region(tuple(sorted(blocks)), outside.pop()))
    return found


# ---------------------------------------------------------------- ramps


def _move(_: _Analysis, instruction: Instruction, sources: list[Shape]) -> Shape:
    return sources[0] if len(sources) == 1 and not instruction.has("shared") and isinstance(instruction.operands[0], Register) else VARYING


def _cvta(_: _Analysis, __: Instruction, sources: list[Shape]) -> Shape:
    return sources[0]


def _convert(_: _Analysis, instruction: Instruction, sources: list[Shape]) -> Shape:
    """Widening keeps a ramp only while it cannot wrap: indices of threads do not, and clang relies on the same for addresses."""
    integers = ("u32", "s32", "u64", "s64")
    if len(instruction.modifiers) == 2 and all(item in integers for item in instruction.modifiers) and isinstance(sources[0], Ramp):
        return sources[0]
    return VARYING


def _add(_: _Analysis, instruction: Instruction, sources: list[Shape]) -> Shape:
    if instruction.type not in ("s32", "u32", "s64", "u64", "b32", "b64") or len(instruction.modifiers) != 1:
        return VARYING
    a, b = (_stride(shape) for shape in sources)
    if a is None or b is None:
        return VARYING
    stride = a + b if instruction.op == "add" else a - b
    return Ramp(stride) if stride else VARYING


def _multiply(self: _Analysis, instruction: Instruction, sources: list[Shape]) -> Shape:
    if not (instruction.has("lo") or instruction.has("wide")) or instruction.type not in ("s32", "u32", "s64", "u64"):
        return VARYING
    ramp, factor = sources[0], self.integer(instruction.operands[2])
    if not isinstance(ramp, Ramp):
        ramp, factor = sources[1], self.integer(instruction.operands[1])
    if not isinstance(ramp, Ramp) or factor is None or not 0 < factor <= 1 << 16:
        return VARYING
    stride = ramp.stride * factor
    if instruction.op == "mad":
        added = _stride(sources[2])
        if added is None or stride + added == 0:
            return VARYING
        return Ramp(stride + added)
    return Ramp(stride, ramp.even)


def _shift_left(self: _Analysis, instruction: Instruction, sources: list[Shape]) -> Shape:
    ramp, by = sources[0], self.integer(instruction.operands[2])
    if isinstance(ramp, Ramp) and by is not None and 0 <= by <= 16 and instruction.type in ("b32", "b64"):
        return Ramp(ramp.stride << by, ramp.even)
    return VARYING


def _shift_right(self: _Analysis, instruction: Instruction, sources: list[Shape]) -> Shape:
    ramp, by = sources[0], self.integer(instruction.operands[2])
    return UNIFORM if isinstance(ramp, Ramp) and ramp.even and ramp.stride == 1 and by is not None and by >= 5 else VARYING


def _and(self: _Analysis, instruction: Instruction, sources: list[Shape]) -> Shape:
    ramp, mask = sources[0], self.integer(instruction.operands[2])
    if not (isinstance(ramp, Ramp) and ramp.even and ramp.stride == 1 and mask is not None):
        return VARYING
    if mask == WARP - 1:
        return Ramp(1, even=True)
    return UNIFORM if mask & (WARP - 1) == 0 else VARYING


def _or(self: _Analysis, instruction: Instruction, sources: list[Shape]) -> Shape:
    """clang writes `base | offset` for sums without carries; of a ramp with 32 values the low bits are its own."""
    ramp, low = sources[0], self.integer(instruction.operands[2])
    if isinstance(ramp, Ramp) and ramp.even and low is not None and 0 < low < ramp.stride and ramp.stride & (ramp.stride - 1) == 0:
        return Ramp(ramp.stride)
    if isinstance(ramp, Ramp) and ramp.even and low is not None and low > 0 and low % (WARP * ramp.stride) == 0 and instruction.has("disjoint"):
        return Ramp(ramp.stride, even=True)
    return VARYING


def _compare(self: _Analysis, instruction: Instruction, sources: list[Shape]) -> Shape:
    """tid < 64 is the same for the whole warp."""
    ramp, limit = sources[0], self.integer(instruction.operands[2]) if len(instruction.operands) > 2 else None
    if len(instruction.modifiers) != 2 or not (isinstance(ramp, Ramp) and ramp.even and ramp.stride == 1) or limit is None:
        return VARYING
    edge = {"lt": limit, "ge": limit, "gt": limit + 1, "le": limit + 1}.get(instruction.modifiers[0])
    return UNIFORM if edge is not None and edge % WARP == 0 and limit >= 0 else VARYING


def _stride(shape: Shape) -> int | None:
    if shape is UNIFORM:
        return 0
    return shape.stride if isinstance(shape, Ramp) else None


_RAMP_RULES = {
    "mov": _move,
    "cvta": _cvta,
    "cvt": _convert,
    "add": _add,
    "sub": _add,
    "mul": _multiply,
    "mad": _multiply,
    "shl": _shift_left,
    "shr": _shift_right,
    "and": _and,
    "or": _or,
    "setp": _compare,
}
