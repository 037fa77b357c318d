"""Regions of divergence: which lanes are still to run which block.

Every block of a region has a mask of lanes that wait to run it, and the region a bit for each block
whose mask is not empty. A dispatcher runs the first such block in reverse post-order, until none is
left. That order makes lanes meet early: a block that several ways lead to runs after all of them,
once for all of their lanes. Lanes that go to the join are noted nowhere: there all that live run
again.
"""

from __future__ import annotations

from evoengine.emulator.lower.lowered_body import LoweredBody

WORD_BITS = 32  # the width of the bits of a region is a multiple of it


class Divergence:
    """The masks of the blocks of all regions."""

    def __init__(self, body: LoweredBody) -> None:
        self._body = body
        self._ir = body.ir
        self._shapes = body.shapes

    def declare(self, region: int) -> None:
        """Room for the masks of a region, all empty."""
        bits = self._bits(region)
        self._ir.do(f"%region{region}.pending = alloca i{bits}")
        self._ir.do(f"store i{bits} 0, ptr %region{region}.pending")
        for number in self._shapes.regions[region].blocks:
            self._ir.do(f"%mask{number} = alloca i32")
            self._ir.do(f"store i32 0, ptr %mask{number}")

    def _bits(self, region: int) -> int:
        return max(WORD_BITS, -(-len(self._shapes.regions[region].blocks) // WORD_BITS) * WORD_BITS)

    def enter(self, number: int) -> None:
        """From where all lanes run into block `number`, in a region or not."""
        region = self._shapes.region_of.get(number)
        if region is None:
            self._ir.do(f"br label %block{number}")
            return
        self.add(region, number, self._body.live())
        self._ir.do(f"br label %dispatch{region}")

    def split(self, region: int, taken: int, falls: int, condition: str, mask: str) -> None:
        """Sends the lanes of `mask` two ways: where the i32 `condition` has a bit to `taken`, else
        to `falls`.
        """
        ir = self._ir
        # else it is the join, where lanes need nothing to wait
        if self._shapes.region_of.get(taken) == region:
            self.add(region, taken, ir.get(f"and i32 {mask}, {condition}"))
        if self._shapes.region_of.get(falls) == region:
            rest = ir.get(f"xor i32 {condition}, -1")
            self.add(region, falls, ir.get(f"and i32 {mask}, {rest}"))

    def add(self, region: int, number: int, mask: str) -> None:
        """Lanes `mask` are to run block `number`."""
        ir, bits = self._ir, self._bits(region)
        before = ir.get(f"load i32, ptr %mask{number}")
        ir.do(f"store i32 {ir.get(f'or i32 {before}, {mask}')}, ptr %mask{number}")
        some = ir.get(f"icmp ne i32 {mask}, 0")
        flag = ir.get(f"zext i1 {some} to i{bits}")
        flag = ir.get(f"shl i{bits} {flag}, {self._shapes.regions[region].blocks.index(number)}")
        pending = ir.get(f"load i{bits}, ptr %region{region}.pending")
        ir.do(
            f"store i{bits} {ir.get(f'or i{bits} {pending}, {flag}')}, ptr %region{region}.pending"
        )

    def take(self, region: int, number: int) -> str:
        """The lanes that are to run block `number`; none is any more."""
        ir, bits = self._ir, self._bits(region)
        mask = ir.get(f"load i32, ptr %mask{number}")
        ir.do(f"store i32 0, ptr %mask{number}")
        pending = ir.get(f"load i{bits}, ptr %region{region}.pending")
        kept = ir.get(
            f"and i{bits} {pending}, {~(1 << self._shapes.regions[region].blocks.index(number))}"
        )
        ir.do(f"store i{bits} {kept}, ptr %region{region}.pending")
        return mask

    def dispatch(self, region: int) -> None:
        """The dispatcher of a region; what is emitted next is for when no block has lanes to run
        it.
        """
        ir, bits = self._ir, self._bits(region)
        ir.place(f"dispatch{region}")
        pending = ir.get(f"load i{bits}, ptr %region{region}.pending")
        first = ir.intrinsic("cttz", f"i{bits}", pending, also="i1 false")
        targets = " ".join(
            f"i{bits} {place}, label %block{number}"
            for place, number in enumerate(self._shapes.regions[region].blocks)
        )
        ir.do(f"switch i{bits} {first}, label %idle{region} [ {targets} ]")
        ir.place(f"idle{region}")
