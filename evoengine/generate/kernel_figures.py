"""The figures of the kernels of one candidate, as prompts show them: launches, resources, machine
code. A file may have a specialisation for each case: what they share is said once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from evoengine.candidate import binding, machine_facts
from evoengine.candidate.arch import limits_of
from evoengine.candidate.binding import CasePlan
from evoengine.candidate.kernel_file import Candidate
from evoengine.errors import CandidateError
from evoengine.protocols import Request
from evoengine.records import KernelResources, Verdict

MAX_KERNELS = 3  # whose machine code is described
NO_SPILLS = "no spills"


def bound_plan(parsed: Candidate, request: Request, case: str) -> CasePlan | None:
    """The plan of a case; None where it does not bind."""
    try:
        return binding.bind(parsed, request.task, case, limits_of(request.environment))
    except CandidateError:
        return None


def resources_lines(verdict: Verdict, parsed: Candidate | None, request: Request) -> Iterator[str]:
    """One line for each kernel that a timed case launches, with these cases where specialisations
    differ in them; the other specialisations together in one line.
    """
    launched = _launched(parsed, request)
    timed, others = _timed_first(verdict.resources, launched)
    several = len({item.kernel for item in timed}) > 1
    for item in timed:
        cases = launched.get(item.kernel, ())
        where = f"; {', '.join(cases)}" if several and cases else ""
        shared = f"{_shared_bytes(item)} B shared"
        yield (
            f"{item.kernel} ({item.arch}{where}): {item.registers} registers, {shared},"
            f" {_spills(item)}"
        )
    if others:
        yield _of_others(others)


def _launched(parsed: Candidate | None, request: Request) -> dict[str, list[str]]:
    """Kernel -> the timed cases that launch it."""
    found: dict[str, list[str]] = {}
    for case in request.task.objective.cases:
        plan = bound_plan(parsed, request, case) if parsed else None
        for launch in plan.launches if plan else ():
            cases = found.setdefault(launch.kernel, [])
            if case not in cases:
                cases.append(case)
    return found


def _timed_first(
    resources: Sequence[KernelResources], launched: Mapping[str, object]
) -> tuple[list[KernelResources], list[KernelResources]]:
    """The kernels that are launched in timed cases, and the others; all and none where it is not
    known of any.
    """
    timed = [item for item in resources if item.kernel in launched]
    return (timed or list(resources), [item for item in resources if timed and item not in timed])


def _of_others(others: Sequence[KernelResources]) -> str:
    registers = sorted({item.registers for item in others})
    span = f"{registers[0]} to {registers[-1]}" if len(registers) > 1 else f"{registers[0]}"
    spilling = sum(_spills(item) != NO_SPILLS for item in others)
    names = len({item.kernel for item in others})
    return (
        f"{names} {'kernel' if names == 1 else 'kernels'} of cases that are not timed: {span}"
        f" registers, at most {max(map(_shared_bytes, others))} B shared,"
        f" {f'{spilling} with spills' if spilling else NO_SPILLS}"
    )


def _shared_bytes(item: KernelResources) -> int:
    return item.static_shared_bytes + item.dynamic_shared_bytes


def _spills(item: KernelResources) -> str:
    if not (item.spill_store_bytes or item.spill_load_bytes):
        return NO_SPILLS
    return (
        f"spills {item.spill_store_bytes} B stored and {item.spill_load_bytes} B loaded per thread"
    )


def machine_code_lines(
    verdict: Verdict, parsed: Candidate | None, request: Request
) -> Iterator[str]:
    """One paragraph for each of the first kernels of timed cases, as compiled for the device: of
    the specialisations of one kernel whole for the first, whose names are those of their cases.
    """
    launched = _launched(parsed, request)
    timed, _ = _timed_first(verdict.resources, launched)
    described = set[str]()
    for item in [item for item in timed if item.arch == timed[0].arch][:MAX_KERNELS]:
        function = item.kernel.partition("<")[0]
        known = function in described and item.kernel in launched
        found = machine_facts.limits(item) if known else machine_facts.facts(item)
        described.add(function)
        name = ", ".join(launched[item.kernel]) if known else f"{item.kernel} ({item.arch})"
        if found:
            yield f"{name}: {'. '.join(found)}."


def launch_lines(parsed: Candidate, request: Request) -> list[str]:
    """The launches of the timed cases, with how they fill the device; those of several cases once
    where they are the same.
    """
    cases: dict[str, list[str]] = {}
    for case in request.task.objective.cases:
        if bound := bound_plan(parsed, request, case):
            for words in _launch_words(bound, limits_of(request.environment).sm_count):
                cases.setdefault(words, []).append(case)
    return [f"{', '.join(dict.fromkeys(names))}: {words}" for words, names in cases.items()]


def _launch_words(bound: CasePlan, sm_count: int) -> list[str]:
    lines = []
    for launch in bound.launches:
        grid, block = (
            "x".join(str(extent) for extent in extents) for extents in (launch.grid, launch.block)
        )
        blocks = math.prod(launch.grid)
        filling = f"grid {grid} = {blocks} blocks ({blocks / sm_count:.2f} per SM)"
        shared = f", {launch.shared_bytes} B dynamic shared" if launch.shared_bytes else ""
        name = f"{launch.kernel}: " if len(bound.launches) > 1 else ""
        lines.append(f"{name}{filling}, block {block}{shared}")
    return lines
