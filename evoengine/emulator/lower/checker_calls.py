"""Calls of the checker in lowered code, in checked mode only."""

from __future__ import annotations

from evoengine.emulator.lower.address import LaneAddresses
from evoengine.emulator.lower.context import LoweringContext
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
DATA, POLL = 8, 16  # flags of a read, added to its kind
# PTX ISA 8.2: synchronising accesses, which do not race with atomics
STRONG = (
    "volatile",
    "relaxed",
    "acquire",
    "release",
    "mmio",
)


def check(cx: LoweringContext, lane_addresses: LaneAddresses, kind: int, size: int) -> None:
    """Calls the checker; restricts the active lanes of this instruction to those that it lets
    through.
    """
    if not cx.checked:
        return
    cx.mask_bits = check_access(
        cx, lane_addresses.space, kind, size, cx.as_vector(lane_addresses.in_space), cx.mask_bits
    )
    cx.mask = cx.ir.get(f"bitcast i32 {cx.mask_bits} to <{LANES} x i1>")


def report_performed(cx: LoweringContext) -> None:
    """Reports to the checker that the atomic operation that it checked has been executed."""
    if cx.checked:
        cx.ir.call("void", "ev_check_performed", ("ptr", "%checker"))


def current_mask(cx: LoweringContext) -> tuple[str | None, str]:
    """The mask of active lanes, in both forms, to be restored after an access."""
    return cx.mask, cx.mask_bits


def check_access(
    cx: LoweringContext, space: str, kind: int, size: int, addresses: str, mask_bits: str
) -> str:
    """The lanes of `mask_bits` that the checker lets access `size` bytes, as an i32; `addresses`
    are <32 x i64> in `space`.
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


def access_kind(instruction: Instruction, plain: int, strong: int) -> int:
    """The kind of an access: `strong` if it synchronises, else `plain`."""
    return strong if any(instruction.has(item) for item in STRONG) else plain


def report_fence(cx: LoweringContext, instruction: Instruction) -> None:
    """Reports a fence of the active lanes to the checker, in the scope of the instruction."""
    if cx.checked:
        cx.ir.call(
            "void",
            "ev_check_block_fence" if instruction.has("cta") else "ev_check_fence",
            ("ptr", "%checker"),
            ("i32", "%warp_index"),
            ("i32", cx.mask_bits),
        )


def fence(cx: LoweringContext, instruction: Instruction) -> None:
    """membar, fence: host threads see one another's stores in order anyway; only the checker needs
    them.
    """
    if not instruction.has("proxy"):
        report_fence(cx, instruction)


HANDLERS = {"fence": fence, "membar": fence}
