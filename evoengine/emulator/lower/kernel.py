"""One kernel as one LLVM function that runs one warp.

Where all lanes go the same way, blocks of the flow become blocks of LLVM with plain branches.
In a divergent region blocks have masks of lanes that are still to run them; a dispatcher runs
the first such block, in reverse post-order, until none is left, and all lanes meet at the join.
At a barrier the warp stores what is alive and returns; it is called again with the number of the
place to go on from. In a region lanes park at the barrier while others go on.
"""

from __future__ import annotations

from dataclasses import dataclass

from evoengine.emulator.analyse.flow import flow_of
from evoengine.emulator.analyse.graph import Flow, Node, suspends
from evoengine.emulator.analyse.uniform import UNIFORM, VARYING, Region, Shapes, shapes_of, thread_shape
from evoengine.emulator.lower.carry import explicit_carries
from evoengine.emulator.lower.context import IOTA, SCRATCH_BYTES, Context, Site, Value
from evoengine.emulator.lower.emitter import LANES, integer
from evoengine.emulator.lower.families import HANDLERS
from evoengine.emulator.lower.layout import Layout
from evoengine.emulator.ptx.program import TYPE_BITS, Function, Instruction, Integer, Operand
from evoengine.emulator.run.abi import REGISTERS_OFFSET, Block, End, Warp

FUNCTION = "warp"
ALIGN = 64
RARELY = '!0 = !{!"branch_weights", i32 1, i32 100000}'


@dataclass(frozen=True)
class Lowered:
    """The LLVM IR of a kernel and what running it needs."""

    ir: str
    flow: Flow
    warp_bytes: int
    layout: Layout
    sites: list[Site]


def lower(function: Function, layout: Layout, block: tuple[int, int, int], *, checked: bool, vector_memory: bool) -> Lowered:
    """Lowers `function`, whose calls are inlined, for thread blocks of `block`; raises Unsupported."""
    function = explicit_carries(function)
    flow = flow_of(function)
    shapes = shapes_of(function, flow, block)
    return _Kernel(function, flow, shapes, layout, block, checked, vector_memory).build()


class _Kernel:
    def __init__(
        self, function: Function, flow: Flow, shapes: Shapes, layout: Layout, block: tuple[int, int, int], checked: bool, vector_memory: bool
    ) -> None:
        self.function, self.flow, self.shapes, self.layout = function, flow, shapes, layout
        self.cx = Context(layout, shapes, function.registers, block, vector_memory=vector_memory, checked=checked, end=self._end)
        self.ir = self.cx.ir
        threads = block[0] * block[1] * block[2]
        instructions = [item for node in flow.nodes for item in node.instructions]
        exits = any(item.op in ("ret", "exit") and (item.guard or number in shapes.region_of) for number, node in enumerate(flow.nodes)
                    for item in node.instructions)  # fmt: skip
        self.partial = bool(threads % LANES) or exits
        self.points: list[tuple[int, int | None]] = []  # (block to go on with, region), by resume number - 1
        self.parked: dict[int, list[int]] = {}  # region -> its suspension points, by the block that follows
        self.offsets: dict[str, int] = {}
        self.warp_bytes = REGISTERS_OFFSET
        self.saves: list[str] = []
        self.has_suspensions = any(suspends(item) for item in instructions)

    # ------------------------------------------------------------ the frame of the function

    def build(self) -> Lowered:
        """The whole function."""
        for index, region in enumerate(self.shapes.regions):
            self.parked[index] = [self._falls(number) for number in region.blocks if self._suspends(number)]
        for number, node in enumerate(self.flow.nodes):
            region = self.shapes.region_of.get(number)
            if region is None:
                self._lower_top(number, node)
            else:
                self._lower_masked(number, node, region)
        for index, region in enumerate(self.shapes.regions):
            self._lower_dispatch(index, region)
        body, self.ir.lines = self.ir.lines, []
        self._prologue()
        text = "\n".join([f"define i32 @{FUNCTION}(ptr noalias %warp, ptr noalias %block) {{", *self.ir.lines, *body, "}"])
        declarations = "\n".join(self.ir.declarations.values())
        return Lowered(f"{declarations}\n{text}\n{RARELY}\n", self.flow, self._aligned(self.warp_bytes), self.layout, self.cx.sites)

    @staticmethod
    def _aligned(size: int) -> int:
        return -(-size // ALIGN) * ALIGN

    def _prologue(self) -> None:
        ir = self.ir
        ir.place("entry")
        for name in self.function.registers:
            type_ = self.cx.slot_type(name)
            ir.do(f"{self.cx.slot(name)} = alloca {type_}")
            ir.do(f"store {type_} {'zeroinitializer' if type_[0] == '<' else 'false' if type_ == 'i1' else '0'}, ptr {self.cx.slot(name)}")
        for index, region in enumerate(self.shapes.regions):
            bits = self._pending_bits(region)
            ir.do(f"%region{index}.pending = alloca i{bits}")
            ir.do(f"store i{bits} 0, ptr %region{index}.pending")
            for number in region.blocks:
                ir.do(f"%mask{number} = alloca i32")
                ir.do(f"store i32 0, ptr %mask{number}")
            for number in self.parked[index]:
                ir.do(f"%parked{number} = alloca i32")
                ir.do(f"store i32 0, ptr %parked{number}")
        ir.do(f"%scratch = alloca [{SCRATCH_BYTES} x i8], align 64")
        ir.do("%live.slot = alloca i32")
        self._load_fields()
        self._thread_indices()
        self._dispatch_resume()

    def _load_fields(self) -> None:
        ir = self.ir
        self._field("live_in", "i32", "warp", Warp.live.offset)
        ir.do("store i32 %live_in, ptr %live.slot")
        self._field("warp_index", "i32", "warp", Warp.index.offset)
        for place, axis in enumerate("xyz"):
            self._field(f"ctaid{axis}", "i32", "block", Block.index.offset + 4 * place)
            self._field(f"nctaid{axis}", "i32", "block", Block.grid.offset + 4 * place)
        for name in ("shared", "local", "globals"):
            self._field(name, "i64", "block", getattr(Block, name).offset)
        for name in ("params", "counters", "checker"):
            self._field(name, "ptr", "block", getattr(Block, name).offset)
        self._field("dynamic_shared", "i32", "block", Block.dynamic_shared_bytes.offset)
        ir.do(f"%fuel = getelementptr i8, ptr %block, i64 {Block.fuel.offset}")
        ir.do("%first_thread = shl i32 %warp_index, 5")
        ir.do("%first_thread64 = zext i32 %first_thread to i64")
        ir.do(f"%frames = mul i64 %first_thread64, {self.layout.frame_bytes}")
        ir.do("%local_base = add i64 %local, %frames")

    def _field(self, name: str, type_: str, of: str, offset: int) -> None:
        self.ir.do(f"%{name}.at = getelementptr i8, ptr %{of}, i64 {offset}")
        self.ir.do(f"%{name} = load {type_}, ptr %{name}.at")

    def _thread_indices(self) -> None:
        """threadIdx from the number of the warp: scalars where analysis says so, else vectors."""
        ir, (x, y, _) = self.ir, self.cx.block
        number = ir.splat("%first_thread", "i32")
        ir.do(f"%thread_number = add <{LANES} x i32> {number}, {IOTA}")
        rules = {
            "x": ("urem i32 %first_thread, {0}", "urem <32 x i32> %thread_number, splat (i32 {0})", (x,)),
            "y": ("udiv i32 %first_thread, {0}", "udiv <32 x i32> %thread_number, splat (i32 {0})", (x,)),
            "z": ("udiv i32 %first_thread, {0}", "udiv <32 x i32> %thread_number, splat (i32 {0})", (x * y,)),
        }
        for axis, (scalar, vector, values) in rules.items():
            is_vector = thread_shape(f"%tid.{axis}", self.cx.block) is VARYING
            text = (vector if is_vector else scalar).format(*values)
            if axis == "y":
                inner = ir.get(text)
                kind = integer(32, is_vector)
                text = f"urem {kind} {inner}, {f'splat (i32 {y})' if is_vector else y}"
            ir.do(f"%tid{axis} = {text}")

    def _dispatch_resume(self) -> None:
        self._field("resume", "i32", "warp", Warp.resume.offset)
        if not self.points:
            self._jump_in(0)
            return
        targets = " ".join(f"i32 {number + 1}, label %resume{number + 1}" for number in range(len(self.points)))
        self.ir.do(f"switch i32 %resume, label %begin [ {targets} ]")
        self.ir.place("begin")
        self._jump_in(0)
        for index, (number, region) in enumerate(self.points, 1):
            self.ir.place(f"resume{index}")
            self._restore(index, number, region)

    def _jump_in(self, number: int) -> None:
        """From where all lanes run into block `number`."""
        region = self.shapes.region_of.get(number)
        if region is None:
            self.ir.do(f"br label %block{number}")
            return
        live = self.ir.get("load i32, ptr %live.slot")
        self._add_pending(region, number, live)
        self.ir.do(f"br label %dispatch{region}")

    # ------------------------------------------------------------ blocks where all lanes run

    def _lower_top(self, number: int, node: Node) -> None:
        self.ir.place(f"block{number}")
        self.cx.in_region = False
        self._set_top_mask()
        self._count(number, None)
        self._burn(number)
        self._instructions(node)
        self._leave_top(number, node)

    def _set_top_mask(self) -> None:
        """Lanes that have ended, or never were, do not run; a kernel that has none of them needs no mask."""
        if not self.partial:
            self.cx.mask, self.cx.mask_bits = None, "-1"
            return
        self.cx.mask_bits = self.ir.get("load i32, ptr %live.slot")
        self.cx.mask = self.ir.get(f"bitcast i32 {self.cx.mask_bits} to <{LANES} x i1>")

    def _leave_top(self, number: int, node: Node) -> None:
        last, ir = node.last, self.ir
        if last is not None and suspends(last):
            self._suspend_top(number, last)
        elif last is not None and last.op in ("ret", "exit") and not last.guard:
            self._return(End.done)
        elif last is not None and last.op == "trap" and not last.guard:
            self.ir.do("unreachable")
            return
        elif last is not None and last.op == "bra" and last.guard:
            condition = self.cx.guard(last.guard)
            if condition.shape is UNIFORM and node.taken != node.falls:
                a, b = self._edge(node.taken), self._edge(node.falls)
                ir.do(f"br i1 {condition.text}, label %{a[0]}, label %{b[0]}")
                self._place_edges(a, b)
            else:
                self._part(number, node, condition)
        elif node.successors:
            self._jump_in(node.successors[0])
        else:
            self._return(End.done)

    def _edge(self, number: int | None) -> tuple[str, int]:
        """A label for the way into block `number`, and the block where code must stand there, or -1."""
        assert number is not None
        if number in self.shapes.region_of:
            return self.ir.label(), number
        return f"block{number}", -1

    def _place_edges(self, *edges: tuple[str, int]) -> None:
        for label, number in edges:
            if number >= 0:
                self.ir.place(label)
                self._jump_in(number)

    def _part(self, number: int, node: Node, condition: Value) -> None:
        """A branch at which lanes part: they enter the region from here."""
        assert node.taken is not None and node.falls is not None
        if node.taken == node.falls:
            self._jump_in(node.taken)
            return
        join = self.flow.post_dominator[number]
        region = self.shapes.region_of[node.falls if node.taken == join else node.taken]
        taken = self.ir.get(f"bitcast <{LANES} x i1> {self.cx.spread(condition)} to i32")
        self._split_lanes(region, node.taken, node.falls, taken, self.ir.get("load i32, ptr %live.slot"))
        self.ir.do(f"br label %dispatch{region}")

    def _split_lanes(self, region: int, taken: int, falls: int, condition: str, mask: str) -> None:
        ir = self.ir
        if self.shapes.region_of.get(taken) == region:  # else it is the join, where lanes need nothing to wait
            self._add_pending(region, taken, ir.get(f"and i32 {mask}, {condition}"))
        if self.shapes.region_of.get(falls) == region:
            rest = ir.get(f"xor i32 {condition}, -1")
            self._add_pending(region, falls, ir.get(f"and i32 {mask}, {rest}"))

    # ------------------------------------------------------------ blocks where some lanes run

    def _lower_masked(self, number: int, node: Node, region: int) -> None:
        ir = self.ir
        ir.place(f"block{number}")
        self.cx.in_region = True
        mask = ir.get(f"load i32, ptr %mask{number}")
        ir.do(f"store i32 0, ptr %mask{number}")
        self._clear_pending(region, number)
        self._set_mask(mask)
        self._count(number, mask)
        self._burn(number)
        self._instructions(node)
        self._leave_masked(number, node, region)

    def _set_mask(self, mask: str) -> None:
        self.cx.mask_bits = mask
        self.cx.mask = self.ir.get(f"bitcast i32 {mask} to <{LANES} x i1>")

    def _leave_masked(self, number: int, node: Node, region: int) -> None:
        last, ir, mask = node.last, self.ir, self.cx.mask_bits
        if last is not None and suspends(last):
            self._park(number, last, region)
        elif last is not None and last.op in ("ret", "exit") and not last.guard:
            self._kill(mask)
        elif last is not None and last.op == "trap" and not last.guard:
            self.ir.do("unreachable")
            return
        elif last is not None and last.op == "bra" and last.guard:
            assert node.taken is not None and node.falls is not None
            condition = ir.get(f"bitcast <{LANES} x i1> {self.cx.spread(self.cx.guard(last.guard))} to i32")
            self._split_lanes(region, node.taken, node.falls, condition, mask)
        elif node.successors and self.shapes.region_of.get(node.successors[0]) == region:
            self._add_pending(region, node.successors[0], mask)
        elif not node.successors:
            self._kill(mask)
        ir.do(f"br label %dispatch{region}")

    def _kill(self, mask: str) -> None:
        """These lanes have ended."""
        live = self.ir.get("load i32, ptr %live.slot")
        rest = self.ir.get(f"xor i32 {mask}, -1")
        self.ir.do(f"store i32 {self.ir.get(f'and i32 {live}, {rest}')}, ptr %live.slot")

    def _pending_bits(self, region: Region) -> int:
        return max(32, -(-len(region.blocks) // 32) * 32)

    def _add_pending(self, region: int, number: int, mask: str) -> None:
        """Lanes `mask` are to run block `number`."""
        ir, bits = self.ir, self._pending_bits(self.shapes.regions[region])
        before = ir.get(f"load i32, ptr %mask{number}")
        ir.do(f"store i32 {ir.get(f'or i32 {before}, {mask}')}, ptr %mask{number}")
        some = ir.get(f"icmp ne i32 {mask}, 0")
        flag = ir.get(f"zext i1 {some} to i{bits}")
        place = self.shapes.regions[region].blocks.index(number)
        flag = ir.get(f"shl i{bits} {flag}, {place}")
        pending = ir.get(f"load i{bits}, ptr %region{region}.pending")
        ir.do(f"store i{bits} {ir.get(f'or i{bits} {pending}, {flag}')}, ptr %region{region}.pending")

    def _clear_pending(self, region: int, number: int) -> None:
        ir, bits = self.ir, self._pending_bits(self.shapes.regions[region])
        place = self.shapes.regions[region].blocks.index(number)
        pending = ir.get(f"load i{bits}, ptr %region{region}.pending")
        kept = ir.get(f"and i{bits} {pending}, {~(1 << place)}")
        ir.do(f"store i{bits} {kept}, ptr %region{region}.pending")

    def _lower_dispatch(self, index: int, region: Region) -> None:
        ir, bits = self.ir, self._pending_bits(region)
        ir.place(f"dispatch{index}")
        pending = ir.get(f"load i{bits}, ptr %region{index}.pending")
        first = ir.intrinsic("cttz", f"i{bits}", pending, also="i1 false")
        targets = " ".join(f"i{bits} {place}, label %block{number}" for place, number in enumerate(region.blocks))
        ir.do(f"switch i{bits} {first}, label %idle{index} [ {targets} ]")
        ir.place(f"idle{index}")
        if self.parked[index]:
            self._wait_if_parked(index, region)
        self._meet(region)

    def _meet(self, region: Region) -> None:
        """All lanes that still live are at the join."""
        ir = self.ir
        if region.join == self.flow.exit:
            self._return(End.done)
            return
        if self.partial:
            live = ir.get("load i32, ptr %live.slot")
            none, over, on = ir.get(f"icmp eq i32 {live}, 0"), ir.label(), ir.label()
            ir.do(f"br i1 {none}, label %{over}, label %{on}")
            ir.place(over)
            self._return(End.done)
            ir.place(on)
        self._jump_in(region.join)

    # ------------------------------------------------------------ barriers

    def _suspends(self, number: int) -> bool:
        last = self.flow.nodes[number].last
        return last is not None and suspends(last)

    def _falls(self, number: int) -> int:
        falls = self.flow.nodes[number].falls
        return self.flow.exit if falls is None else falls

    def _arrive(self, instruction: Instruction, mask: str) -> None:
        """Notes in the warp that lanes `mask` wait."""
        if instruction.op == "yield":
            self._note(Warp.yielded.offset, mask)
            return
        operands = self._barrier_operands(instruction)
        number = self.cx.scalar(operands[0], 32)
        if number is None:
            raise self.cx.unsupported("a barrier whose number differs between lanes")
        place = self.ir.get(f"and i32 {number}, 15")
        self._note_at(Warp.arrived.offset, place, mask)
        count = self.cx.scalar(operands[1], 32) if len(operands) > 1 else "0"
        if count is None:
            raise self.cx.unsupported("a barrier whose count differs between lanes")
        self._set_at(Warp.expected.offset, place, count)
        if instruction.has("red"):
            predicate = self.cx.read(instruction.operands[-1], 1)
            bits = self.ir.get(f"bitcast <{LANES} x i1> {self.cx.spread(predicate)} to i32")
            self._note_at(Warp.voted.offset, place, self.ir.get(f"and i32 {bits}, {mask}"))

    @staticmethod
    def _barrier_operands(instruction: Instruction) -> list[Operand]:
        """The barrier's number and count, without result and predicate of bar.red."""
        operands = list(instruction.operands)
        if instruction.has("red"):
            operands = operands[1:-1]
        return operands or [Integer(0)]

    def _note(self, offset: int, mask: str) -> None:
        at = self.ir.get(f"getelementptr i8, ptr %warp, i64 {offset}")
        before = self.ir.get(f"load i32, ptr {at}")
        self.ir.do(f"store i32 {self.ir.get(f'or i32 {before}, {mask}')}, ptr {at}")

    def _note_at(self, offset: int, place: str, mask: str) -> None:
        at = self._at(offset, place)
        before = self.ir.get(f"load i32, ptr {at}")
        self.ir.do(f"store i32 {self.ir.get(f'or i32 {before}, {mask}')}, ptr {at}")

    def _set_at(self, offset: int, place: str, value: str) -> None:
        self.ir.do(f"store i32 {value}, ptr {self._at(offset, place)}")

    def _at(self, offset: int, place: str) -> str:
        base = self.ir.get(f"getelementptr i8, ptr %warp, i64 {offset}")
        return self.ir.get(f"getelementptr i32, ptr {base}, i32 {place}")

    def _suspend_top(self, number: int, instruction: Instruction) -> None:
        falls = self._falls(number)
        live = self.ir.get("load i32, ptr %live.slot")
        self._arrive(instruction, live)
        self.points.append((number, None))
        alive = self.flow.nodes[falls].live_in if falls < self.flow.exit else frozenset[str]()
        self._save(alive, len(self.points))

    def _park(self, number: int, instruction: Instruction, region: int) -> None:
        """Lanes wait here; others of the warp may go on."""
        falls = self._falls(number)
        mask = self.cx.mask_bits
        self._arrive(instruction, mask)
        before = self.ir.get(f"load i32, ptr %parked{falls}")
        self.ir.do(f"store i32 {self.ir.get(f'or i32 {before}, {mask}')}, ptr %parked{falls}")

    def _yields(self, number: int) -> bool:
        """Whether lanes wait at the end of a block for others to run; they may still come to a barrier."""
        last = self.flow.nodes[number].last
        return last is not None and last.op == "yield"

    def _check_divergence(self, region: Region) -> None:
        """Tells the checker which lanes wait at each barrier of a region, out of those that have not ended, once none can go on."""
        barriers = [number for number in region.blocks if self._suspends(number)]
        live = self.ir.get("load i32, ptr %live.slot")
        for number in barriers:
            last = self.flow.nodes[number].last
            assert last is not None
            parked = self.ir.get(f"load i32, ptr %parked{self._falls(number)}")
            site = str(self.cx.site(last))
            arguments = (("i32", "%warp_index"), ("i32", parked), ("i32", live), ("i32", site))
            self.ir.call("void", "ev_check_divergent_barrier", ("ptr", "%checker"), *arguments)

    def _wait_if_parked(self, index: int, region: Region) -> None:
        ir = self.ir
        all_ = "0"
        for number in self.parked[index]:
            all_ = ir.get(f"or i32 {all_}, {ir.get(f'load i32, ptr %parked{number}')}")
        some, wait, on = ir.get(f"icmp ne i32 {all_}, 0"), ir.label(), ir.label()
        ir.do(f"br i1 {some}, label %{wait}, label %{on}")
        ir.place(wait)
        if self.cx.checked and not any(self._yields(number) for number in region.blocks):
            self._check_divergence(region)
        alive = set[str]().union(*(self.flow.nodes[number].live_in for number in region.blocks))
        if region.join < self.flow.exit:
            alive |= self.flow.nodes[region.join].live_in
        self.points.append((-1, index))
        self._save(frozenset(alive), len(self.points), self.parked[index])
        ir.place(on)

    def _save(self, alive: frozenset[str], point: int, parked: list[int] | None = None) -> None:
        ir = self.ir
        for name in sorted(alive):
            self.ir.do(f"store {self._saved_type(name)} {self._as_saved(name)}, ptr {self._saved_at(name)}, align {self._saved_align(name)}")
        for number in parked or ():
            value = ir.get(f"load i32, ptr %parked{number}")
            ir.do(f"store i32 {value}, ptr {self._parked_at(number)}")
        at = ir.get(f"getelementptr i8, ptr %warp, i64 {Warp.resume.offset}")
        ir.do(f"store i32 {point}, ptr {at}")
        self.saves.append(" ".join(sorted(alive)))
        self._return(End.waiting)

    def _restore(self, point: int, number: int, region: int | None) -> None:
        ir = self.ir
        for name in self.saves[point - 1].split():
            loaded = ir.get(f"load {self._saved_type(name)}, ptr {self._saved_at(name)}, align {self._saved_align(name)}")
            if self.function.registers[name] == "pred" and self.cx.shape(name) is VARYING:
                loaded = ir.get(f"bitcast i32 {loaded} to <{LANES} x i1>")
            elif self.function.registers[name] == "pred":
                loaded = ir.get(f"trunc i32 {loaded} to i1")
            ir.do(f"store {self.cx.slot_type(name)} {loaded}, ptr {self.cx.slot(name)}")
        if region is None:
            self.cx.in_region = False
            self._set_top_mask()
            self._after_barrier(self.flow.nodes[number].last)
            falls = self._falls(number)
            if falls == self.flow.exit:
                self._return(End.done)
            else:
                self._jump_in(falls)
            return
        self._unpark(region)

    def _unpark(self, region: int) -> None:
        ir = self.ir
        at = ir.get(f"getelementptr i8, ptr %warp, i64 {Warp.released.offset}")
        released = ir.get(f"load i32, ptr {at}")
        kept = ir.get(f"xor i32 {released}, -1")
        for number in [item for item in self.shapes.regions[region].blocks if self._suspends(item)]:
            falls = self._falls(number)
            parked = ir.get(f"load i32, ptr {self._parked_at(falls)}")
            go = ir.get(f"and i32 {parked}, {released}")
            ir.do(f"store i32 {ir.get(f'and i32 {parked}, {kept}')}, ptr %parked{falls}")
            last = self.flow.nodes[number].last
            assert last is not None
            if last.has("red"):
                self.cx.in_region = True
                self._set_mask(go)
                self._after_barrier(last)
            if self.shapes.region_of.get(falls) == region:
                self._add_pending(region, falls, go)
        ir.do(f"br label %dispatch{region}")

    def _after_barrier(self, instruction: Instruction | None) -> None:
        """The result of bar.red."""
        if instruction is None or not instruction.has("red"):
            return
        self.cx.instruction = instruction
        number = self.cx.scalar(self._barrier_operands(instruction)[0], 32)
        place = self.ir.get(f"and i32 {number}, 15")
        votes = self.ir.get(f"load i32, ptr {self._at(Warp.votes.offset, place)}")
        voters = self.ir.get(f"load i32, ptr {self._at(Warp.voters.offset, place)}")
        if instruction.has("popc"):
            value = Value(UNIFORM, votes, 32)
        else:
            text = f"icmp eq i32 {votes}, {voters}" if instruction.has("and") else f"icmp ne i32 {votes}, 0"
            value = Value(UNIFORM, self.ir.get(text), 1)
        self.cx.write(instruction.operands[0], value)

    def _saved_type(self, name: str) -> str:
        if self.function.registers[name] == "pred":
            return "i32"
        return self.cx.slot_type(name)

    def _saved_align(self, name: str) -> int:
        return 64 if self.cx.shape(name) is VARYING and self.function.registers[name] != "pred" else 4

    def _as_saved(self, name: str) -> str:
        value = self.ir.get(f"load {self.cx.slot_type(name)}, ptr {self.cx.slot(name)}")
        if self.function.registers[name] != "pred":
            return value
        if self.cx.shape(name) is VARYING:
            return self.ir.get(f"bitcast <{LANES} x i1> {value} to i32")
        return self.ir.get(f"zext i1 {value} to i32")

    def _saved_at(self, name: str) -> str:
        if name not in self.offsets:
            bits = TYPE_BITS[self.function.registers[name]]
            wide = self.cx.shape(name) is VARYING and bits > 1
            size = LANES * bits // 8 if wide else 8
            self.warp_bytes = self._aligned(self.warp_bytes) if wide else -(-self.warp_bytes // 8) * 8
            self.offsets[name] = self.warp_bytes
            self.warp_bytes += size
        return self.ir.get(f"getelementptr i8, ptr %warp, i64 {self.offsets[name]}")

    def _parked_at(self, number: int) -> str:
        key = f" parked {number}"
        if key not in self.offsets:
            self.warp_bytes = -(-self.warp_bytes // 8) * 8
            self.offsets[key] = self.warp_bytes
            self.warp_bytes += 8
        return self.ir.get(f"getelementptr i8, ptr %warp, i64 {self.offsets[key]}")

    # ------------------------------------------------------------ instructions

    def _instructions(self, node: Node) -> None:
        for place, instruction in enumerate(node.instructions):
            self.cx.instruction = instruction
            is_last = place == len(node.instructions) - 1
            if suspends(instruction) or (is_last and instruction.op in ("bra", "ret", "exit") and not self._is_guarded_exit(instruction)):
                return
            if self._is_guarded_exit(instruction):
                self._guarded_exit(instruction)
                continue
            self._one(instruction)

    @staticmethod
    def _is_guarded_exit(instruction: Instruction) -> bool:
        return instruction.op in ("ret", "exit") and instruction.guard is not None

    def _guarded_exit(self, instruction: Instruction) -> None:
        """Lanes end here while others go on."""
        assert instruction.guard is not None
        ir = self.ir
        condition = ir.get(f"bitcast <{LANES} x i1> {self.cx.spread(self.cx.guard(instruction.guard))} to i32")
        self._kill(ir.get(f"and i32 {condition}, {self.cx.mask_bits}"))
        rest = ir.get(f"and i32 {self.cx.mask_bits}, {ir.get(f'xor i32 {condition}, -1')}")
        if not self.cx.in_region:
            none, over, on = ir.get(f"icmp eq i32 {rest}, 0"), ir.label(), ir.label()
            ir.do(f"br i1 {none}, label %{over}, label %{on}")
            ir.place(over)
            self._return(End.done)
            ir.place(on)
        self._set_mask(rest)

    def _one(self, instruction: Instruction) -> None:
        handler = HANDLERS.get(instruction.op)
        if handler is None:
            raise self.cx.unsupported()
        if instruction.guard is None:
            handler(self.cx, instruction)
            return
        condition = self.cx.guard(instruction.guard)
        before = self.cx.mask, self.cx.mask_bits
        guard = self.cx.spread(condition)
        self.cx.mask = guard if before[0] is None else self.ir.get(f"and <{LANES} x i1> {guard}, {before[0]}")
        self.cx.mask_bits = self.ir.get(f"bitcast <{LANES} x i1> {self.cx.mask} to i32")
        handler(self.cx, instruction)
        self.cx.mask, self.cx.mask_bits = before

    def _count(self, number: int, mask: str | None) -> None:
        """Adds to the counters of a block: warps that ran it, and lanes."""
        ir = self.ir
        lanes = str(LANES)
        if mask is not None:
            lanes = ir.get(f"zext i32 {ir.intrinsic('ctpop', 'i32', mask)} to i64")
        for place, amount in ((0, "1"), (1, lanes)):
            at = ir.get(f"getelementptr i64, ptr %counters, i64 {2 * number + place}")
            before = ir.get(f"load i64, ptr {at}")
            ir.do(f"store i64 {ir.get(f'add i64 {before}, {amount}')}, ptr {at}")

    def _burn(self, number: int) -> None:
        """Fuel for one more round of a loop."""
        if number not in self.flow.loop_headers:
            return
        ir = self.ir
        left = ir.get(f"sub i64 {ir.get('load i64, ptr %fuel')}, 1")
        ir.do(f"store i64 {left}, ptr %fuel")
        empty, over, on = ir.get(f"icmp slt i64 {left}, 0"), ir.label(), ir.label()
        ir.do(f"br i1 {empty}, label %{over}, label %{on}, !prof !0")
        ir.place(over)
        first = self.flow.nodes[number].instructions
        self._fault_site(first[0] if first else None)
        self._return(End.no_fuel)
        ir.place(on)

    def _fault_site(self, instruction: Instruction | None) -> None:
        site = self.cx.site(instruction)
        for offset, value in ((Block.fault_site.offset, site), (Block.fault_lanes.offset, self.cx.mask_bits)):
            at = self.ir.get(f"getelementptr i8, ptr %block, i64 {offset}")
            self.ir.do(f"store i32 {value}, ptr {at}")

    def _end(self, end: End) -> None:
        """Ends the warp from within an instruction; what follows is never reached."""
        self._fault_site(self.cx.instruction)
        self._return(end)
        self.ir.place(self.ir.label())

    def _return(self, end: End) -> None:
        live = self.ir.get("load i32, ptr %live.slot")
        self.ir.do(f"store i32 {live}, ptr %live_in.at")
        self.ir.do(f"ret i32 {int(end)}")


