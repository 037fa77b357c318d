"""Turns the .param variables of call sequences into registers.

clang passes all arguments through them: `st.param.b64 [param0+8], %rd1`, and `ld.param` in the
callee. Each part that is written or read becomes a register of its own, named `param0.o8`. A
variable whose parts overlap, or whose address is taken, becomes a .local variable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from evoengine.emulator.emulator_errors import PtxError, Unsupported
from evoengine.emulator.ptx.syntax import (
    TYPE_BITS,
    Address,
    Block,
    Float,
    Function,
    Instruction,
    Operand,
    Register,
    Sink,
    Symbol,
    Variable,
    Vector,
)

_WIDEST = 64  # bits that `mov` can move


@dataclass(slots=True)
class _ParamUse:
    """The uses of a .param variable in a function."""

    variable: Variable
    # offset -> bytes of the largest access
    parts: dict[int, int] = field(default_factory=dict)
    # offset -> bytes of the smallest write
    written: dict[int, int] = field(default_factory=dict)
    in_memory: bool = False

    def add(self, offset: int, size: int, write: bool, text: str) -> None:
        """Records a read or write of these bytes."""
        if offset < 0 or offset + size > self.variable.size:
            raise PtxError(f"`{text}` reaches outside of its {self.variable.size} bytes")
        self.parts[offset] = max(size, self.parts.get(offset, 0))
        if write:
            self.written[offset] = min(size, self.written.get(offset, size))

    def decide(self) -> None:
        """Decides between registers and memory, once all uses are known. The low part of a register
        may be read alone.
        """
        end = 0
        for offset in sorted(self.parts):
            size = self.parts[offset]
            self.in_memory |= (
                offset < end or self.written.get(offset, size) < size or size * 8 > _WIDEST
            )
            end = offset + size

    def part(self, offset: int) -> Register:
        """The register that holds the bytes from `offset` on."""
        return Register(f"{self.variable.name}.o{offset}")


def as_registers(function: Function) -> Function:
    """A copy of `function` without .param variables; its own parameters stay as they are."""
    uses = {
        name: _ParamUse(variable)
        for name, variable in function.variables.items()
        if variable.space == "param"
    }
    for block in function.blocks:
        for instruction in block.instructions:
            _note(instruction, uses)
    for use in uses.values():
        use.decide()
    registers = dict(function.registers)
    for use in uses.values():
        if not use.in_memory:
            registers.update(
                {
                    use.part(offset).name: f"b{max(16, 8 * size)}"
                    for offset, size in use.parts.items()
                }
            )
    moves = _Rewriter(uses, registers)
    blocks = [
        Block(block.label, [new for old in block.instructions for new in moves.of(old)])
        for block in function.blocks
    ]
    variables = {
        name: variable for name, variable in function.variables.items() if name not in uses
    }
    for name, use in uses.items():
        if use.in_memory:
            variables[name] = replace(use.variable, space="local")
    return replace(function, registers=registers, variables=variables, blocks=blocks)


def _accessed(instruction: Instruction) -> Address | None:
    """The address of `ld.param` or `st.param`, if it is that of a variable."""
    if (
        instruction.op not in ("ld", "st")
        or not instruction.has("param")
        or len(instruction.operands) != 2
    ):
        return None
    address = instruction.operands[1 if instruction.op == "ld" else 0]
    return address if isinstance(address, Address) and isinstance(address.base, Symbol) else None


def _elements(instruction: Instruction, address: Address) -> Iterator[tuple[int, int, Operand]]:
    """(offset, bytes, register or value) of each element that `instruction` moves."""
    size = TYPE_BITS.get(instruction.type, 0) // 8
    if size == 0:
        raise PtxError(f"`{instruction.text}` has no type")
    moved = instruction.operands[0 if instruction.op == "ld" else 1]
    for index, item in enumerate(moved.items if isinstance(moved, Vector) else (moved,)):
        yield address.offset + index * size, size, item


def _note(instruction: Instruction, uses: dict[str, _ParamUse]) -> None:
    address = _accessed(instruction)
    if address is not None and isinstance(address.base, Symbol) and address.base.name in uses:
        for offset, size, _ in _elements(instruction, address):
            uses[address.base.name].add(offset, size, instruction.op == "st", instruction.text)
        return
    for operand in instruction.operands:
        if instruction.op == "call" and isinstance(operand, Vector):
            _note_call(instruction, operand, uses)
        else:
            for name in _named(operand):
                if name in uses:
                    uses[name].in_memory = True


def _note_call(call: Instruction, passed: Vector, uses: dict[str, _ParamUse]) -> None:
    """Records the uses of a call of a function without a body: whole variables of at most 8
    bytes.
    """
    for item in passed.items:
        if isinstance(item, Symbol) and item.name in uses:
            use = uses[item.name]
            if use.variable.size not in (1, 2, 4, 8):
                raise Unsupported(f"a structure in `{call.text}`", call.line)
            use.add(0, use.variable.size, passed is call.operands[0], call.text)


def _named(operand: Operand) -> Iterator[str]:
    match operand:
        case Symbol(name=name) | Address(base=Symbol(name=name)):
            yield name
        case Vector(items=items):
            for item in items:
                if isinstance(item, Symbol):
                    yield item.name


class _Rewriter:
    """Rewrites instructions to use registers instead of .param variables."""

    def __init__(self, uses: dict[str, _ParamUse], registers: dict[str, str]) -> None:
        self.uses = uses
        self.registers = registers

    def of(self, old: Instruction) -> list[Instruction]:
        """The instructions that replace `old`."""
        if old.op == "call":
            return [
                replace(
                    old, operands=tuple(self._passed(old, operand) for operand in old.operands[:3])
                )
            ]
        address = _accessed(old)
        if (
            address is None
            or not isinstance(address.base, Symbol)
            or address.base.name not in self.uses
        ):
            return [old]
        use = self.uses[address.base.name]
        if use.in_memory:
            return [
                replace(
                    old,
                    modifiers=tuple("local" if part == "param" else part for part in old.modifiers),
                )
            ]
        one: Callable[[Instruction, Register, Operand], Instruction] = (
            self._read if old.op == "ld" else self._write
        )
        return [
            one(old, use.part(offset), item)
            for offset, _, item in _elements(old, address)
            if not isinstance(item, Sink)
        ]

    def _passed(self, call: Instruction, operand: Operand) -> Operand:
        if not isinstance(operand, Vector):
            return operand
        return Vector(tuple(self._value(call, item) for item in operand.items))

    def _value(self, call: Instruction, item: Operand) -> Operand:
        use = self.uses.get(item.name) if isinstance(item, Symbol) else None
        if use is None:
            return item
        if use.in_memory:
            raise Unsupported(f"an argument in several parts in `{call.text}`", call.line)
        return use.part(0)

    def _bits(self, value: Operand, otherwise: int) -> int:
        kind = self.registers.get(value.name, "") if isinstance(value, Register) else ""
        return TYPE_BITS.get(kind, otherwise)

    def _read(self, old: Instruction, part: Register, target: Operand) -> Instruction:
        """ld.param: a target register wider than the type is extended; of a wider part the low bits
        count.
        """
        bits = TYPE_BITS[old.type]
        wide = self._bits(target, bits)
        if wide < bits:
            raise PtxError(f"`{old.text}` loads more than the register takes")
        plain = wide == bits == TYPE_BITS[self.registers[part.name]]
        sign = "s" if old.type.startswith("s") else "u"
        modifiers = (f"b{bits}",) if plain else (f"{sign}{wide}", f"{sign}{bits}")
        return replace(
            old, op="mov" if plain else "cvt", modifiers=modifiers, operands=(target, part)
        )

    def _write(self, old: Instruction, part: Register, value: Operand) -> Instruction:
        """st.param: the low bits of the register; a single byte travels in 16 bits, of which the
        upper are never read.
        """
        bits = max(16, TYPE_BITS[old.type])
        wide = self._bits(value, bits)
        if wide < bits:
            raise PtxError(f"`{old.text}` stores more than the register has")
        letter = "f" if isinstance(value, Float) else "b"
        modifiers = (f"{letter}{bits}",) if wide == bits else (f"u{bits}", f"u{wide}")
        return replace(
            old, op="mov" if wide == bits else "cvt", modifiers=modifiers, operands=(part, value)
        )
