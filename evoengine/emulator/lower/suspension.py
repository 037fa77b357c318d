"""Suspends a warp at barriers and in spin loops, and resumes it.

Outside of regions of divergence, the warp saves its live registers and returns; the driver calls it
again with the number of the resume point. In a region, lanes park: the others go on until none can,
because they may reach the barrier by another path, or exit, and only then the warp returns. It is
called again when some of its parked lanes are released; the rest stays parked.
"""

from __future__ import annotations

from dataclasses import dataclass

from evoengine.emulator.lower.barrier import arrive, write_barrier_result
from evoengine.emulator.lower.divergence import Divergence
from evoengine.emulator.lower.lowered_body import LoweredBody
from evoengine.emulator.lower.pinned_slots import declare_mask
from evoengine.emulator.lower.warp_meeting import is_meeting
from evoengine.emulator.ptx.syntax import Instruction
from evoengine.emulator.run.abi import StopReason, WarpRecord


@dataclass(frozen=True)
class _ResumePoint:
    """A resume point: after the barrier at the end of a block, or with the parked lanes of a
    region.
    """

    block: int | None
    region: int | None
    saved: tuple[str, ...]  # registers


class Suspensions:
    """The points at which the function returns to the driver and is resumed."""

    def __init__(self, body: LoweredBody, divergence: Divergence) -> None:
        self._body = body
        self._divergence = divergence
        self._ir = body.ir
        self._saved = body.saved
        self._points: list[_ResumePoint] = []  # by resume number - 1

    @property
    def warp_bytes(self) -> int:
        """The size of a warp's record with its saved registers."""
        return self._saved.warp_bytes

    def declare(self, region: int) -> None:
        """Allocates the masks of a region's parked lanes."""
        for target in self._resumed(region):
            own = self._body.uniformity.regions[region]
            declare_mask(self._ir, own, f"%parked{target}")

    def _waiting(self, region: int) -> list[int]:
        """The blocks of a region that end with lanes waiting."""
        return [
            number
            for number in self._body.uniformity.regions[region].blocks
            if self._body.cfg.nodes[number].suspension
        ]

    def _resumed(self, region: int) -> list[int]:
        """The blocks of a region before which lanes may be parked, and those behind it."""
        own = [self._body.fallthrough(number) for number in self._waiting(region)]
        return list(dict.fromkeys((*own, *self._meetings(region))))

    def _meetings(self, region: int) -> list[int]:
        """The blocks of a region before which lanes wait for those that spin in it."""
        if not self._spun(region):
            return []
        blocks = self._body.uniformity.regions[region].blocks
        return [number for number in blocks if is_meeting(self._body.cfg.nodes[number])]

    def _spun(self, region: int) -> list[int]:
        """The blocks of a region before which lanes that spin are parked."""
        return [
            self._body.fallthrough(number)
            for number in self._waiting(region)
            if (last := self._body.cfg.nodes[number].suspension) and last.op == "yield"
        ]

    # ------------------------------------------------------------ waiting

    def meet(self, number: int, region: int) -> None:
        """Parks the active lanes before block `number` while others of their warp spin or have
        other blocks of the region to run, if all of them must take part in what it does. Lanes that
        wait at two such blocks do not come to one another: they go on.
        """
        meetings = self._meetings(region)
        if number not in meetings:
            return
        ir, mask, others = self._ir, self._body.cx.mask_bits, "0"
        for target in dict.fromkeys((*self._spun(region), *meetings)):
            parked = ir.get(f"load i32, ptr %parked{target}")
            others = ir.get(f"or i32 {others}, {parked}")
        wait, on = ir.label(), ir.label()
        parked = ir.get(f"icmp ne i32 {others}, 0")
        some = ir.get(f"or i1 {parked}, {self._divergence.has_pending(region, meetings)}")
        ir.do(f"br i1 {some}, label %{wait}, label %{on}")
        ir.place(wait)
        arrive(self._body.cx, Instruction("yield", (), (), None, 0, "yield"), mask)
        self._park(number, mask)
        ir.do(f"br label %dispatch{region}")
        ir.place(on)

    def wait(self, number: int, instruction: Instruction) -> None:
        """Suspends the warp with all lanes at the end of block `number`."""
        arrive(self._body.cx, instruction, self._body.live())
        self._suspend(number, None, self._alive(self._body.fallthrough(number)))

    def park(self, number: int, instruction: Instruction) -> None:
        """Parks the active lanes; other lanes of the warp may go on."""
        mask = self._body.cx.mask_bits
        arrive(self._body.cx, instruction, mask)
        self._park(self._body.fallthrough(number), mask)

    def _park(self, target: int, mask: str) -> None:
        before = self._ir.get(f"load i32, ptr %parked{target}")
        self._ir.do(f"store i32 {self._ir.get(f'or i32 {before}, {mask}')}, ptr %parked{target}")

    def wait_if_parked(self, region: int) -> None:
        """Suspends the warp if lanes are parked when no lane of a region can go on."""
        waiting, ir = self._waiting(region), self._ir
        if not waiting:
            return
        every = "0"
        for target in self._resumed(region):
            parked = ir.get(f"load i32, ptr %parked{target}")
            every = ir.get(f"or i32 {every}, {parked}")
        some, wait, on = ir.get(f"icmp ne i32 {every}, 0"), ir.label(), ir.label()
        ir.do(f"br i1 {some}, label %{wait}, label %{on}")
        ir.place(wait)
        self._check_divergence(waiting)
        blocks = self._body.uniformity.regions[region]
        self._suspend(
            None,
            region,
            frozenset().union(*(self._alive(number) for number in (*blocks.blocks, blocks.join))),
        )
        ir.place(on)

    def _alive(self, number: int) -> frozenset[str]:
        return self._body.cfg.nodes[number].live_in if number < self._body.cfg.exit else frozenset()

    def _check_divergence(self, waiting: list[int]) -> None:
        """Reports to the checker which of the live lanes wait at each barrier of a region.

        Lanes that only yield may still reach the barrier; then nothing is reported.
        """
        last = {
            number: instruction
            for number in waiting
            if (instruction := self._body.cfg.nodes[number].suspension)
        }
        if not self._body.cx.checked or any(
            instruction.op == "yield" for instruction in last.values()
        ):
            return
        live = self._body.live()
        for number, instruction in last.items():
            parked = self._ir.get(f"load i32, ptr %parked{self._body.fallthrough(number)}")
            site = str(self._body.cx.site(instruction))
            arguments = (("i32", "%warp_index"), ("i32", parked), ("i32", live), ("i32", site))
            self._ir.call("void", "ev_check_divergent_barrier", ("ptr", "%checker"), *arguments)

    def _suspend(self, block: int | None, region: int | None, alive: frozenset[str]) -> None:
        point = _ResumePoint(block, region, tuple(sorted(alive)))
        self._points.append(point)
        self._saved.save(point.saved)
        for target in self._resumed(region) if region is not None else ():
            value = self._ir.get(f"load i32, ptr %parked{target}")
            self._ir.do(f"store i32 {value}, ptr {self._saved.parked(target)}")
        at = self._ir.get(f"getelementptr i8, ptr %warp, i64 {WarpRecord.resume.offset}")
        self._ir.do(f"store i32 {len(self._points)}, ptr {at}")
        self._body.leave(StopReason.waiting)

    # ------------------------------------------------------------ going on

    def resume(self) -> None:
        """Emits the jump at the start of the function to the first block or, by the i32 %resume, to
        where the warp was suspended.
        """
        if not self._points:
            self._divergence.enter(0)
            return
        targets = " ".join(
            f"i32 {number}, label %resume{number}" for number in range(1, len(self._points) + 1)
        )
        self._ir.do(f"switch i32 %resume, label %begin [ {targets} ]")
        self._ir.place("begin")
        self._divergence.enter(0)
        for number, point in enumerate(self._points, 1):
            self._ir.place(f"resume{number}")
            self._saved.restore(point.saved)
            if point.region is not None:
                self._release_parked(point.region)
            elif point.block is not None:
                self._resume_after(point.block)

    def _resume_after(self, number: int) -> None:
        fallthrough = self._body.fallthrough(number)
        self._body.activate_all(fallthrough)
        if instruction := self._body.cfg.nodes[number].suspension:
            write_barrier_result(self._body.cx, instruction)
        if fallthrough == self._body.cfg.exit:
            self._body.leave(StopReason.done)
        else:
            self._divergence.enter(fallthrough)

    def _release_parked(self, region: int) -> None:
        """Resumes released lanes after their barriers; the others stay parked."""
        ir, body = self._ir, self._body
        at = ir.get(f"getelementptr i8, ptr %warp, i64 {WarpRecord.released.offset}")
        released = ir.get(f"load i32, ptr {at}")
        kept = ir.get(f"xor i32 {released}, -1")
        barriers = {body.fallthrough(number): number for number in self._waiting(region)}
        for target in self._resumed(region):
            parked = ir.get(f"load i32, ptr {self._saved.parked(target)}")
            resumed = ir.get(f"and i32 {parked}, {released}")
            ir.do(f"store i32 {ir.get(f'and i32 {parked}, {kept}')}, ptr %parked{target}")
            number = barriers.get(target)
            instruction = None if number is None else body.cfg.nodes[number].suspension
            if instruction and instruction.has("red"):
                body.activate(resumed)
                write_barrier_result(body.cx, instruction)
            if body.uniformity.region_of.get(target) == region:
                self._divergence.add(region, target, resumed)
        ir.do(f"br label %dispatch{region}")
