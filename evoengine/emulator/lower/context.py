"""What the lowering of every instruction uses: operands as values, results into registers, masks.

A register has a stack slot (LLVM's mem2reg removes it again): a scalar if it is uniform, the scalar
base if it is affine, else a vector of 32 lanes. Values are integers; floating-point instructions
bitcast them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from evoengine.emulator.analyse.lane_variance import UNIFORM, VARYING, Affine, Variance
from evoengine.emulator.analyse.uniformity import UniformityInfo
from evoengine.emulator.emulator_errors import Unsupported
from evoengine.emulator.lower.emitter import LANES, Emitter, floating, integer
from evoengine.emulator.lower.layout import Layout
from evoengine.emulator.lower.scratch import SCRATCH_BYTES, Scratch
from evoengine.emulator.lower.special_registers import special_register
from evoengine.emulator.lower.value import (
    IOTA,
    Value,
    affine_steps,
    float_pattern,
    lane_masks,
    literal,
)
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
from evoengine.emulator.run.abi import StopReason

__all__ = [
    "IOTA",
    "SCRATCH_BYTES",
    "BuildOperation",
    "InstructionSite",
    "LoweringContext",
    "Value",
    "lane_masks",
    "literal",
]

GROUP_ALIGN = 64  # LLVM assumes a vector of 32 words to be aligned to 128 bytes
# (whether values are <32 x T> or scalars T, *operands) -> result, as names of LLVM values
BuildOperation = Callable[..., str]


@dataclass(frozen=True)
class InstructionSite:
    """An instruction of the source, as faults and findings name it."""

    line: int  # line of the candidate's source, counted from 1; 0 if unknown
    text: str
    near: int = 0  # a line nearby, where its own is unknown; 0 if that is, too


class LoweringContext(Scratch):
    """The function under construction, and the instruction that is being lowered."""

    instruction: Instruction

    def __init__(
        self,
        layout: Layout,
        uniformity: UniformityInfo,
        registers: dict[str, str],
        fragment_groups: Sequence[tuple[str, ...]],
        block: tuple[int, int, int],
        *,
        vector_memory: bool,
        checked: bool,
        end: Callable[[StopReason], None],
    ) -> None:
        """`fragment_groups`: registers of type <32 x i32> whose slots are contiguous.

        `vector_memory`: gathers and scatters by LLVM instead of our runtime; only AVX-512 has both.

        `checked`: the checker is called before every access. `end` stops the warp in the middle of
        a block.
        """
        super().__init__(Emitter())
        self.layout = layout
        self.uniformity = uniformity
        self.registers = registers
        self.fragment_groups = fragment_groups
        self._group_positions = {
            name: (group, place)
            for group, names in enumerate(fragment_groups)
            for place, name in enumerate(names)
        }
        self.block = block
        self.vector_memory = vector_memory
        self.checked = checked
        self.end = end
        # registers that hold pure data; set in checked mode
        self.data: frozenset[str] = frozenset()
        # `id()`s of the loads that poll before an atomic operation; set in checked mode
        self.poll_loads: frozenset[int] = frozenset()
        self.sites: list[InstructionSite] = []
        self.site_numbers: dict[int, int] = {}  # `id()` of an instruction -> its index in `sites`
        self.mask: str | None = None  # active lanes as a <32 x i1>; None for all
        self.mask_bits = "-1"  # the same as an i32
        self.in_region = False

    def site(self, instruction: Instruction | None) -> int:
        """The index of `instruction` in `sites`, by which faults and findings name it."""
        key = id(instruction)  # instructions outlive the lowering: they belong to the function
        if key not in self.site_numbers:
            self.site_numbers[key] = len(self.sites)
            self.sites.append(
                InstructionSite(instruction.line, instruction.text, instruction.near)
                if instruction
                else InstructionSite(0, "")
            )
        return self.site_numbers[key]

    def is_data(self, operands: Sequence[Operand]) -> bool:
        """Whether `operands` are registers that hold pure data."""
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

    # ------------------------------------------------------------ variance and slots

    def variance(self, register: str) -> Variance:
        """The variance of a register."""
        self._register_bits(register)
        return self.uniformity.variance_of[register]

    def slot_type(self, register: str) -> str:
        """The LLVM type of a register's slot."""
        return integer(
            self._register_bits(register), self.uniformity.variance_of[register] is VARYING
        )

    @staticmethod
    def slot(register: str) -> str:
        """The name of a register's slot."""
        return f'%"{register[1:]}.slot"' if register.startswith("%") else f'%"{register}.bare"'

    def slot_access(self, register: str) -> str:
        """A register's slot as the pointer operand of loads and stores, with its alignment."""
        alignment = f", align {GROUP_ALIGN}" if register in self._group_positions else ""
        return f"ptr {self.slot(register)}{alignment}"

    def contiguous_slots(self, names: Sequence[str]) -> str | None:
        """The slot of the first of `names` if the slots of the others follow it in order; else
        None.
        """
        places = [self._group_positions.get(name) for name in names]
        if not names or places[0] is None:
            return None
        group, first = places[0]
        return (
            self.slot(names[0])
            if places == [(group, first + step) for step in range(len(names))]
            else None
        )

    def _register_bits(self, register: str) -> int:
        """The width in bits of a declared register; raises Unsupported for any other."""
        if register not in self.registers:
            raise self.unsupported(f"no register {register}")
        return TYPE_BITS[self.registers[register]]

    # ------------------------------------------------------------ reading

    def read(self, operand: Operand, bits: int) -> Value:
        """An operand as an integer of `bits` bits."""
        match operand:
            case Register(name):
                whole = self._register_bits(name)
                loaded = self.ir.get(f"load {self.slot_type(name)}, {self.slot_access(name)}")
                return self.resized(Value(self.variance(name), loaded, whole), bits)
            case Not(register):
                value = self.read(register, 1)
                ones = "splat (i1 true)" if value.is_vector else "true"
                return Value(
                    value.variance,
                    self.ir.get(f"xor {integer(1, value.is_vector)} {value.text}, {ones}"),
                    1,
                )
            case Integer(number):
                return Value(UNIFORM, literal(number, bits), bits)
            case Float(pattern, width):
                return Value(UNIFORM, literal(float_pattern(pattern, width, bits), bits), bits)
            case Special(name):
                found = special_register(self.ir, self.layout, self.block, name)
                if found is None:
                    raise self.unsupported(f"register {name}")
                return self.resized(found, bits)
            case Symbol():
                return self.resized(self.address_of(operand), bits)
        raise self.unsupported(f"operand {operand}")

    def vector(self, operand: Operand, bits: int) -> str:
        """An operand as <32 x i`bits`>."""
        return self.as_vector(self.read(operand, bits))

    def as_vector(self, value: Value) -> str:
        """A value of any variance as a vector <32 x i`bits`>."""
        if value.variance is VARYING:
            return value.text
        whole = self.ir.splat(value.text, f"i{value.bits}")
        if not isinstance(value.variance, Affine):
            return whole
        offsets = affine_steps(value.variance.stride, value.bits)
        return self.ir.get(f"add {integer(value.bits, True)} {whole}, {offsets}")

    def scalar(self, operand: Operand, bits: int) -> str | None:
        """An operand as a scalar i`bits` if it is uniform; else None."""
        value = self.read(operand, bits)
        return value.text if value.variance is UNIFORM else None

    def first_active(self, value: Value) -> str:
        """The value of the lowest active lane, as a scalar."""
        vector = self.as_vector(value)
        lane = "0"
        if self.mask is not None:
            lane = self.ir.intrinsic("cttz", "i32", self.mask_bits, also="i1 false")
            lane = self.ir.get(f"and i32 {lane}, 31")
        return self.ir.get(f"extractelement {integer(value.bits, True)} {vector}, i32 {lane}")

    def resized(self, value: Value, bits: int, signed: bool = False) -> Value:
        """A value truncated or extended to `bits` bits."""
        if value.bits == bits:
            return value
        number = value.number
        if number is not None:
            return Value(
                value.variance,
                literal(number if signed else number & ((1 << value.bits) - 1), bits),
                bits,
            )
        how = "trunc" if value.bits > bits else "sext" if signed else "zext"
        text = self.ir.get(
            f"{how} {integer(value.bits, value.is_vector)} {value.text} to"
            f" {integer(bits, value.is_vector)}"
        )
        return Value(value.variance, text, bits)

    def address_of(self, symbol: Symbol) -> Value:
        """The address of a variable in its own space: an offset for shared and local memory, else a
        host address; 64 bits.
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
        """The predicate of a guard, true where the instruction runs; 1 bit."""
        return self.read(Not(guard.register) if guard.negated else guard.register, 1)

    def guard_bits(self, guard: Guard) -> str:
        """The predicate of a guard as an i32 with a bit for each lane."""
        return self.ir.get(f"bitcast <{LANES} x i1> {self.as_vector(self.guard(guard))} to i32")

    # ------------------------------------------------------------ writing

    def write(self, operand: Operand, value: Value, signed: bool = False) -> None:
        """Writes a value to a register; inactive lanes keep their old value."""
        if isinstance(operand, Sink):
            return
        if not isinstance(operand, Register):
            raise self.unsupported(f"a result into {operand}")
        name, bits, variance = (
            operand.name,
            self._register_bits(operand.name),
            self.variance(operand.name),
        )
        value = self.resized(value, bits, signed)
        if variance is VARYING:
            self._store_vector(name, bits, self.as_vector(value))
        elif isinstance(variance, Affine) and not isinstance(value.variance, Affine):
            raise self.unsupported("a result that is not affine, in an affine register")
        else:
            text = (
                self.first_active(value)
                if variance is UNIFORM and value.variance is not UNIFORM
                else value.text
            )
            self.ir.do(f"store i{bits} {self._guarded(name, bits, text)}, {self.slot_access(name)}")

    def _guarded(self, name: str, bits: int, text: str) -> str:
        """The value of a scalar register after an instruction that may not run."""
        if self.instruction.guard is None:
            return text
        condition = self.guard(self.instruction.guard)
        if condition.variance is not UNIFORM:  # analysis makes such a register varying
            raise self.unsupported("a guard that differs between lanes, on a scalar result")
        before = self.ir.get(f"load i{bits}, {self.slot_access(name)}")
        return self.ir.get(f"select i1 {condition.text}, i{bits} {text}, i{bits} {before}")

    def preserves_inactive(self, name: str) -> bool:
        """Whether a write to register `name` must preserve its value in inactive lanes.

        Outside of regions the inactive lanes have exited and their registers are not read again.
        """
        return self.mask is not None and (
            self.instruction.guard is not None
            or (self.in_region and name not in self.uniformity.local)
        )

    def _store_vector(self, name: str, bits: int, text: str) -> None:
        type_ = integer(bits, True)
        if self.preserves_inactive(name):
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
        build: BuildOperation,
        *,
        signed: bool = False,
    ) -> None:
        """Writes build(vector, *sources) to the first operand; over scalars if all sources are
        uniform.
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
        """Writes the result of C function `name` on the lanes of `sources`, each of `bits` bits, to
        the first operand.
        """
        (found,) = self.call_lanes(
            name, [(bits, self.vector(source, bits)) for source in sources], [result_bits]
        )
        self.write(self.instruction.operands[0], Value(VARYING, found, result_bits), signed)

    def compute(self, values: Sequence[Value], result_bits: int, build: BuildOperation) -> Value:
        """build(vector, *values), over scalars if all are uniform."""
        if all(value.variance is UNIFORM for value in values):
            return Value(UNIFORM, build(False, *(value.text for value in values)), result_bits)
        return Value(
            VARYING, build(True, *(self.as_vector(value) for value in values)), result_bits
        )

    def floats(self, type_: str, vector: bool, *values: str) -> list[str]:
        """Integers bitcast to floating point of PTX `type_`."""
        return [self.as_float(value, type_, vector, TYPE_BITS[type_]) for value in values]

    def as_float(self, value: str, type_: str, vector: bool, bits: int) -> str:
        """One integer bitcast to floating point."""
        if value.startswith("splat"):  # a literal: cast inside
            inner = self.ir.get(
                f"bitcast i{bits} {value[value.index(' ', 7) + 1 : -1]} to {floating(type_, False)}"
            )
            return self.ir.splat(inner, floating(type_, False))
        return self.ir.get(f"bitcast {integer(bits, vector)} {value} to {floating(type_, vector)}")

    def as_integer(self, value: str, type_: str, vector: bool) -> str:
        """Floating point bitcast to an integer."""
        return self.ir.get(
            f"bitcast {floating(type_, vector)} {value} to {integer(TYPE_BITS[type_], vector)}"
        )

    @contextmanager
    def only_if(self, condition: str) -> Iterator[None]:
        """Emits the code of the `with` block so that it runs only if the i1 `condition` holds; no
        value that it defines may be used after it.
        """
        do, after = self.ir.label(), self.ir.label()
        self.ir.do(f"br i1 {condition}, label %{do}, label %{after}")
        self.ir.place(do)
        yield
        self.ir.do(f"br label %{after}")
        self.ir.place(after)
