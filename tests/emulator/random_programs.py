"""Syntax trees of random kernels: integer arithmetic, nested control flow, memory, shuffles, votes,
barriers.

A tree is the program of one thread. `random_program_generator` generates them, `random_program_ptx`
writes them as PTX, `random_program_interpreter` runs them thread by thread with Python's integers.
Every variable has an initial value, and is stored to global memory at the end.
"""

from __future__ import annotations

from dataclasses import dataclass

INPUT_WORDS = 512
LOCAL_WORDS = 8
SLOTS = 4  # words of a thread in the global scratch and in shared memory
VARIABLES = {
    **{f"a{n}": 32 for n in range(4)},
    **{f"w{n}": 64 for n in range(3)},
    **{f"h{n}": 16 for n in range(2)},
    **{f"p{n}": 1 for n in range(2)},
    **{
        f"r{n}": 32 for n in range(2)
    },  # affine variables: they begin as threadIdx.x, and a uniform value is added
    "q0": 64,  # the same in 64 bits
    **{
        f"u{n}": 32 for n in range(3)
    },  # only ever assigned what is the same for the whole block, by the whole block
}
FUNCTION_VARIABLES = {"x0": 32, "x1": 32, "y0": 64}


# ---------------------------------------------------------------- expressions; a value is an
# unsigned integer of `bits`


@dataclass(frozen=True)
class Const:
    """A literal."""

    bits: int
    value: int


@dataclass(frozen=True)
class Var:
    """A variable's value."""

    bits: int
    name: str


@dataclass(frozen=True)
class Special:
    """A special register: tid.x, ctaid.x, laneid..."""

    name: str
    bits: int = 32


@dataclass(frozen=True)
class Op:
    """A PTX instruction without its operands, e.g. mul.wide.u32; `bits` is of its result."""

    text: str
    bits: int
    args: tuple[Expr, ...]


@dataclass(frozen=True)
class Load:
    """The element of `type` at offset + index * stride of an array, or 0 unless index < limit
    (unsigned).
    """

    array: str  # input, shared, local
    type: str
    index: Expr
    stride: int
    offset: int
    limit: int
    how: str  # how PTX computes the address
    bits: int = 32


Expr = Const | Var | Special | Op | Load

# ---------------------------------------------------------------- statements


@dataclass(frozen=True)
class Assign:
    """name = value"""

    name: str
    value: Expr


@dataclass(frozen=True)
class LoadVector:
    """Two or four 32-bit variables from input[index * 4 * count + offset ...] where index < limit;
    else they keep their values.
    """

    names: tuple[str, ...]
    index: Expr
    offset: int
    limit: int


@dataclass(frozen=True)
class If:
    """if (condition) then else otherwise; `predicated`: PTX guards every instruction instead of
    branching.
    """

    condition: Expr
    then: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...] = ()
    predicated: bool = False


@dataclass(frozen=True)
class Loop:
    """for (counter = 0; counter < limit; counter++); the test stands at the end when `rotated` and
    limit is read once.
    """

    counter: str
    limit: Expr
    body: tuple[Stmt, ...]
    rotated: bool


@dataclass(frozen=True)
class Leave:
    """break or continue of the innermost loop, where the condition holds."""

    what: str
    condition: Expr


@dataclass(frozen=True)
class Return:
    """Ends the thread where the condition holds; `how`: jump to the end (which stores all
    variables), ret, exit.
    """

    condition: Expr
    how: str


@dataclass(frozen=True)
class Switch:
    """switch (selector) with a case for 0, 1, ...; those in `falls` go on into the next."""

    selector: Expr
    cases: tuple[tuple[Stmt, ...], ...]
    falls: tuple[bool, ...]


@dataclass(frozen=True)
class IrreducibleFlow:
    """Irreducible control flow: blocks (statements, condition, target if true, else) that jump to
    one another until `fuel` is used up.
    """

    counter: str
    fuel: int
    blocks: tuple[tuple[tuple[Stmt, ...], Expr, int, int], ...]


@dataclass(frozen=True)
class Store:
    """Word `slot` of the thread's own: global scratch by thread or by slot, or local memory."""

    array: str  # rows: [thread][slot], columns: [slot][thread], local
    slot: Expr
    value: Expr


@dataclass(frozen=True)
class Exchange:
    """Between two barriers, a word of shared memory that no other thread writes."""

    place: str  # same, reversed, rotated, strided
    slot: int
    value: Expr
    condition: Expr | None


@dataclass(frozen=True)
class Shuffle:
    """shfl.sync of the whole warp; the predicate goes to `inside`."""

    name: str
    inside: str
    mode: str
    value: Expr
    lane: Expr
    width: int


@dataclass(frozen=True)
class Vote:
    """vote.sync of the whole warp, or bar.red of the whole block."""

    name: str
    what: str  # ballot any all uni; bar.popc bar.and bar.or
    condition: Expr


@dataclass(frozen=True)
class Call:
    """name = function(arguments)"""

    name: str
    function: int
    args: tuple[Expr, ...]


@dataclass(frozen=True)
class ReturnValue:
    """return value; of a function, where the condition holds."""

    condition: Expr
    value: Expr


Stmt = (
    Assign
    | LoadVector
    | If
    | Loop
    | Leave
    | Return
    | Switch
    | IrreducibleFlow
    | Store
    | Exchange
    | Shuffle
    | Vote
    | Call
    | ReturnValue
)


@dataclass(frozen=True)
class Program:
    """A kernel, its functions (each with two 32-bit parameters x0, x1 and a 32-bit result), and how
    it is launched.
    """

    seed: int
    body: tuple[Stmt, ...]
    functions: tuple[tuple[Stmt, ...], ...]
    block: tuple[int, int, int]
    grid: int
    counters: tuple[str, ...]

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]


TRUE = Op("setp.eq.u32", 1, (Const(32, 0), Const(32, 0)))
