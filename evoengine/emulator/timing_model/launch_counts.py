"""Computes the counts of a launch from its reports: executions by warps, accesses in checked
mode.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from evoengine.emulator.analyse.control_flow_graph import ControlFlowGraph
from evoengine.emulator.analyse.registers import read, written
from evoengine.emulator.check.findings import AccessCounts
from evoengine.emulator.ptx.syntax import Instruction
from evoengine.emulator.timing_model.alignment import alignments
from evoengine.emulator.timing_model.counts import SECTOR_BYTES, CodePiece, Counts, CountsBuilder
from evoengine.emulator.timing_model.dependency_chains import Step
from evoengine.emulator.timing_model.diverging_code import diverging_code
from evoengine.emulator.timing_model.fused import fused
from evoengine.emulator.timing_model.instruction_mix import InstructionMix, instruction_mix
from evoengine.emulator.timing_model.joined_loads import joined
from evoengine.emulator.timing_model.loop_counters import is_final, may_wrap, unrolled_by
from evoengine.emulator.timing_model.loop_entries import entries
from evoengine.emulator.timing_model.pipes import is_shared
from evoengine.emulator.timing_model.site_memory import SiteMemory, site_memory
from evoengine.emulator.timing_model.straight_code import StraightCode, straight_code
from evoengine.emulator.timing_model.tries import share_that_goes_on
from evoengine.emulator.timing_model.waiting import waits, without_waiting
from evoengine.emulator.timing_model.work_queues import takes_work

if TYPE_CHECKING:
    from evoengine.emulator.device import LaunchReport


def counts_from_reports(
    fast: LaunchReport, checked: LaunchReport, *, unique_bytes: float = 0.0
) -> Counts:
    """The counts of a launch: `fast` is the report of the whole grid, `checked` that of some blocks
    in checked mode.

    `unique_bytes`: bytes of global memory that the whole grid accesses. Raises ValueError if
    `checked` has no accesses.
    """
    if checked.accesses is None:
        raise ValueError("expected a report of checked mode, got one without counts of accesses")
    executions = fast.counters[:, 0].tolist()
    times = without_waiting(fast.lowered.cfg, executions)
    cfg, work = fast.lowered.cfg, fast.block_work.tolist()
    code = _Code(cfg, times, _memory(checked))
    pieces = straight_code(cfg, times)
    mixes = [(*code.mix(piece), times[piece.first]) for piece in pieces]
    counts = counts_from_mixes(
        ((mix, often) for mix, _, often in mixes),
        blocks=fast.blocks_run,
        warps=fast.blocks_run * fast.warps,
        unique_bytes=unique_bytes,
    )
    # a block that waited for others went round as often as the emulator let it
    if not takes_work(cfg) and not waits(cfg):
        counts = with_block_work(counts, work)
    worth = _blocks_worth(checked, work)
    counts = with_accesses(counts, checked.accesses, checked.blocks_run, worth=worth)
    saved = sum(often * less for _, less, often in mixes)
    return replace(
        counts,
        shared_wavefronts=max(0.0, counts.shared_wavefronts - saved),
        same_line=_on_same_line(fast, checked, times),
        visits=checked.contention.visits * checked.blocks / checked.blocks_run,
        line_visits=checked.contention.line_visits * checked.blocks / checked.blocks_run,
        go_on=_go_on(checked) if _swaps(cfg) else 0.0,
        hops=_hops(checked) if waits(cfg) else 0.0,
        frame_bytes=float(fast.lowered.layout.frame_bytes),
        warp_skew=_warp_skew(fast, executions, times),
    )


def _on_same_line(fast: LaunchReport, checked: LaunchReport, times: Sequence[float]) -> float:
    """Passes of the atomic operations of the whole grid, which executed its basic blocks so many
    `times`, on the line that has the most. What only one of the checked blocks adds to says
    nothing of others.
    """
    found = checked.contention
    counted = _atomics(checked.lowered.cfg, checked.counters[:, 0].tolist())
    if not counted:
        return 0.0
    whole = _atomics(fast.lowered.cfg, times) / counted
    if checked.blocks_run == checked.blocks:
        return found.most * whole
    return max(float(found.most), found.most_common * whole)


def _go_on(checked: LaunchReport) -> float:
    """The share of the lanes that fail to swap that try again, of the mean of the places."""
    found = checked.contention
    if not found.places:
        return 0.0
    return share_that_goes_on(found.visits_of_all / found.places, found.changes / found.places)


def _swaps(cfg: ControlFlowGraph) -> bool:
    """Whether a kernel compares and swaps beyond shared memory, and so may fail."""
    items = (item for node in cfg.nodes for item in node.instructions)
    return any(_is_global_atomic(item) and "cas" in item.modifiers for item in items)


def _hops(checked: LaunchReport) -> float:
    """Hops from block to block along the longest chain of the whole grid. Blocks that are a sample
    are taken for the beginning of one chain through all of them where most of them are in one.
    """
    hops, others = checked.contention.hops, checked.blocks_run - 1
    if 2 * hops <= others:
        return float(hops)
    return hops * (checked.blocks - 1) / others if others else 0.0


def _atomics(cfg: ControlFlowGraph, times: Sequence[float]) -> float:
    """How often warps execute instructions with an atomic operation beyond shared memory."""
    return sum(
        often * sum(_is_global_atomic(item) for item in node.instructions)
        for often, node in zip(times, cfg.nodes, strict=True)
    )


def _is_global_atomic(item: Instruction) -> bool:
    return item.op in ("atom", "red") and not is_shared(item.modifiers)


def _memory(checked: LaunchReport) -> Mapping[tuple[int, int], SiteMemory]:
    """What each instruction accesses, by its block and its place there."""
    by_site = {item.site: item for item in checked.site_accesses}
    numbers, executions = checked.lowered.site_numbers, checked.counters[:, 0].tolist()
    found = {}
    for position, node in enumerate(checked.lowered.cfg.nodes):
        for place, item in enumerate(node.instructions):
            counts = by_site.get(numbers.get(id(item), -1))
            memory = site_memory(item, counts, executions[position]) if counts else None
            if memory is not None:
                found[position, place] = memory
    return found


class _Code:
    """What a compiler makes of the code of a kernel, and what that costs."""

    def __init__(
        self,
        cfg: ControlFlowGraph,
        times: Sequence[float],
        memory: Mapping[tuple[int, int], SiteMemory],
    ) -> None:
        items = [item for node in cfg.nodes for item in node.instructions]
        self._cfg, self._times, self._memory = cfg, times, memory
        self._diverging, self._alignment = diverging_code(cfg), alignments(items)
        self._fused = fused(cfg)
        self._unread = {name for item in items for name in written(item)}.difference(
            *(read(item) for item in items)
        )

    def mix(self, piece: StraightCode) -> tuple[InstructionMix, float]:
        """The instruction mix of a piece of code, in which what runs under a condition counts by
        the share of its executions; and the wavefronts of one execution that joined loads save.
        """
        steps, saved = joined(self._steps(piece), self._alignment)
        whole = [step.instruction for step in steps]
        steps = [
            replace(step, instruction=self._fused.get(id(step.instruction), step.instruction))
            for step in steps
        ]
        if not piece.repeats or may_wrap(whole) or is_final(whole):
            return instruction_mix(steps), saved
        often, body = self._times[piece.first], [*piece.nodes, *piece.back]
        entered = min(often, entries(self._cfg, piece.first, body, self._times))
        rounds = often / entered if entered else None
        return instruction_mix(steps, rounds=rounds, done=unrolled_by(whole)), saved

    def _steps(self, piece: StraightCode) -> list[Step]:
        first = self._times[piece.first]
        return [
            Step(
                self._as_compiled(item),
                self._times[number] / first if first else 0.0,
                piece.conditions[number],
                self._memory.get((number, place)),
                number in self._diverging,
            )
            for number in piece.nodes
            for place, item in enumerate(self._cfg.nodes[number].instructions)
            if not (piece.is_predicated(number) and item.op == "bra")
        ]

    def _as_compiled(self, item: Instruction) -> Instruction:
        """An atomic operation whose result nothing reads has none in machine code: RED in place of
        ATOM, and nothing waits for it.
        """
        if item.op == "atom" and self._unread.issuperset(written(item)):
            return replace(item, op="red", operands=item.operands[1:])
        return item


def _warp_skew(report: LaunchReport, executions: Sequence[float], times: Sequence[float]) -> float:
    """The work of the warp with the most of its block, relative to the mean of its warps; waiting
    for other blocks is none, and is taken for that of the warp with the most.
    """
    work = report.warp_work.astype(float)
    if not work.any():
        return 0.0
    nodes = report.lowered.cfg.nodes
    waited = sum(
        (all_ - rest) * len(node.instructions)
        for node, all_, rest in zip(nodes, executions, times, strict=True)
    )
    if waited and len(work) < report.blocks_run:
        # how long these blocks waited is not known: the one that did so least
        worked = work[work.any(axis=1)]
        return float((worked.max(axis=1) / worked.mean(axis=1)).min())
    most, mean = work.max(axis=1).sum() - waited, work.mean(axis=1).sum() - waited / work.shape[1]
    return float(max(1.0, most / mean))


def _blocks_worth(checked: LaunchReport, work: Sequence[float]) -> float:
    """As how many blocks of the mean `work` the checked ones count: a few blocks that take their
    work from a queue do all of it, and those of a triangle differ.
    """
    executed = float(checked.block_work.sum())
    if not executed or len(checked.block_work) < checked.blocks_run:
        return checked.blocks_run
    return executed / (sum(work) / len(work))


def counts_from_mixes(
    code: Iterable[tuple[InstructionMix, float]],
    *,
    blocks: float,
    warps: float,
    unique_bytes: float = 0.0,
) -> Counts:
    """The counts of instructions and chains, from (instruction mix of a piece of code, executions
    by warps).

    `blocks` that were run, and `warps` in all of them; `unique_bytes` of global memory that the
    whole grid accesses.
    """
    builder = CountsBuilder()
    pieces = []
    for item, times in code:
        if times:
            builder.add(item.instructions, item.flops, item.delays, times)
            pieces.append(
                CodePiece(
                    times,
                    item.instructions,
                    item.flops,
                    item.delays,
                    item.wavefronts,
                    item.sectors,
                    item.copy_sectors,
                    item.lines,
                )
            )
    return Counts(
        blocks=blocks,
        warps=warps,
        instructions=builder.instructions,
        flops=builder.flops,
        delays=builder.delays,
        unique_bytes=unique_bytes,
        lines=sum(piece.times * piece.lines for piece in pieces),
        pieces=tuple(pieces),
    )


def with_block_work(counts: Counts, block_work: Sequence[float]) -> Counts:
    """`counts` with the instructions of the block with the most; `block_work`: work of each block
    in any unit, such as PTX instructions.
    """
    whole = sum(block_work)
    return (
        replace(
            counts,
            most_issued=counts.issued / counts.blocks * max(block_work) * len(block_work) / whole,
        )
        if whole
        else counts
    )


def with_accesses(
    counts: Counts, accesses: AccessCounts, blocks: float, worth: float | None = None
) -> Counts:
    """`counts` with the memory traffic of `blocks` blocks that ran in checked mode, scaled to the
    counted blocks; `worth`: as how many mean blocks they count, if they are not all alike.
    """
    factor = counts.blocks / (worth or blocks)
    shared = (
        accesses.shared_load_wavefronts
        + accesses.shared_store_wavefronts
        + accesses.async_wavefronts
    )
    again = factor * blocks / accesses.reload_blocks if accesses.reload_blocks else 0.0
    written = accesses.global_store_sectors + accesses.global_atomic_sectors
    return replace(
        counts,
        load_lines=factor * accesses.global_load_lines,
        atomic_lines=factor
        * accesses.global_store_lines
        * (accesses.global_atomic_sectors / written if written else 0.0),
        atomic_sectors=factor * accesses.global_atomic_sectors,
        shared_wavefronts=factor * shared,
        load_requests=factor * max(0, accesses.global_loads - accesses.async_copies),
        store_requests=factor * accesses.global_stores,
        load_sectors=factor * (accesses.global_load_sectors - accesses.async_sectors),
        store_sectors=factor * (accesses.global_store_sectors + accesses.global_atomic_sectors),
        copy_sectors=factor * accesses.async_sectors,
        block_sectors=factor * accesses.block_sectors,
        common_sectors=max(0.0, (accesses.block_sectors - accesses.launch_sectors) / (blocks - 1))
        if blocks > 1
        else 0.0,
        reloads=again * accesses.reloads,
        reload_span=again * accesses.reload_span,
        local_sectors=factor * accesses.local_bytes / SECTOR_BYTES,
        atomics=factor * accesses.global_atomics,
    )
