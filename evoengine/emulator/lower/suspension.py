"""Where a warp waits for others: at barriers, and in loops that wait.

Where all lanes run, the warp stores what is alive and returns; the driver calls it again with the
number of the place to go on from. In a region lanes park: the others go on until none can, because
they may reach the barrier by another way, or end, and only then the warp returns. It is called
again when some of its parked lanes are released, and the rest stays parked.
"""

from __future__ import annotations

from dataclasses import dataclass

from evoengine.emulator.lower.barrier import arrive, pass_on
from evoengine.emulator.lower.divergence import Divergence
from evoengine.emulator.lower.lowered_body import LoweredBody
from evoengine.emulator.ptx.syntax import Instruction
from evoengine.emulator.run.abi import End, WarpRecord


@dataclass(frozen=True)
class _Point:
    """A place to go on from: behind the barrier at the end of a block, or with the parked lanes of
    a region.
    """

    block: int | None
    region: int | None
    saved: tuple[str, ...]  # registers


class Suspensions:
    """The places at which the function returns to be called again."""

    def __init__(self, body: LoweredBody, pending: Divergence) -> None:
        self._body = body
        self._pending = pending
        self._ir = body.ir
        self._saved = body.saved
        self._points: list[_Point] = []  # by resume number - 1

    @property
    def warp_bytes(self) -> int:
        """The memory of a warp."""
        return self._saved.warp_bytes

    def declare(self, region: int) -> None:
        """Room for the parked lanes of a region."""
        for number in self._waiting(region):
            self._ir.do(f"%parked{self._body.falls(number)} = alloca i32")
            self._ir.do(f"store i32 0, ptr %parked{self._body.falls(number)}")

    def _waiting(self, region: int) -> list[int]:
        """The blocks of a region that end with lanes waiting."""
        return [
            number
            for number in self._body.shapes.regions[region].blocks
            if self._body.flow.nodes[number].waits
        ]

    # ------------------------------------------------------------ waiting

    def wait(self, number: int, instruction: Instruction) -> None:
        """All lanes wait at the end of block `number`."""
        arrive(self._body.cx, instruction, self._body.live())
        self._suspend(number, None, self._alive(self._body.falls(number)))

    def park(self, number: int, instruction: Instruction) -> None:
        """Lanes wait here; others of the warp may go on."""
        falls, mask = self._body.falls(number), self._body.cx.mask_bits
        arrive(self._body.cx, instruction, mask)
        before = self._ir.get(f"load i32, ptr %parked{falls}")
        self._ir.do(f"store i32 {self._ir.get(f'or i32 {before}, {mask}')}, ptr %parked{falls}")

    def wait_if_parked(self, region: int) -> None:
        """When no lane of a region can go on: returns if some are parked."""
        waiting, ir = self._waiting(region), self._ir
        if not waiting:
            return
        every = "0"
        for number in waiting:
            every = ir.get(
                f"or i32 {every}, {ir.get(f'load i32, ptr %parked{self._body.falls(number)}')}"
            )
        some, wait, on = ir.get(f"icmp ne i32 {every}, 0"), ir.label(), ir.label()
        ir.do(f"br i1 {some}, label %{wait}, label %{on}")
        ir.place(wait)
        self._check_divergence(waiting)
        blocks = self._body.shapes.regions[region]
        self._suspend(
            None,
            region,
            frozenset().union(*(self._alive(number) for number in (*blocks.blocks, blocks.join))),
        )
        ir.place(on)

    def _alive(self, number: int) -> frozenset[str]:
        return (
            self._body.flow.nodes[number].live_in if number < self._body.flow.exit else frozenset()
        )

    def _check_divergence(self, waiting: list[int]) -> None:
        """Tells the checker which lanes wait at each barrier of a region, out of those that have
        not ended.

        Lanes that only yield may still come to it: then there is nothing to tell.
        """
        last = {
            number: instruction
            for number in waiting
            if (instruction := self._body.flow.nodes[number].waits)
        }
        if not self._body.cx.checked or any(
            instruction.op == "yield" for instruction in last.values()
        ):
            return
        live = self._body.live()
        for number, instruction in last.items():
            parked = self._ir.get(f"load i32, ptr %parked{self._body.falls(number)}")
            site = str(self._body.cx.site(instruction))
            arguments = (("i32", "%warp_index"), ("i32", parked), ("i32", live), ("i32", site))
            self._ir.call("void", "ev_check_divergent_barrier", ("ptr", "%checker"), *arguments)

    def _suspend(self, block: int | None, region: int | None, alive: frozenset[str]) -> None:
        point = _Point(block, region, tuple(sorted(alive)))
        self._points.append(point)
        self._saved.save(point.saved)
        for number in self._waiting(region) if region is not None else ():
            falls = self._body.falls(number)
            value = self._ir.get(f"load i32, ptr %parked{falls}")
            self._ir.do(f"store i32 {value}, ptr {self._saved.parked(falls)}")
        at = self._ir.get(f"getelementptr i8, ptr %warp, i64 {WarpRecord.resume.offset}")
        self._ir.do(f"store i32 {len(self._points)}, ptr {at}")
        self._body.leave(End.waiting)

    # ------------------------------------------------------------ going on

    def resume(self) -> None:
        """The start of the function: to the first block, or to where the warp returned last, by the
        i32 %resume.
        """
        if not self._points:
            self._pending.enter(0)
            return
        targets = " ".join(
            f"i32 {number}, label %resume{number}" for number in range(1, len(self._points) + 1)
        )
        self._ir.do(f"switch i32 %resume, label %begin [ {targets} ]")
        self._ir.place("begin")
        self._pending.enter(0)
        for number, point in enumerate(self._points, 1):
            self._ir.place(f"resume{number}")
            self._saved.restore(point.saved)
            if point.region is not None:
                self._unpark(point.region)
            elif point.block is not None:
                self._go_on(point.block)

    def _go_on(self, number: int) -> None:
        falls = self._body.falls(number)
        self._body.run_all(falls)
        if instruction := self._body.flow.nodes[number].waits:
            pass_on(self._body.cx, instruction)
        if falls == self._body.flow.exit:
            self._body.leave(End.done)
        else:
            self._pending.enter(falls)

    def _unpark(self, region: int) -> None:
        """Released lanes go on behind their barriers; the others stay parked."""
        ir, body = self._ir, self._body
        at = ir.get(f"getelementptr i8, ptr %warp, i64 {WarpRecord.released.offset}")
        released = ir.get(f"load i32, ptr {at}")
        kept = ir.get(f"xor i32 {released}, -1")
        for number in self._waiting(region):
            falls = body.falls(number)
            parked = ir.get(f"load i32, ptr {self._saved.parked(falls)}")
            go = ir.get(f"and i32 {parked}, {released}")
            ir.do(f"store i32 {ir.get(f'and i32 {parked}, {kept}')}, ptr %parked{falls}")
            instruction = body.flow.nodes[number].waits
            if instruction and instruction.has("red"):
                body.run_some(go)
                pass_on(body.cx, instruction)
            if body.shapes.region_of.get(falls) == region:
                self._pending.add(region, falls, go)
        ir.do(f"br label %dispatch{region}")
