"""Writes expressions of `random_programs` as PTX: every load is guarded, its address is computed in
one of several ways.
"""

from __future__ import annotations

from tests.emulator.random_programs import (
    Const,
    Expr,
    Load,
    Op,
    Program,
    Special,
    Var,
)

_TYPES = {1: "pred", 16: "b16", 32: "b32", 64: "b64"}


class ExpressionWriter:
    """Writes the registers and expressions of one function."""

    def __init__(self, program: Program, variables: dict[str, int]) -> None:
        self.program, self.variables = program, variables
        self.lines: list[str] = []
        self.registers: dict[str, str] = {
            f"%{name}": _TYPES[bits] for name, bits in variables.items()
        }
        self.guard = ""
        self.loops: list[tuple[str, str]] = []  # (where break goes, where continue goes)
        self.count = 0

    def emit(self, text: str) -> None:
        """Appends an instruction, under the current guard."""
        self.lines.append(f"    {self.guard}{text};")

    def label(self, text: str) -> None:
        """Appends a label."""
        self.lines.append(f"{text}:")

    def fresh(self, what: str = "L") -> str:
        """A fresh name."""
        self.count += 1
        return f"{what}{self.count}"

    def new(self, bits: int) -> str:
        """A fresh register."""
        name = f"%t{self.fresh('')}"
        self.registers[name] = _TYPES[bits]
        return name

    # ------------------------------------------------------------ expressions

    def value(self, expr: Expr, into: str = "") -> str:
        """An operand with the value; `into` is the register that must hold it."""
        match expr:
            case Const(bits, number):
                text = str(number)
            case Var(_, name):
                text = f"%{name}"
            case Special(name):
                text = f"%{name}"
                into = into or self.new(32)
            case Load():
                return self.load(expr, into)
            case Op(text, bits, args):
                operands = [self.operand(item) for item in args]
                into = into or self.new(bits)
                self.emit(f"{text} {into}, {', '.join(operands)}")
                return into
        if into:
            self.emit(f"mov.{_TYPES[expr.bits]} {into}, {text}")
            return into
        return text

    def operand(self, expr: Expr) -> str:
        """A valid source operand: special registers are only allowed in mov."""
        return self.value(expr)

    def register(self, expr: Expr) -> str:
        """The value in a register."""
        text = self.value(expr)
        if text[0] == "%":
            return text
        into = self.new(expr.bits)
        self.emit(f"mov.{_TYPES[expr.bits]} {into}, {text}")
        return into

    def load(self, expr: Load, into: str) -> str:
        """A load guarded by its own comparison, within the current guard."""
        index = self.register(expr.index)
        address = self.address(expr, index)
        found, inside = self.new(32), self.new(1)
        narrow = self.new(16) if int(expr.type[1:]) <= 16 else found
        self.emit(f"setp.lt.u32 {inside}, {index}, {expr.limit}")
        if self.guard:
            outer = self.guard.strip()[1:]
            both = self.new(1)
            # Outside of the guard `inside` may hold anything: the conjunction is computed by all.
            before, self.guard = self.guard, ""
            if outer[0] == "!":
                flipped = self.new(1)
                self.emit(f"not.pred {flipped}, {outer[1:]}")
                outer = flipped
            self.emit(f"and.pred {both}, {outer}, {inside}")
            self.guard = before
            inside = both
        zero = "mov.b16" if narrow != found else "mov.b32"
        self.emit(f"{zero} {narrow}, 0")
        space = {"input": "global", "shared": "shared", "local": "local"}[expr.array]
        if expr.how == "generic":
            space = ""
        before, self.guard = self.guard, f"@{inside} "
        dot = f".{space}" if space else ""
        self.emit(
            f"ld{dot}.{expr.type} {narrow}, [{address}+{expr.offset}]"
            if expr.offset
            else f"ld{dot}.{expr.type} {narrow}, [{address}]"
        )
        self.guard = before
        if narrow != found:
            sign = expr.type[0]
            self.emit(f"cvt.{sign}32.{sign}16 {found}, {narrow}")
        if into:
            self.emit(f"mov.b32 {into}, {found}")
        return into or found

    def address(self, expr: Load, index: str) -> str:
        """base + index * stride, computed in one of several ways."""
        wide = self.new(64)
        base = self.base(expr)
        if expr.array != "input" and expr.how == "low":
            narrow, place = self.new(32), self.new(32)
            self.emit(f"mov.u32 {place}, {expr.array}_memory")
            self.emit(f"mad.lo.u32 {narrow}, {index}, {expr.stride}, {place}")
            return narrow
        if expr.how == "wide.mad":
            self.emit(f"mad.wide.u32 {wide}, {index}, {expr.stride}, {base}")
            return wide
        if expr.how in ("wide.u32", "wide.s32", "generic"):
            self.emit(
                f"mul.wide.{'s32' if expr.how == 'wide.s32' else 'u32'} {wide}, {index},"
                f" {expr.stride}"
            )
        elif expr.how == "low":
            narrow = self.new(32)
            self.emit(f"mul.lo.u32 {narrow}, {index}, {expr.stride}")
            self.emit(f"cvt.u64.u32 {wide}, {narrow}")
        else:
            longer = self.new(64)
            self.emit(f"cvt.u64.u32 {longer}, {index}")
            self.emit(f"mul.lo.s64 {wide}, {longer}, {expr.stride}")
        whole = self.new(64)
        self.emit(f"add.s64 {whole}, {base}, {wide}")
        return whole

    def base(self, expr: Load) -> str:
        """The address of an array, in its own space or generic."""
        if expr.array == "input":
            return "%input"
        base = self.new(64)
        self.emit(f"mov.u64 {base}, {expr.array}_memory")
        if expr.how != "generic":
            return base
        generic = self.new(64)
        self.emit(f"cvta.{expr.array}.u64 {generic}, {base}")
        return generic

    def declared(self) -> list[str]:
        """The declarations of the registers."""
        return [f"    .reg .{type_} {name};" for name, type_ in self.registers.items()]
