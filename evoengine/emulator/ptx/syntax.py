"""The syntax tree of PTX: module, variables, functions, basic blocks, instructions, operands.

PTX ISA 8.3, chapters 4 and 5. It says nothing about the meaning of instructions.
"""

from __future__ import annotations

from dataclasses import dataclass, field

TYPE_BITS = {
    "pred": 1,
    **dict.fromkeys(("b8", "u8", "s8", "e4m3", "e5m2"), 8),
    **dict.fromkeys(("b16", "u16", "s16", "f16", "bf16", "e4m3x2", "e5m2x2"), 16),
    **dict.fromkeys(("b32", "u32", "s32", "f32", "f16x2", "bf16x2", "u16x2", "s16x2", "tf32"), 32),
    **dict.fromkeys(("b64", "u64", "s64", "f64", "f32x2"), 64),
    "b128": 128,
}


@dataclass(frozen=True, slots=True)
class Register:
    """A virtual register. Names are unique in a function: one declared in an inner scope has a
    suffix.
    """

    name: str  # "%r12"


@dataclass(frozen=True, slots=True)
class Special:
    """A special register."""

    name: str  # "%tid.x", "%laneid", "%clock64"


@dataclass(frozen=True, slots=True)
class Integer:
    """An integer literal as written; the instruction's type determines its width."""

    value: int


@dataclass(frozen=True, slots=True)
class Float:
    """A floating-point literal (0f3F800000, 0d...), by its bits."""

    bits: int
    width: int  # 32 or 64


@dataclass(frozen=True, slots=True)
class Symbol:
    """The address of a variable, or the name of a function, label or parameter; `offset` in
    bytes.
    """

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Address:
    """[base + offset], offset in bytes."""

    base: Register | Symbol | Integer
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Vector:
    """{a, b, c, d}"""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """d|p of setp, shfl, match."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Not:
    """!p"""

    register: Register


@dataclass(frozen=True, slots=True)
class Sink:
    """_: a result that is discarded."""


Operand = Register | Special | Integer | Float | Symbol | Address | Vector | Pair | Not | Sink


@dataclass(frozen=True, slots=True)
class Guard:
    """@p or @!p before an instruction."""

    register: Register
    negated: bool


@dataclass(frozen=True, slots=True)
class Instruction:
    """One statement, e.g. op "ld", modifiers ("global", "nc", "v4", "f32")."""

    op: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Guard | None
    # of the candidate's source, counted from 1; 0 if .loc is missing or names another file
    line: int
    text: str  # as in the PTX, without the semicolon
    # where that is 0, as of what the compiler has moved out of a loop: the last line before it
    near: int = 0

    @property
    def type(self) -> str:
        """The last modifier: the type that it operates on."""
        return self.modifiers[-1] if self.modifiers else ""

    def has(self, modifier: str) -> bool:
        """Whether `modifier` is among its modifiers."""
        return modifier in self.modifiers


@dataclass(slots=True)
class Block:
    """A basic block: it ends before the next label or after a branch, ret or exit; else it falls
    through to the next.

    In a kernel from `inline_calls` a guarded exit (there are no guarded rets) does not end a block:
    the other lanes continue after it.
    """

    label: str
    instructions: list[Instruction] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a kernel or function; `offset` in bytes is its place in a kernel's parameter
    buffer, as CUDA lays it out.
    """

    name: str
    type: str
    size: int  # bytes
    align: int
    offset: int


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable in memory."""

    name: str
    space: str  # global, const, shared, local
    size: int  # bytes; 0 for an extern array without a size
    align: int
    data: bytes = b""  # initial value; zeros follow if it is shorter than size
    addresses: tuple[
        tuple[int, Symbol], ...
    ] = ()  # (offset in data, symbol whose address is stored there)
    extern: bool = False


@dataclass(slots=True)
class Function:
    """A kernel (.entry) or a device function (.func)."""

    name: str
    is_kernel: bool
    parameters: tuple[Parameter, ...]
    results: tuple[Parameter, ...]
    registers: dict[str, str]  # name -> type
    variables: dict[str, Variable]  # .local, .shared and .param variables declared in its body
    blocks: list[Block]
    directives: dict[str, tuple[int, ...]]  # maxntid, reqntid, minnctapersm, maxnreg


@dataclass(slots=True)
class Module:
    """A whole PTX file."""

    version: str  # "8.3"
    target: str  # "sm_89"
    variables: dict[str, Variable]
    functions: dict[str, Function]  # those with a body
    declared: frozenset[str]  # functions without a body: vprintf, __assertfail, our math functions
