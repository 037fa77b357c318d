"""What lowered code tells the checker, and asks it, in checked mode; nothing otherwise."""

from __future__ import annotations

from evoengine.emulator.lower.address import Place
from evoengine.emulator.lower.context import Context
from evoengine.emulator.lower.emitter import LANES
from evoengine.emulator.ptx.syntax import Instruction

# as check/checker.h numbers them
SPACES = {
    "global": 0,
    "const": 0,
    "shared": 1,
    "local": 2,
    "generic": 3,
}
READ, WRITE, ATOMIC, STRONG_READ, STRONG_WRITE = 0, 1, 2, 3, 4  # as check/checker.h numbers them
DATUM, LOOK = 8, 16  # of a read, besides
# PTX ISA 8.2: accesses that synchronise, so that no race is one
STRONG = (
    "volatile",
    "relaxed",
    "acquire",
    "release",
    "mmio",
)


def check(cx: Context, place: Place, kind: int, size: int) -> None:
    """Asks the checker; from here on only the lanes that it lets through run this instruction."""
    if not cx.checked:
        return
    cx.mask_bits = ask(cx, place.space, kind, size, cx.spread(place.own), cx.mask_bits)
    cx.mask = cx.ir.get(f"bitcast i32 {cx.mask_bits} to <{LANES} x i1>")


def restored(cx: Context) -> tuple[str | None, str]:
    """The mask now, to be put back behind an access."""
    return cx.mask, cx.mask_bits


def ask(cx: Context, space: str, kind: int, size: int, addresses: str, mask_bits: str) -> str:
    """The lanes of `mask_bits` that the checker lets touch `size` bytes at their addresses: <32 x
    i64> in their own space.
    """
    return cx.ir.call(
        "i32",
        "ev_check_access",
        ("ptr", "%checker"),
        ("i32", "%warp_index"),
        ("i32", mask_bits),
        ("i32", str(SPACES[space])),
        ("i32", str(kind)),
        ("i32", str(size)),
        ("ptr", cx.lanes(0, 64, addresses)),
        ("i32", str(cx.site(cx.instruction))),
    )


def kind_of(instruction: Instruction, plain: int, strong: int) -> int:
    """`strong` for an access that synchronises."""
    return strong if any(instruction.has(item) for item in STRONG) else plain


def is_block_wide(instruction: Instruction) -> bool:
    """Whether an ordering reaches no further than the thread block."""
    return instruction.has("cta")


def fenced(cx: Context) -> None:
    """Tells the checker that what these lanes did comes before what they do next, for other blocks
    too.
    """
    if cx.checked:
        cx.ir.call(
            "void",
            "ev_check_fence",
            ("ptr", "%checker"),
            ("i32", "%warp_index"),
            ("i32", cx.mask_bits),
        )


def fence(cx: Context, instruction: Instruction) -> None:
    """membar, fence: host threads see one another's stores in order anyway; the checker hears of
    those beyond the block.
    """
    if not (is_block_wide(instruction) or instruction.has("proxy")):
        fenced(cx)


HANDLERS = {"fence": fence, "membar": fence}
