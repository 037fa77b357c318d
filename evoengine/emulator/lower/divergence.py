"""Runs the blocks of a region of divergence under masks: which lanes still have to run which block.

Every block of a region has a mask of the lanes that are pending there, and the region has a bit for
each block with pending lanes. A dispatcher runs the first such block in reverse post-order, until
none is left. That order makes lanes reconverge early: a block with several predecessors runs after
all of them, once for all of their lanes. Lanes that go to the join are not recorded: all live lanes
run again there.
"""

from __future__ import annotations

from collections.abc import Collection

from evoengine.emulator.lower.lowered_body import LoweredBody
from evoengine.emulator.lower.pinned_slots import declare_mask

WORD_BITS = 32  # the number of bits of a region is rounded up to a multiple of this


class Divergence:
    """The masks of pending lanes of the blocks of all regions."""

    def __init__(self, body: LoweredBody) -> None:
        self._body = body
        self._ir = body.ir
        self._uniformity = body.uniformity

    def declare(self, region: int) -> None:
        """Allocates the masks of a region, all empty."""
        own = self._uniformity.regions[region]
        declare_mask(self._ir, own, f"%region{region}.pending", self._bits(region))
        for number in own.blocks:
            declare_mask(self._ir, own, f"%mask{number}")

    def _bits(self, region: int) -> int:
        return max(
            WORD_BITS, -(-len(self._uniformity.regions[region].blocks) // WORD_BITS) * WORD_BITS
        )

    def enter(self, number: int) -> None:
        """Emits a jump of all live lanes to block `number`, in a region or not."""
        region = self._uniformity.region_of.get(number)
        if region is None:
            self._ir.do(f"br label %block{number}")
            return
        self.add(region, number, self._body.live())
        self._ir.do(f"br label %dispatch{region}")

    def split(self, region: int, taken: int, fallthrough: int, condition: str, mask: str) -> None:
        """Sends the lanes of the i32 `mask` to block `taken` where the i32 `condition` has their
        bit, else to block `fallthrough`.
        """
        ir = self._ir
        # else it is the join, where pending lanes are not recorded
        if self._uniformity.region_of.get(taken) == region:
            self.add(region, taken, ir.get(f"and i32 {mask}, {condition}"))
        if self._uniformity.region_of.get(fallthrough) == region:
            rest = ir.get(f"xor i32 {condition}, -1")
            self.add(region, fallthrough, ir.get(f"and i32 {mask}, {rest}"))

    def add(self, region: int, number: int, mask: str) -> None:
        """Adds the lanes of the i32 `mask` to those pending at block `number`."""
        ir, bits = self._ir, self._bits(region)
        before = ir.get(f"load i32, ptr %mask{number}")
        ir.do(f"store i32 {ir.get(f'or i32 {before}, {mask}')}, ptr %mask{number}")
        some = ir.get(f"icmp ne i32 {mask}, 0")
        flag = ir.get(f"zext i1 {some} to i{bits}")
        flag = ir.get(
            f"shl i{bits} {flag}, {self._uniformity.regions[region].blocks.index(number)}"
        )
        pending = ir.get(f"load i{bits}, ptr %region{region}.pending")
        ir.do(
            f"store i{bits} {ir.get(f'or i{bits} {pending}, {flag}')}, ptr %region{region}.pending"
        )

    def take(self, region: int, number: int) -> str:
        """The lanes that are pending at block `number`, as an i32; clears them."""
        ir, bits = self._ir, self._bits(region)
        mask = ir.get(f"load i32, ptr %mask{number}")
        ir.do(f"store i32 0, ptr %mask{number}")
        pending = ir.get(f"load i{bits}, ptr %region{region}.pending")
        others = ~(1 << self._uniformity.regions[region].blocks.index(number))
        kept = ir.get(f"and i{bits} {pending}, {others}")
        ir.do(f"store i{bits} {kept}, ptr %region{region}.pending")
        return mask

    def has_pending(self, region: int, besides: Collection[int]) -> str:
        """Whether lanes are pending at a block of a region besides these, as an i1."""
        ir, bits, blocks = self._ir, self._bits(region), self._uniformity.regions[region].blocks
        counted = sum(1 << place for place, number in enumerate(blocks) if number not in besides)
        pending = ir.get(f"load i{bits}, ptr %region{region}.pending")
        return ir.get(f"icmp ne i{bits} {ir.get(f'and i{bits} {pending}, {counted}')}, 0")

    def dispatch(self, region: int) -> None:
        """Emits the dispatcher of a region; the code emitted next runs when no lanes are
        pending.
        """
        ir, bits = self._ir, self._bits(region)
        ir.place(f"dispatch{region}")
        pending = ir.get(f"load i{bits}, ptr %region{region}.pending")
        first = ir.intrinsic("cttz", f"i{bits}", pending, also="i1 false")
        targets = " ".join(
            f"i{bits} {place}, label %block{number}"
            for place, number in enumerate(self._uniformity.regions[region].blocks)
        )
        ir.do(f"switch i{bits} {first}, label %idle{region} [ {targets} ]")
        ir.place(f"idle{region}")
