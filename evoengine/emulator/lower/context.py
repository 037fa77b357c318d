"""What the lowering of every instruction stands on: operands as values, results into registers, under a mask.

A register has a slot on the stack (LLVM's mem2reg takes it away again): a scalar where it is
the same in all lanes, the scalar base of a ramp, or a vector of 32. Values are integers; floating
point instructions cast them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from evoengine.emulator.analyse.uniform import UNIFORM, VARYING, Ramp, Shape, Shapes, thread_shape
from evoengine.emulator.errors import Unsupported
from evoengine.emulator.lower.emitter import LANES, Emitter, floating, integer
from evoengine.emulator.lower.layout import Layout
from evoengine.emulator.ptx.program import (
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

IOTA = "<" + ", ".join(f"i32 {lane}" for lane in range(LANES)) + ">"
SMALL_NEGATIVE = -(1 << 20)
SCRATCH_BYTES = 16384


@dataclass(frozen=True)
class Value:
    """An integer value: for UNIFORM the scalar, for a Ramp its base, for VARYING the vector."""

    shape: Shape
    text: str
    bits: int

    @property
    def is_vector(self) -> bool:
        """Whether `text` holds a vector."""
        return self.shape is VARYING


@dataclass(frozen=True)
class Site:
    """One instruction, as faults and findings name it."""

    line: int  # of the candidate; 0 where unknown
    text: str


Build = Callable[..., str]  # (vector, *operands) -> result


class Context:
    """The function under construction, and the instruction that is being lowered."""

    def __init__(
        self,
        layout: Layout,
        shapes: Shapes,
        registers: dict[str, str],
        block: tuple[int, int, int],
        *,
        vector_memory: bool,
        checked: bool,
        end: Callable[[End], None],
    ) -> None:
        self.ir = Emitter()
        self.layout = layout
        self.shapes = shapes
        self.registers = registers
        self.block = block
        self.vector_memory = vector_memory  # gathers and scatters of LLVM, not of our runtime: only AVX-512 has both
        self.checked = checked  # every access asks the checker first
        self.end = end  # ends the warp here
        self.sites: list[Site] = []
        self._site_numbers: dict[int, int] = {}
        self.mask: str | None = None  # <32 x i1> of the lanes that run; None for all
        self.mask_bits = "-1"  # the same as an i32
        self.in_region = False
        self.instruction: Instruction

    def site(self, instruction: Instruction | None) -> int:
        """The number under which faults and findings name `instruction`."""
        key = id(instruction)  # instructions outlive the lowering: they belong to the function
        if key not in self._site_numbers:
            self._site_numbers[key] = len(self.sites)
            self.sites.append(Site(instruction.line, instruction.text) if instruction else Site(0, ""))
        return self._site_numbers[key]

    # ------------------------------------------------------------ shapes and slots

    def shape(self, register: str) -> Shape:
        """The shape of a register."""
        return self.shapes.of[register]

    def slot_type(self, register: str) -> str:
        """The LLVM type of a register's slot."""
        return integer(TYPE_BITS[self.registers[register]], self.shape(register) is VARYING)

    @staticmethod
    def slot(register: str) -> str:
        """The name of a register's slot."""
        return f'%"{register[1:]}.slot"' if register.startswith("%") else f'%"{register}.slot"'

    def unsupported(self, why: str = "") -> Unsupported:
        """The error for the instruction at hand."""
        return Unsupported(self.instruction.text + (f": {why}" if why else ""), self.instruction.line)

    # ------------------------------------------------------------ reading

    def read(self, operand: Operand, bits: int) -> Value:
        """An operand as an integer of `bits`."""
        match operand:
            case Register(name):
                return self._register(name, bits)
            case Not(register):
                value = self.read(register, 1)
                flipped = self.ir.get(f"xor {integer(1, value.is_vector)} {value.text}, {self._ones(value)}")
                return Value(value.shape, flipped, 1)
            case Integer(number):
                return Value(UNIFORM, literal(number, bits), bits)
            case Float(pattern, width):
                return Value(UNIFORM, literal(pattern if width == bits else _as_width(pattern, width, bits), bits), bits)
            case Special(name):
                return self._adapt(self._special(name), bits)
            case Symbol():
                return self._adapt(self.address_of(operand), bits)
        raise self.unsupported(f"operand {operand}")

    @staticmethod
    def _ones(value: Value) -> str:
        return "splat (i1 true)" if value.is_vector else "true"

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
        steps = "<" + ", ".join(f"i{value.bits} {literal(lane * value.shape.stride, value.bits)}" for lane in range(LANES)) + ">"
        return self.ir.get(f"add {integer(value.bits, True)} {whole}, {steps}")

    def scalar(self, operand: Operand, bits: int) -> str | None:
        """An operand as i`bits` when it is the same in all lanes; else None."""
        value = self.read(operand, bits)
        return value.text if value.shape is UNIFORM else None

    def _register(self, name: str, bits: int) -> Value:
        if name not in self.registers:
            raise self.unsupported(f"no register {name}")
        type_ = self.slot_type(name)
        loaded = self.ir.get(f"load {type_}, ptr {self.slot(name)}")
        return self._adapt(Value(self.shape(name), loaded, TYPE_BITS[self.registers[name]]), bits)

    def _adapt(self, value: Value, bits: int, signed: bool = False) -> Value:
        """The low `bits`, or the value widened."""
        if value.bits == bits:
            return value
        if value.text[0] not in "%<" and not value.is_vector:
            return Value(value.shape, literal(int(value.text) & ((1 << min(bits, value.bits)) - 1), bits), bits)
        how = "trunc" if value.bits > bits else "sext" if signed else "zext"
        text = self.ir.get(f"{how} {integer(value.bits, value.is_vector)} {value.text} to {integer(bits, value.is_vector)}")
        return Value(value.shape, text, bits)

    def _special(self, name: str) -> Value:
        if name.startswith("%tid."):
            return Value(thread_shape(name, self.block), f"%tid{name[-1]}", 32)
        fixed = {"x": 0, "y": 1, "z": 2}
        if name.startswith("%ntid."):
            return Value(UNIFORM, str(self.block[fixed[name[-1]]]), 32)
        if name.startswith(("%ctaid.", "%nctaid.")):
            return Value(UNIFORM, f"%{name[1:].replace('.', '')}", 32)
        if name == "%laneid":
            return Value(Ramp(1, even=True), "0", 32)
        if name.startswith("%lanemask_"):
            return Value(VARYING, lane_masks(name.removeprefix("%lanemask_")), 32)
        threads = self.block[0] * self.block[1] * self.block[2]
        constants = {"%nwarpid": -(-threads // LANES), "%nsmid": self.layout.sm_count, "%gridid": 1, "WARP_SZ": LANES}
        if name in constants:
            return Value(UNIFORM, str(constants[name]), 32)
        if name == "%warpid":
            return Value(UNIFORM, "%warp_index", 32)
        if name == "%smid":
            return Value(UNIFORM, self.ir.get(f"urem i32 %ctaidx, {self.layout.sm_count}"), 32)
        if name in ("%dynamic_smem_size", "%total_smem_size"):
            return self._shared_size(name == "%total_smem_size")
        if name in ("%clock", "%clock64", "%globaltimer", "%globaltimer_lo", "%clock_hi"):
            self.ir.declarations["@llvm.readcyclecounter"] = "declare i64 @llvm.readcyclecounter()"
            return Value(UNIFORM, self.ir.get("call i64 @llvm.readcyclecounter()"), 64)
        raise self.unsupported(f"register {name}")

    def _shared_size(self, total: bool) -> Value:
        if not total:
            return Value(UNIFORM, "%dynamic_shared", 32)
        return Value(UNIFORM, self.ir.get(f"add i32 %dynamic_shared, {self.layout.static_shared}"), 32)

    def address_of(self, symbol: Symbol) -> Value:
        """The address of a variable in its own space: an offset for shared and local, a host address otherwise."""
        space, offset = self.layout.place(symbol.name, self.instruction)
        offset += symbol.offset
        if space in ("shared", "local"):
            return Value(UNIFORM, str(offset), 64)
        if space == "param":
            return Value(UNIFORM, self.ir.get(f"add i64 {self.ir.get('ptrtoint ptr %params to i64')}, {offset}"), 64)
        return Value(UNIFORM, self.ir.get(f"add i64 %globals, {offset}"), 64)

    # ------------------------------------------------------------ writing

    def write(self, operand: Operand, value: Value, signed: bool = False) -> None:
        """Puts a value into a register; lanes that do not run keep what they have."""
        if isinstance(operand, Sink):
            return
        if not isinstance(operand, Register):
            raise self.unsupported(f"a result into {operand}")
        name, bits = operand.name, TYPE_BITS[self.registers[operand.name]]
        shape = self.shape(name)
        value = self._adapt(value, bits, signed)
        if shape is VARYING:
            self._store_vector(name, bits, self.spread(value))
            return
        if isinstance(shape, Ramp) and not isinstance(value.shape, Ramp):
            raise AssertionError(f"{self.instruction.text}: a ramp was expected")
        if shape is UNIFORM and value.shape is not UNIFORM:
            text = self.first(value)
            value = Value(UNIFORM, text, bits)
        text = value.text
        if self.instruction.guard:
            text = self._guarded_scalar(name, bits, text)
        self.ir.do(f"store i{bits} {text}, ptr {self.slot(name)}")

    def first(self, value: Value) -> str:
        """A value that analysis knows to be the same in all running lanes, as a scalar."""
        vector = self.spread(value)
        lane = "0"
        if self.mask is not None:
            lane = self.ir.intrinsic("cttz", "i32", self.mask_bits, also="i1 false")
            lane = self.ir.get(f"and i32 {lane}, 31")
        return self.ir.get(f"extractelement {integer(value.bits, True)} {vector}, i32 {lane}")

    def _guarded_scalar(self, name: str, bits: int, text: str) -> str:
        assert self.instruction.guard is not None
        condition = self.guard(self.instruction.guard)
        if condition.shape is not UNIFORM:  # analysis makes such a register varying
            raise AssertionError(f"{self.instruction.text}: a guard that is the same in all lanes was expected")
        before = self.ir.get(f"load i{bits}, ptr {self.slot(name)}")
        return self.ir.get(f"select i1 {condition.text}, i{bits} {text}, i{bits} {before}")

    def _store_vector(self, name: str, bits: int, text: str) -> None:
        type_ = integer(bits, True)
        keep = self.instruction.guard is not None or (self.in_region and name not in self.shapes.local)
        if keep and self.mask is not None:
            before = self.ir.get(f"load {type_}, ptr {self.slot(name)}")
            text = self.ir.get(f"select <{LANES} x i1> {self.mask}, {type_} {text}, {type_} {before}")
        self.ir.do(f"store {type_} {text}, ptr {self.slot(name)}")

    def guard(self, guard: Guard) -> Value:
        """The predicate of a guard as it is meant: true where the instruction runs."""
        return self.read(Not(guard.register) if guard.negated else guard.register, 1)

    # ------------------------------------------------------------ computing

    def apply(self, sources: Sequence[Operand], bits: int | Sequence[int], result_bits: int, build: Build, *, signed: bool = False) -> None:
        """Writes build(vector, *sources) to the first operand; scalars when all sources are the same in all lanes."""
        widths = [bits] * len(sources) if isinstance(bits, int) else list(bits)
        values = [self.read(source, width) for source, width in zip(sources, widths, strict=True)]
        self.write(self.instruction.operands[0], self.compute(values, result_bits, build), signed)

    def compute(self, values: Sequence[Value], result_bits: int, build: Build) -> Value:
        """build(vector, *values), over scalars when all are the same in all lanes."""
        if all(value.shape is UNIFORM for value in values):
            return Value(UNIFORM, build(False, *(value.text for value in values)), result_bits)
        return Value(VARYING, build(True, *(self.spread(value) for value in values)), result_bits)

    def floats(self, type_: str, vector: bool, *values: str) -> list[str]:
        """Integers as floating point of PTX `type_`, bit by bit."""
        bits = TYPE_BITS[type_]
        return [self.as_float(value, type_, vector, bits) for value in values]

    def as_float(self, value: str, type_: str, vector: bool, bits: int) -> str:
        """One integer as floating point, bit by bit."""
        if value.startswith("splat"):  # a literal: cast inside
            inner = self.ir.get(f"bitcast i{bits} {value[value.index(' ', 7) + 1 : -1]} to {floating(type_, False)}")
            return self.ir.splat(inner, floating(type_, False))
        return self.ir.get(f"bitcast {integer(bits, vector)} {value} to {floating(type_, vector)}")

    def as_integer(self, value: str, type_: str, vector: bool) -> str:
        """Floating point as an integer, bit by bit."""
        return self.ir.get(f"bitcast {floating(type_, vector)} {value} to {integer(TYPE_BITS[type_], vector)}")

    # ------------------------------------------------------------ calling C

    def lanes(self, slot: int, bits: int, text: str | None = None) -> str:
        """A pointer to room `slot` of the warp's scratch (256 bytes each: 32 lanes of up to 64 bits); `text` is stored there first."""
        pointer = self.ir.get(f"getelementptr i8, ptr %scratch, i64 {slot * LANES * 8}")
        if text is not None:
            self.ir.do(f"store {integer(bits, True)} {text}, ptr {pointer}, align 64")
        return pointer

    def rows(self, offset: int, bits: int, vectors: Sequence[str]) -> str:
        """A pointer to byte `offset` of the warp's scratch, where `vectors` are stored one right behind the other."""
        pointer = self.ir.get(f"getelementptr i8, ptr %scratch, i64 {offset}")
        for place, text in enumerate(vectors):
            at = self.ir.get(f"getelementptr i8, ptr %scratch, i64 {offset + place * LANES * bits // 8}") if place else pointer
            self.ir.do(f"store {integer(bits, True)} {text}, ptr {at}, align 64")
        return pointer

    def from_rows(self, pointer: str, bits: int, count: int) -> list[str]:
        """The vectors that C code left at `pointer`, one right behind the other."""
        step = LANES * bits // 8
        places = [self.ir.get(f"getelementptr i8, ptr {pointer}, i64 {step * place}") if place else pointer for place in range(count)]
        return [self.from_lanes(place, bits) for place in places]

    @contextmanager
    def only_if(self, condition: str) -> Iterator[None]:
        """What is emitted within runs only where the i1 `condition` holds; it must leave no value that is used behind."""
        do, after = self.ir.label(), self.ir.label()
        self.ir.do(f"br i1 {condition}, label %{do}, label %{after}")
        self.ir.place(do)
        yield
        self.ir.do(f"br label %{after}")
        self.ir.place(after)

    def from_lanes(self, pointer: str, bits: int) -> str:
        """The vector that C code left at `pointer`."""
        return self.ir.get(f"load {integer(bits, True)}, ptr {pointer}, align 64")

    def call_lanes(self, name: str, arguments: Sequence[tuple[int, str]], results: Sequence[int], *also: tuple[str, str]) -> list[str]:
        """C function `name`(lanes of each argument..., lanes of each result..., also...): the results as vectors.

        Arguments are (bits, vector), results are bits.
        """
        pointers = [self.lanes(slot, bits, text) for slot, (bits, text) in enumerate(arguments)]
        outs = [self.lanes(len(pointers) + slot, bits) for slot, bits in enumerate(results)]
        self.ir.call("void", name, *(("ptr", pointer) for pointer in [*pointers, *outs]), *also)
        return [self.from_lanes(pointer, bits) for pointer, bits in zip(outs, results, strict=True)]

    def apply_lanes(
        self, name: str, sources: Sequence[Operand], bits: int | Sequence[int], result_bits: int, *, signed: bool = False
    ) -> None:
        """Writes what C function `name`(lanes of each source..., lanes of the result) gives to the first operand."""
        widths = [bits] * len(sources) if isinstance(bits, int) else list(bits)
        arguments = [(width, self.vector(source, width)) for source, width in zip(sources, widths, strict=True)]
        (found,) = self.call_lanes(name, arguments, [result_bits])
        self.write(self.instruction.operands[0], Value(VARYING, found, result_bits), signed)


def literal(number: int, bits: int) -> str:
    """An integer as LLVM writes it: wrapped to `bits`, signed."""
    number &= (1 << bits) - 1
    if bits == 1:
        return "true" if number else "false"
    return str(number - (1 << bits) if number >> (bits - 1) else number)


def _as_width(pattern: int, width: int, bits: int) -> int:
    """A float literal written in one width and used in another (0f for f64 and the other way round)."""
    if width == 32 and bits == 64:
        return int(struct.unpack("<Q", struct.pack("<d", struct.unpack("<f", struct.pack("<I", pattern))[0]))[0])
    if width == 64 and bits == 32:
        return int(struct.unpack("<I", struct.pack("<f", struct.unpack("<d", struct.pack("<Q", pattern))[0]))[0])
    return pattern


def lane_masks(which: str) -> str:
    """%lanemask_eq, le, lt, ge, gt for all lanes, as a constant."""
    rules: dict[str, Callable[[int], int]] = {
        "eq": lambda lane: 1 << lane,
        "lt": lambda lane: (1 << lane) - 1,
        "le": lambda lane: (2 << lane) - 1,
        "gt": lambda lane: ~((2 << lane) - 1),
        "ge": lambda lane: ~((1 << lane) - 1),
    }
    return "<" + ", ".join(f"i32 {literal(rules[which](lane), 32)}" for lane in range(LANES)) + ">"
