"""What the lowering of every instruction stands on: operands as values, results into registers,
under a mask.

A register has a slot on the stack (LLVM's mem2reg takes it away again): a scalar where it is the
same in all lanes, the scalar base of a ramp, or a vector of 32. Values are integers; floating point
instructions cast them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from evoengine.emulator.analyse.lane_variance import UNIFORM, VARYING, Ramp, Shape
from evoengine.emulator.analyse.uniformity import Shapes
from evoengine.emulator.emulator_errors import Unsupported
from evoengine.emulator.lower.emitter import LANES, Emitter, floating, integer
from evoengine.emulator.lower.layout import Layout
from evoengine.emulator.lower.scratch import SCRATCH_BYTES, Scratch
from evoengine.emulator.lower.special_registers import special
from evoengine.emulator.lower.value import IOTA, Value, float_pattern, lane_masks, literal, steps
from evoengine.emulator.ptx.syntax import (
    TYPE_BITS,
    Float,
    Guard,
    Instruction,
    Integer,
    Not,
    Operand,
    Register,
    Sink,
    Special,
    Symbol,
)
from evoengine.emulator.run.abi import End

__all__ = ["IOTA", "SCRATCH_BYTES", "Build", "Context", "Site", "Value", "lane_masks", "literal"]

STRIP_ALIGN = 64  # LLVM takes a vector of 32 words to be aligned to 128
Build = Callable[..., str]  # (vector, *operands) -> result


@dataclass(frozen=True)
class Site:
    """One instruction, as faults and findings name it."""

    line: int  # of the candidate; 0 where unknown
    text: str


class Context(Scratch):
    """The function under construction, and the instruction that is being lowered."""

    instruction: Instruction

    def __init__(
        self,
        layout: Layout,
        shapes: Shapes,
        registers: dict[str, str],
        strips: Sequence[tuple[str, ...]],
        block: tuple[int, int, int],
        *,
        vector_memory: bool,
        checked: bool,
        end: Callable[[End], None],
    ) -> None:
        """`strips`: vectors of 32 bits whose slots lie side by side.

        `vector_memory`: gathers and scatters of LLVM, not of our runtime: only AVX-512 has both.

        `checked`: every access asks the checker first. `end` ends the warp in the middle of a
        block.
        """
        super().__init__(Emitter())
        self.layout = layout
        self.shapes = shapes
        self.registers = registers
        self.strips = strips
        self._strip_places = {
            name: (strip, place)
            for strip, names in enumerate(strips)
            for place, name in enumerate(names)
        }
        self.block = block
        self.vector_memory = vector_memory
        self.checked = checked
        self.end = end
        # registers that decide nothing, known in checked mode
        self.data: frozenset[str] = frozenset()
        # ids of loads before atomic operations, known in checked mode
        self.looks: frozenset[int] = frozenset()
        self.sites: list[Site] = []
        self._site_numbers: dict[int, int] = {}
        self.mask: str | None = None  # <32 x i1> of the lanes that run; None for all
        self.mask_bits = "-1"  # the same as an i32
        self.in_region = False

    def site(self, instruction: Instruction | None) -> int:
        """The number under which faults and findings name `instruction`."""
        key = id(instruction)  # instructions outlive the lowering: they belong to the function
        if key not in self._site_numbers:
            self._site_numbers[key] = len(self.sites)
            self.sites.append(
                Site(instruction.line, instruction.text) if instruction else Site(0, "")
            )
        return self._site_numbers[key]

    def is_data(self, operands: Sequence[Operand]) -> bool:
        """Whether what is put into `operands` decides nothing."""
        return all(
            isinstance(item, Register) and item.name in self.data
            for item in operands
            if not isinstance(item, Sink)
        )

    def unsupported(self, why: str = "") -> Unsupported:
        """The error for the instruction at hand."""
        return Unsupported(
            self.instruction.text + (f": {why}" if why else ""), self.instruction.line
        )

    # ------------------------------------------------------------ shapes and slots

    def shape(self, register: str) -> Shape:
        """The shape of a register."""
        self._known(register)
        return self.shapes.of[register]

    def slot_type(self, register: str) -> str:
        """The LLVM type of a register's slot."""
        return integer(self._known(register), self.shapes.of[register] is VARYING)

    @staticmethod
    def slot(register: str) -> str:
        """The name of a register's slot."""
        return f'%"{register[1:]}.slot"' if register.startswith("%") else f'%"{register}.bare"'

    def slot_access(self, register: str) -> str:
        """A register's slot as loads and stores name it."""
        alignment = f", align {STRIP_ALIGN}" if register in self._strip_places else ""
        return f"ptr {self.slot(register)}{alignment}"

    def strip(self, names: Sequence[str]) -> str | None:
        """The slot of the first of `names` where the slots of the others follow it, in order."""
        places = [self._strip_places.get(name) for name in names]
        if not names or places[0] is None:
            return None
        strip, first = places[0]
        return (
            self.slot(names[0])
            if places == [(strip, first + step) for step in range(len(names))]
            else None
        )

    def _known(self, register: str) -> int:
        """The bits of a register that is declared."""
        if register not in self.registers:
            raise self.unsupported(f"no register {register}")
        return TYPE_BITS[self.registers[register]]

    # ------------------------------------------------------------ reading

    def read(self, operand: Operand, bits: int) -> Value:
        """An operand as an integer of `bits`."""
        match operand:
            case Register(name):
                whole = self._known(name)
                loaded = self.ir.get(f"load {self.slot_type(name)}, {self.slot_access(name)}")
                return self.resized(Value(self.shape(name), loaded, whole), bits)
            case Not(register):
                value = self.read(register, 1)
                ones = "splat (i1 true)" if value.is_vector else "true"
                return Value(
                    value.shape,
                    self.ir.get(f"xor {integer(1, value.is_vector)} {value.text}, {ones}"),
                    1,
                )
            case Integer(number):
                return Value(UNIFORM, literal(number, bits), bits)
            case Float(pattern, width):
                return Value(UNIFORM, literal(float_pattern(pattern, width, bits), bits), bits)
            case Special(name):
                found = special(self.ir, self.layout, self.block, name)
                if found is None:
                    raise self.unsupported(f"register {name}")
                return self.resized(found, bits)
            case Symbol():
                return self.resized(self.address_of(operand), bits)
        raise self.unsupported(f"operand {operand}")

    def vector(self, operand: Operand, bits: int) -> str:
        """An operand as <32 x i`bits`>."""
        return self.spread(self.read(operand, bits))

    def spread(self, value: Value) -> str:
        """A value as a vector of 32 lanes."""
        if value.shape is VARYING:
            return value.text
        whole = self.ir.splat(value.text, f"i{value.bits}")
        if not isinstance(value.shape, Ramp):
            return whole
        return self.ir.get(
            f"add {integer(value.bits, True)} {whole}, {steps(value.shape.stride, value.bits)}"
        )

    def scalar(self, operand: Operand, bits: int) -> str | None:
        """An operand as i`bits` when it is the same in all lanes; else None."""
        value = self.read(operand, bits)
        return value.text if value.shape is UNIFORM else None

    def first(self, value: Value) -> str:
        """A value that is to be the same in all running lanes, as a scalar: the lowest running
        lane's.
        """
        vector = self.spread(value)
        lane = "0"
        if self.mask is not None:
            lane = self.ir.intrinsic("cttz", "i32", self.mask_bits, also="i1 false")
            lane = self.ir.get(f"and i32 {lane}, 31")
        return self.ir.get(f"extractelement {integer(value.bits, True)} {vector}, i32 {lane}")

    def resized(self, value: Value, bits: int, signed: bool = False) -> Value:
        """The low `bits` of a value, or the value widened."""
        if value.bits == bits:
            return value
        number = value.number
        if number is not None:
            return Value(
                value.shape,
                literal(number if signed else number & ((1 << value.bits) - 1), bits),
                bits,
            )
        how = "trunc" if value.bits > bits else "sext" if signed else "zext"
        text = self.ir.get(
            f"{how} {integer(value.bits, value.is_vector)} {value.text} to"
            f" {integer(bits, value.is_vector)}"
        )
        return Value(value.shape, text, bits)

    def address_of(self, symbol: Symbol) -> Value:
        """The address of a variable in its own space: an offset for shared and local, a host
        address otherwise.
        """
        space, offset = self.layout.place(symbol.name, self.instruction)
        offset += symbol.offset
        if space in ("shared", "local"):
            return Value(UNIFORM, literal(offset, 64), 64)
        if space == "param":
            return Value(
                UNIFORM,
                self.ir.get(
                    f"add i64 {self.ir.get('ptrtoint ptr %params to i64')}, {literal(offset, 64)}"
                ),
                64,
            )
        return Value(UNIFORM, self.ir.get(f"add i64 %globals, {literal(offset, 64)}"), 64)

    def guard(self, guard: Guard) -> Value:
        """The predicate of a guard as it is meant: true where the instruction runs."""
        return self.read(Not(guard.register) if guard.negated else guard.register, 1)

    def guard_bits(self, guard: Guard) -> str:
        """The same as an i32 with a bit for each lane."""
        return self.ir.get(f"bitcast <{LANES} x i1> {self.spread(self.guard(guard))} to i32")

    # ------------------------------------------------------------ writing

    def write(self, operand: Operand, value: Value, signed: bool = False) -> None:
        """Puts a value into a register; lanes that do not run keep what they have."""
        if isinstance(operand, Sink):
            return
        if not isinstance(operand, Register):
            raise self.unsupported(f"a result into {operand}")
        name, bits, shape = operand.name, self._known(operand.name), self.shape(operand.name)
        value = self.resized(value, bits, signed)
        if shape is VARYING:
            self._store_vector(name, bits, self.spread(value))
        elif isinstance(shape, Ramp) and not isinstance(value.shape, Ramp):
            raise self.unsupported("a result that counts over the lanes was expected")
        else:
            text = (
                self.first(value) if shape is UNIFORM and value.shape is not UNIFORM else value.text
            )
            self.ir.do(f"store i{bits} {self._guarded(name, bits, text)}, {self.slot_access(name)}")

    def _guarded(self, name: str, bits: int, text: str) -> str:
        """What a scalar register holds behind an instruction that may not run."""
        if self.instruction.guard is None:
            return text
        condition = self.guard(self.instruction.guard)
        if condition.shape is not UNIFORM:  # analysis makes such a register varying
            raise self.unsupported("a guard that is the same in all lanes was expected")
        before = self.ir.get(f"load i{bits}, {self.slot_access(name)}")
        return self.ir.get(f"select i1 {condition.text}, i{bits} {text}, i{bits} {before}")

    def keeps(self, name: str) -> bool:
        """Whether lanes that do not run keep what they have in a register.

        Outside of regions they have ended: nobody looks at theirs again, so nothing is kept for
        them.
        """
        return self.mask is not None and (
            self.instruction.guard is not None or (self.in_region and name not in self.shapes.local)
        )

    def _store_vector(self, name: str, bits: int, text: str) -> None:
        type_ = integer(bits, True)
        if self.keeps(name):
            before = self.ir.get(f"load {type_}, {self.slot_access(name)}")
            text = self.ir.get(
                f"select <{LANES} x i1> {self.mask}, {type_} {text}, {type_} {before}"
            )
        self.ir.do(f"store {type_} {text}, {self.slot_access(name)}")

    # ------------------------------------------------------------ computing

    def apply(
        self,
        sources: Sequence[Operand],
        bits: int | Sequence[int],
        result_bits: int,
        build: Build,
        *,
        signed: bool = False,
    ) -> None:
        """Writes build(vector, *sources) to the first operand; scalars when all sources are the
        same in all lanes.
        """
        widths = [bits] * len(sources) if isinstance(bits, int) else list(bits)
        values = [self.read(source, width) for source, width in zip(sources, widths, strict=True)]
        self.write(self.instruction.operands[0], self.compute(values, result_bits, build), signed)

    def apply_lanes(
        self,
        name: str,
        sources: Sequence[Operand],
        bits: int,
        result_bits: int,
        *,
        signed: bool = False,
    ) -> None:
        """Writes what C function `name` makes of the lanes of `sources`, each of `bits`, to the
        first operand.
        """
        (found,) = self.call_lanes(
            name, [(bits, self.vector(source, bits)) for source in sources], [result_bits]
        )
        self.write(self.instruction.operands[0], Value(VARYING, found, result_bits), signed)

    def compute(self, values: Sequence[Value], result_bits: int, build: Build) -> Value:
        """build(vector, *values), over scalars when all are the same in all lanes."""
        if all(value.shape is UNIFORM for value in values):
            return Value(UNIFORM, build(False, *(value.text for value in values)), result_bits)
        return Value(VARYING, build(True, *(self.spread(value) for value in values)), result_bits)

    def floats(self, type_: str, vector: bool, *values: str) -> list[str]:
        """Integers as floating point of PTX `type_`, bit by bit."""
        return [self.as_float(value, type_, vector, TYPE_BITS[type_]) for value in values]

    def as_float(self, value: str, type_: str, vector: bool, bits: int) -> str:
        """One integer as floating point, bit by bit."""
        if value.startswith("splat"):  # a literal: cast inside
            inner = self.ir.get(
                f"bitcast i{bits} {value[value.index(' ', 7) + 1 : -1]} to {floating(type_, False)}"
            )
            return self.ir.splat(inner, floating(type_, False))
        return self.ir.get(f"bitcast {integer(bits, vector)} {value} to {floating(type_, vector)}")

    def as_integer(self, value: str, type_: str, vector: bool) -> str:
        """Floating point as an integer, bit by bit."""
        return self.ir.get(
            f"bitcast {floating(type_, vector)} {value} to {integer(TYPE_BITS[type_], vector)}"
        )

    @contextmanager
    def only_if(self, condition: str) -> Iterator[None]:
        """What is emitted within runs only where the i1 `condition` holds; it must leave no value
        that is used behind.
        """
        do, after = self.ir.label(), self.ir.label()
        self.ir.do(f"br i1 {condition}, label %{do}, label %{after}")
        self.ir.place(do)
        yield
        self.ir.do(f"br label %{after}")
        self.ir.place(after)
