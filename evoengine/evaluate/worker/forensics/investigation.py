"""Puts together what is found out about one wrong call, most telling first."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import torch

from evoengine.candidate.binding import CasePlan, ScalarArgument
from evoengine.evaluate.worker.forensics.changed_references import ChangedReferences
from evoengine.evaluate.worker.forensics.common_rows import common_row_leads
from evoengine.evaluate.worker.forensics.compared_output import ComparedOutput, compared_output
from evoengine.evaluate.worker.forensics.error_cells import error_map
from evoengine.evaluate.worker.forensics.error_growth import growth_leads
from evoengine.evaluate.worker.forensics.error_region import ErrorRegion, error_region
from evoengine.evaluate.worker.forensics.gathered_elements import gathered_leads
from evoengine.evaluate.worker.forensics.implied_search import FAILURES
from evoengine.evaluate.worker.forensics.launch_facts import Relaunch, launch_leads, written
from evoengine.evaluate.worker.forensics.lead import Lead
from evoengine.evaluate.worker.forensics.moved_output import moved_leads
from evoengine.evaluate.worker.forensics.proportions import proportion_leads
from evoengine.evaluate.worker.forensics.recomputed_reference import (
    ON_CPU,
    Processor,
    RecomputedReference,
    TimeUp,
)
from evoengine.evaluate.worker.forensics.reference_window import PROBE, ReferenceWindow
from evoengine.evaluate.worker.forensics.set_facts import inputs_leads, size_leads
from evoengine.evaluate.worker.forensics.whole_numbers import whole_number_leads
from evoengine.evaluate.worker.forensics.written_values import (
    constant_leads,
    infinite_leads,
    rounded_leads,
    unwritten_leads,
)
from evoengine.evaluate.worker.forensics.wrong_call import WrongCall
from evoengine.evaluate.worker.inputs import Tensors, scalar_inputs
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.records import CaseCheck, DiagnosisKind, Forensics
from evoengine.task.schema import Task

MOST = 6  # diagnoses of one call
TIME_LIMIT_S = 10.0  # of the processor, for the search among changed references
MOST_THREADS = 4  # that look at whole outputs: more would take cores from other processes
SMALLEST_TILE, LARGEST_TILE = 2, 1024
WARP = 32


@dataclass(frozen=True, eq=False)
class Circumstances:
    """What is known besides the wrong call itself."""

    plan: CasePlan
    check: CaseCheck  # of the wrong case: which of its input sets fail
    passed: tuple[str, ...] = ()  # cases before it, all right
    relaunches: tuple[Relaunch, ...] = ()


def investigate(
    task: Task,
    functions: TaskFunctions,
    call: WrongCall,
    known: Circumstances,
    seconds: float = TIME_LIMIT_S,
    processor: Processor = ON_CPU,
) -> Forensics:
    """What is wrong with `call`; the search for its cause takes about so many seconds of the
    processor.
    """
    begin = partial(RecomputedReference, task, functions, call.case, seconds, processor)
    with _threads(MOST_THREADS):
        return _investigated(task, call, known, begin)


@contextmanager
def _threads(most: int) -> Iterator[None]:
    """No more than `most` threads of torch inside, and no more than before."""
    before = torch.get_num_threads()
    torch.set_num_threads(min(most, before))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _investigated(
    task: Task, call: WrongCall, known: Circumstances, begin: Callable[[], RecomputedReference]
) -> Forensics:
    start = time.monotonic()
    outputs = _compared(task, call, known.relaunches)
    worst = max(outputs, key=lambda one: float(one.bad.double().mean()))
    tiles = tiles_of(known.plan)
    problem = ""
    region = error_region(worst.bad, worst.axes, tiles)
    leads = _plain_leads(task, call, known, outputs, worst, region)
    if not any(_settles(lead) for lead in leads):
        recompute = begin()
        try:
            with _threads(1):  # windows are small: threads would wait for one another
                known_sizes = tiles, bool(known.plan.scratch)
                for lead in _recomputed_leads(recompute, task, call, outputs, worst, *known_sizes):
                    leads.append(lead)
        except TimeUp:
            limit = f"{recompute.seconds:g} s of the processor"
            problem = f"the search for its cause ended at its limit, {limit}"
    leads = [_with_place(lead, worst, region) for lead in leads]
    leads.append(_where(worst, region))
    ranked = sorted(leads, key=lambda lead: -lead.rank)
    return Forensics(
        case=call.case,
        distribution=call.distribution,
        output=worst.name,
        number=call.number,
        diagnoses=tuple(lead.diagnosis() for lead in _chosen(ranked)),
        error_map=error_map(worst),
        problem=problem,
        seconds=round(time.monotonic() - start, 3),
    )


def _compared(task: Task, call: WrongCall, relaunches: Sequence[Relaunch]) -> list[ComparedOutput]:
    """The outputs beside their references; what was written with the bits of the poison counts as
    written where a launch with another poison shows it.
    """
    found = [compared_output(call, name, tuple(spec.shape)) for name, spec in task.outputs.items()]
    return [
        one.without_written(written(one.name, relaunches))
        if bool(one.unwritten.any()) and one.name not in call.inputs
        else one
        for one in found
    ]


def _plain_leads(
    task: Task,
    call: WrongCall,
    known: Circumstances,
    outputs: Sequence[ComparedOutput],
    worst: ComparedOutput,
    region: ErrorRegion,
) -> list[Lead]:
    """What follows without the reference's function."""
    tiles = tiles_of(known.plan)
    leads = [
        *launch_leads(worst, known.relaunches, call.poison, tiles),
        *size_leads(task, call.case, known.passed, tiles, region),
        *inputs_leads(known.check, call.distribution),
    ]
    for one in outputs:
        leads += unwritten_leads(one, call.inputs, tiles)
    leads += whole_number_leads(worst, tiles)
    leads += [*constant_leads(worst), *infinite_leads(worst, tiles), *rounded_leads(worst)]
    if bool(worst.wrong.any()):
        others = _references(outputs, worst)
        numbers = numbers_of(task, call.case, known.plan)
        leads += proportion_leads(worst, numbers, call.inputs, others)
        leads += common_row_leads(worst, call.inputs)
        if not any(lead.is_whole for lead in leads):
            leads += [*gathered_leads(worst), *moved_leads(worst, tiles)]
        leads += growth_leads(worst)
    return leads


def _settles(lead: Lead) -> bool:
    """Whether nothing more has to be looked for: zeros, NaN, factors and offsets have a cause of
    their own, which a step may show.
    """
    described = (
        DiagnosisKind.constant,
        DiagnosisKind.not_finite,
        DiagnosisKind.ratio,
        DiagnosisKind.offset,
    )
    return lead.is_whole and lead.weight >= 1 and lead.kind not in described


def _references(outputs: Sequence[ComparedOutput], worst: ComparedOutput) -> Tensors:
    return {one.name: one.reference for one in outputs if one is not worst}


def _recomputed_leads(
    recompute: RecomputedReference,
    task: Task,
    call: WrongCall,
    outputs: Sequence[ComparedOutput],
    worst: ComparedOutput,
    tiles: Sequence[int],
    has_scratch: bool,
) -> Iterator[Lead]:
    if not any(bool(one.wrong.any()) for one in outputs):
        return
    try:
        window = ReferenceWindow(task, recompute, call, worst)
    except FAILURES:
        return
    if not window.works:
        return
    probe = window.resized(PROBE)
    if not probe.works:
        probe = window
    yield from ChangedReferences(
        recompute, window, probe, call, outputs, tiles, has_scratch
    ).leads()


def _where(worst: ComparedOutput, region: ErrorRegion) -> Lead:
    kind = DiagnosisKind.period if _is_periodic(region) else DiagnosisKind.region
    return Lead(
        kind,
        f"{worst.name} is wrong{_colon(region)} {region.words}.",
        1.0,
        0.3 if region.is_whole else 0.55,
        {"share_of_elements": round(region.share, 5), **region.evidence},
    )


def _with_place(lead: Lead, worst: ComparedOutput, region: ErrorRegion) -> Lead:
    """A mistake that was made in some places alone, with these."""
    if not lead.is_of_some or not (region.words.startswith("only ") or _is_periodic(region)):
        return lead
    return replace(lead, sentence=f"{lead.sentence} Where: {worst.name}, {region.words}.")


def _colon(region: ErrorRegion) -> str:
    return "" if region.is_whole or region.words.startswith("at ") else ":"


def _is_periodic(region: ErrorRegion) -> bool:
    return bool(region.blocks) or any(part.kind == "period" for part in region.parts)


def _chosen(ranked: Sequence[Lead]) -> Iterator[Lead]:
    """The first of each kind, up to MOST; explanations of less beside a whole one are left out."""
    kinds = set[DiagnosisKind]()
    whole = False
    changing = any(lead.kind in OF_LAUNCHES for lead in ranked)
    for lead in ranked:
        if changing and lead.kind in OF_SETS:
            continue  # which sets fail is then chance
        partial = lead.kind in EXPLANATIONS and not lead.is_whole
        if lead.kind in kinds or len(kinds) == MOST or (whole and partial):
            continue
        if whole and lead.kind in EXPLANATIONS and lead.weight < 1:
            continue
        kinds.add(lead.kind)
        whole |= lead.is_whole and lead.kind in EXPLANATIONS
        yield lead


OF_LAUNCHES = {DiagnosisKind.race, DiagnosisKind.state, DiagnosisKind.reads_old_values}
OF_SETS = {DiagnosisKind.inputs, DiagnosisKind.overflow, DiagnosisKind.sizes}
EXPLANATIONS = {
    DiagnosisKind.sign,
    DiagnosisKind.ratio,
    DiagnosisKind.offset,
    DiagnosisKind.group_ratio,
    DiagnosisKind.group_offset,
    DiagnosisKind.copied,
    DiagnosisKind.input_multiple,
    DiagnosisKind.moved,
    DiagnosisKind.fragment_layout,
    DiagnosisKind.changed_scalar,
    DiagnosisKind.changed_flag,
    DiagnosisKind.changed_input,
    DiagnosisKind.mask,
    DiagnosisKind.changed_step,
    DiagnosisKind.low_precision,
}


def tiles_of(plan: CasePlan) -> tuple[int, ...]:
    """Sizes that a plan names, as tiles may have: its macros, then extents of its blocks, then
    whole numbers that it passes.
    """
    found = [int(text) for text in plan.macros.values() if text.isdigit()]
    for launch in plan.launches:
        found += [math.prod(launch.block) // WARP, *launch.block]
    for launch in plan.launches:
        passed = (arg.scalar for arg in launch.args if isinstance(arg, ScalarArgument))
        found += [number for number in passed if isinstance(number, int)]
    return tuple(dict.fromkeys(one for one in found if SMALLEST_TILE <= one <= LARGEST_TILE))


def numbers_of(task: Task, case: str, plan: CasePlan) -> Mapping[str, float]:
    """The quantities of a case by name: scalars, dimensions, tunables, threads and warps."""
    found: dict[str, float] = {}
    for name, value in scalar_inputs(task, case).items():
        if not isinstance(value, bool):
            found[name] = float(value)
    for name, text in plan.macros.items():
        if text.isdigit():
            found[name] = float(text)
    for launch in plan.launches:
        threads = math.prod(launch.block)
        found["the warps of a block"] = threads / WARP
        found["the threads of a block"] = float(threads)
        found["the blocks of the grid"] = float(math.prod(launch.grid))
    return found
