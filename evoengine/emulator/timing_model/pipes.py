"""The pipe of an SM that each PTX instruction uses, and the number of machine instructions.

PTX is not machine code. These rules say what ptxas makes of each instruction for sm_80 to sm_90:
moves between registers vanish, addresses of parameters are constants, 64-bit integers are two
32-bit halves, an exact division is a sequence. The lengths of sequences are estimates of their fast
path. The pipe of an instruction was measured on an NVIDIA H200 for those of benchmarks/rates.cu,
`rate_*` (docs/measurements/h200-rates.json); for the others it follows the CUDA C++ Programming
Guide's table of throughputs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache

# The pipes of `targets.Rates`, then those with a unit of their own, then those that only need an
# issue slot. `either` is for what compilers give to `alu` or `imad`, whichever is less busy: IADD3
# or IMAD.IADD, MOV or IMAD.MOV.
PIPES = (
    "fma",
    "imad",
    "alu",
    "either",
    "half",
    "mufu",
    "fp64",
    "shuffle",
    "lsu",
    "tensor",
    "control",
    "barrier",
)
# Kinds of latency before a dependent instruction. `global` is a load of which nothing else is
# known, `l1` and `l2` are one that finds its data there, `line` a further line of the same load;
# `wait` is a wait for asynchronous copies.
DELAYS = (
    "fixed",
    "mufu",
    "fp64",
    "shuffle",
    "shared",
    "local",
    "global",
    "l1",
    "l2",
    "line",
    "tensor",
    "barrier",
    "wait",
)

SECTORS_OF_LINE = 4  # 32 and 128 bytes: CUDA C++ Programming Guide, "Device Memory Accesses"
HMMA_FLOPS = 16 * 8 * 16 * 2  # of the m16n8k16 whose latency is in the targets

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_FLOATS = frozenset(("f32", "f64", "f16", "f16x2", "bf16", "bf16x2", "tf32"))
_HALVES = frozenset(("f16", "f16x2", "bf16", "bf16x2"))
_WIDE = frozenset(("b64", "u64", "s64"))
_EIGHT_BIT_FLOATS = frozenset(("e4m3", "e5m2", "e4m3x2", "e5m2x2"))
_MATRICES = frozenset(("x1", "x2", "x4"))  # of ldmatrix: a wavefront each
_KINDS = {
    "f16": "f16",
    "bf16": "bf16",
    "tf32": "tf32",
    "e4m3": "fp8",
    "e5m2": "fp8",
    "s8": "int8",
    "u8": "int8",
    "f64": "fp64",
}


@dataclass(frozen=True)
class Cost:
    """The cost of one PTX warp instruction: machine instructions by pipe, and the latency of its
    result.
    """

    pipes: tuple[tuple[str, float], ...] = ()
    delay: str | None = "fixed"  # None: nothing waits for it, or it needs no machine instruction
    steps: float = 1.0  # number of such delays in sequence
    tensor_kind: str = ""
    tensor_flops: float = 0.0
    wavefronts: float = 0.0  # of shared memory, without bank conflicts
    sectors: float = 0.0  # of global memory, with coalesced accesses
    lines: float = 0.0  # that L1 looks up for them; copies go around it

    @property
    def memory_instructions(self) -> float:
        """Machine instructions that reach memory."""
        return sum(count for pipe, count in self.pipes if pipe == "lsu")

    @property
    def issues(self) -> float:
        """Issue slots that it takes."""
        return sum(count for _, count in self.pipes)


_FREE = Cost(delay=None)


def _cost(
    pipe: str, count: float = 1.0, *, delay: str | None = "fixed", steps: float = 1.0
) -> Cost:
    return Cost(((pipe, count),), delay, steps)


_ALU = _cost("alu")
_EITHER = _cost("either")
_WIDE_SUM = Cost((("alu", 1.0), ("either", 1.0)), steps=2.0)  # a carry from one half to the other
_ALU_WIDE = _cost("alu", 2.0, steps=2.0)
_BRANCH = _cost("control", delay=None)

_SIMPLE: dict[str, Cost] = {
    **dict.fromkeys(("mov", "cvta", "isspacep", "pragma", "istypep", "activemask"), _FREE),
    **dict.fromkeys(("bra", "brx", "ret", "exit", "call", "trap", "brkpt", "nanosleep"), _BRANCH),
    **dict.fromkeys(("bar", "barrier"), _cost("barrier", delay="barrier")),
    **dict.fromkeys(("membar", "fence"), _cost("lsu", delay="global")),
    **dict.fromkeys(("popc", "clz", "brev", "bfind", "fns"), _cost("mufu", delay="mufu")),
    **dict.fromkeys(("shfl",), _cost("shuffle", delay="shuffle")),
    **dict.fromkeys(("vote",), _ALU),
    **dict.fromkeys(("redux", "elect"), _cost("mufu", 2.0, delay="shuffle")),
    "movmatrix": _cost("lsu", delay="shared"),
    "prefetch": _cost("lsu", delay=None),
}

# A match of any lanes goes round once for each distinct value, of which most warps have nearly as
# many as lanes. From the one kernel that was measured, tests/structures/histogram_matched_lanes.cu
# on an H100: 72 clocks of an SM for 30 distinct values; no source and no benchmark of its own.
MATCH_ANY = 36.0

# Fast paths of operations without an instruction of their own: counts of (fma, alu, mufu).
_SEQUENCES: dict[str, tuple[float, float, float]] = {
    "div.rn.f32": (8, 2, 1),
    "div.f32": (2, 0, 1),
    "rcp.rn.f32": (4, 2, 1),
    "sqrt.rn.f32": (6, 2, 1),
    "sqrt.f32": (1, 1, 1),
    "ftz.f32": (0, 0, 1),  # ex2, lg2, rcp, rsqrt, sin, cos, tanh
    "f32": (2, 1, 1),  # without .ftz: scaled before and after, so that denormals are correct
    "int.32": (5, 8, 3),  # by the reciprocal of a float
    "int.64": (40, 40, 4),
}


# An atomic addition of floating-point numbers in shared memory: NVRTC 13.0 makes a loop of LDS,
# FADD, ATOMS.CAST.SPIN and a branch of it, up to sm_90; one round if no lanes meet
_LOCKED_ADD = Cost(
    (("lsu", 2.0), ("fma", 1.0), ("alu", 1.0), ("control", 1.0)), "shared", 2.0, wavefronts=2.0
)


@cache
def classify(op: str, modifiers: tuple[str, ...]) -> Cost:
    """The cost of a PTX instruction, e.g. ("fma", ("rn", "f32"))."""
    if op in _SIMPLE:
        return _SIMPLE[op]
    if op == "match":
        return _cost("mufu", MATCH_ANY if "any" in modifiers else 2.0, delay="shuffle")
    if op in ("ld", "ldu", "st", "atom", "red"):
        return _memory(op, modifiers)
    if op == "cp":
        return _copy(modifiers)
    if op in ("ldmatrix", "stmatrix"):
        return replace(
            _cost("lsu", delay="shared"),
            wavefronts=next((float(word[1:]) for word in modifiers if word in _MATRICES), 1.0),
        )
    if op in ("mma", "wmma"):
        return _matrix(op, modifiers)
    if op == "cvt":
        return _convert(modifiers)
    if op in ("ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos", "tanh") or op in ("div", "rem"):
        return _special(op, modifiers)
    return _arithmetic(op, modifiers)


def _memory(op: str, modifiers: tuple[str, ...]) -> Cost:
    if "param" in modifiers or ("const" in modifiers and op == "ld"):
        return _FREE  # a constant is an operand of the instruction that uses it
    shared = is_shared(modifiers)
    space = "shared" if shared else "local" if "local" in modifiers else "global"
    cost = _cost("lsu", delay=None if op in ("st", "red") else space)
    if shared and op in ("atom", "red") and "add" in modifiers and _FLOATS & set(modifiers):
        return _LOCKED_ADD
    if shared:
        return replace(cost, wavefronts=max(1.0, bytes_of_lane(modifiers) / 4))
    # 32 lanes, 32 bytes per sector
    if space == "local":
        return replace(cost, lines=max(1.0, bytes_of_lane(modifiers) / 4))
    sectors = float(bytes_of_lane(modifiers))
    return replace(cost, sectors=sectors, lines=max(1.0, sectors / SECTORS_OF_LINE))


def is_shared(modifiers: tuple[str, ...]) -> bool:
    """Whether shared memory is accessed: "shared", "shared::cta" or "shared::cluster"."""
    return any(word.startswith("shared") for word in modifiers)


def bytes_of_lane(modifiers: tuple[str, ...]) -> int:
    """The bytes that one lane accesses, from the type and the vector size among the modifiers."""
    bits = next(
        (int(word[1:]) for word in reversed(modifiers) if word[0] in "busf" and word[1:].isdigit()),
        32,
    )
    return bits // 8 * next((int(word[1:]) for word in modifiers if word in ("v2", "v4", "v8")), 1)


def _copy(modifiers: tuple[str, ...]) -> Cost:
    """cp.async: the copy is a memory instruction; its latency is charged to the wait."""
    if "wait_group" in modifiers or "wait_all" in modifiers:
        return _cost("control", delay="wait")
    return (
        _cost("control", delay=None)
        if "commit_group" in modifiers
        else Cost((("lsu", 1.0),), None, wavefronts=4.0, sectors=16.0)
    )


def _matrix(op: str, modifiers: tuple[str, ...]) -> Cost:
    if op == "wmma" and "mma" not in modifiers:
        return _fragment(modifiers)
    found = next((match for match in map(_SHAPE.fullmatch, modifiers) if match), None)
    if found is None:
        return Cost((("tensor", 1.0),), "tensor")
    flops = 2.0 * int(found[1]) * int(found[2]) * int(found[3])
    kind = next((_KINDS[word] for word in _input_types(op, modifiers) if word in _KINDS), "f16")
    instructions = max(
        1.0,
        flops / HMMA_FLOPS * (2.0 if kind == "tf32" else 0.5 if kind in ("fp8", "int8") else 1.0),
    )
    return Cost((("tensor", instructions),), "tensor", 1.0, kind, flops)


def _input_types(op: str, modifiers: tuple[str, ...]) -> tuple[str, ...]:
    """The types of A and B: mma names D.A.B.C, wmma D.C for half precision and D.A.B.C
    otherwise.
    """
    types = tuple(word for word in modifiers if word in _KINDS or word in ("f32", "s32"))
    return types[1:3] if len(types) == 4 else ("f16",)


def _fragment(modifiers: tuple[str, ...]) -> Cost:
    """wmma.load and wmma.store: a and b are one ldmatrix, an accumulator of 16x16 float32 is four
    8-byte accesses a thread.

    Compilers leave their addresses generic; fragments are nearly always in shared memory.
    """
    accumulator = "c" in modifiers or "d" in modifiers or "store" in modifiers
    count = 4.0 if accumulator else 1.0
    delay = None if "store" in modifiers else "global" if "global" in modifiers else "shared"
    return replace(_cost("lsu", count, delay=delay), wavefronts=8.0 if accumulator else 4.0)


def _convert(modifiers: tuple[str, ...]) -> Cost:
    types = [
        word for word in modifiers if word in _FLOATS | _EIGHT_BIT_FLOATS or word[1:].isdigit()
    ]
    if len(types) < 2:
        return _ALU
    to, source = types[0], types[-1]
    if _EIGHT_BIT_FLOATS & {to, source}:
        return _ALU
    if "f64" in (to, source):
        return _cost("fp64", delay="fp64")
    if to in _FLOATS and source in _FLOATS:
        # a multiply-add by one unpacks, a pack instruction rounds
        return _cost("half") if source in _HALVES and to == "f32" else _ALU
    if to == "f32" and source in ("s32", "u32", "s16", "u16", "s8", "u8"):
        return _ALU
    if to in _FLOATS or source in _FLOATS:
        return _cost("mufu", delay="mufu")
    widened = to in _WIDE and source not in _WIDE
    # the sign is spread; else a register is used as it is
    return _ALU if widened and to == "s64" else _FREE


def _special(op: str, modifiers: tuple[str, ...]) -> Cost:
    kind = modifiers[-1] if modifiers else ""
    if op in ("div", "rem") and kind not in _FLOATS:
        return _sequence("int.64" if kind in _WIDE else "int.32")
    if kind == "f64":
        return _cost("fp64", 20.0, delay="fp64", steps=10.0)
    if kind in _HALVES:
        return _cost("mufu", 2.0 if kind.endswith("x2") else 1.0, delay="mufu")
    exact = "rn" in modifiers or "rz" in modifiers or "rm" in modifiers or "rp" in modifiers
    if exact and op in ("div", "rcp", "sqrt"):
        return _sequence(f"{op}.rn.f32")
    if op in ("div", "sqrt"):
        return _sequence(f"{op}.f32")
    return _sequence("ftz.f32" if "ftz" in modifiers or op in ("sin", "cos", "tanh") else "f32")


def _sequence(name: str) -> Cost:
    fma, alu, mufu = _SEQUENCES[name]
    pipes = tuple(
        (pipe, count) for pipe, count in (("fma", fma), ("alu", alu), ("mufu", mufu)) if count
    )
    return Cost(pipes, "mufu", 1.0 + (fma + alu) / 4.0)  # a mufu delay is about four fixed delays


def _arithmetic(op: str, modifiers: tuple[str, ...]) -> Cost:
    kind = modifiers[-1] if modifiers else ""
    if op in ("setp", "set"):
        kind = next(
            (word for word in reversed(modifiers) if word in _FLOATS or word in _WIDE), kind
        )
    if kind == "f64":
        return _cost("fp64", delay="fp64")
    if op in ("neg", "abs") and kind in _FLOATS:
        return _FREE  # a sign is part of the operand
    if kind in _HALVES:
        return _cost("half")
    if kind == "f32":
        return _cost("fma") if op in ("add", "sub", "mul", "fma", "mad") else _ALU
    if op in ("mul", "mad", "mul24", "mad24", "dp4a", "dp2a"):
        return _multiply(kind, modifiers)
    if op in ("add", "sub"):
        return _WIDE_SUM if kind in _WIDE else _EITHER
    return _ALU_WIDE if kind in _WIDE else _ALU


def _multiply(kind: str, modifiers: tuple[str, ...]) -> Cost:
    if "wide" in modifiers:
        return _cost("imad", 2.0 if kind in ("u32", "s32") else 1.0)
    return (
        _cost("imad", 4.0, steps=3.0)
        if kind in _WIDE
        else _cost("imad", 2.0 if "hi" in modifiers else 1.0)
    )
