"""Changed kernels as jobs of a device: one at a time, or many that share one compilation."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from evoengine.candidate import kernel_file
from evoengine.candidate.arch import DeviceLimits
from evoengine.candidate.binding import BoundLaunch, CasePlan, ScalarArgument, bind
from evoengine.candidate.kernel_file import Candidate
from evoengine.errors import CandidateError
from evoengine.evaluate.candidate_refused import CandidateRefused
from evoengine.evaluate.compile.pool import CompilePool, CompileResult
from evoengine.evaluate.compile_candidate import CandidateCompiler
from evoengine.evaluate.repair.change_order import header_end
from evoengine.evaluate.repair.plan_changes import PlanChanges
from evoengine.evaluate.repair.source_change import SourceChange
from evoengine.evaluate.repair.switched_change import SwitchedChange
from evoengine.evaluate.repair.switched_source import SELECT, switched_source
from evoengine.protocols import CompiledCase

_ERROR = re.compile(r":(\d+):\d+: (?:fatal )?error")
_NVRTC_ERROR = re.compile(r"\((\d+)\): (?:catastrophic )?error")
ATTEMPTS = 8  # after each, the changes that do not compile are left out
# After so many the others in their lines are left out as well: of a call whose arguments do not fit
# a message names one.
ALONE = 2


@dataclass(frozen=True)
class CompiledChanges:
    """Changes that share one code, or one change alone: a case for each."""

    changes: tuple[SourceChange, ...]
    cases: tuple[CompiledCase, ...]
    built: CompileResult
    # with a shared code, the kernel as it is: an emulator learns from it how long a launch takes
    unchanged: CompiledCase | None = None
    # changes of the plan that need code of their own after all
    left_out: tuple[SourceChange, ...] = ()

    @property
    def case(self) -> str:
        """The case that all of them are launched for."""
        return self.cases[0].plan.case

    @property
    def is_shared(self) -> bool:
        """Whether a launch before the others chooses one of several changes."""
        return self.cases[0].plan.launches[0].kernel == SELECT

    def smallest_first(self, changes: Sequence[SourceChange]) -> list[SourceChange]:
        """Some of these changes, those whose plans ask for least before others: of several plans
        that suffice the smallest one is likelier meant than one that has room to spare.
        """
        sizes = {
            change: _size(case.plan) for change, case in zip(self.changes, self.cases, strict=True)
        }
        return sorted(changes, key=sizes.__getitem__)


def _size(plan: CasePlan) -> tuple[int, int, int]:
    """The threads, the bytes of shared memory and the elements of scratch of a plan."""
    return (
        sum(math.prod((*launch.grid, *launch.block)) for launch in plan.launches),
        sum(launch.shared_bytes for launch in plan.launches),
        sum(math.prod(buffer.shape) for buffer in plan.scratch.values()),
    )


class ChangeCompiler:
    """Compiles changes of one candidate for the case on which it was wrong."""

    def __init__(
        self, candidate: Candidate, case: str, compiler: CandidateCompiler, limits: DeviceLimits
    ) -> None:
        self._candidate = candidate
        self._case = case
        self._compiler = compiler
        self._limits = limits
        pool = compiler.clang or compiler.nvrtc
        assert pool is not None
        self._pool: CompilePool = pool
        self._seen: set[str] = set()
        self._seen_plans: set[str] = set()
        self._unrolls = False
        self._compiles_plain: bool | None = None  # the code without changes; None: not known yet
        self._one_at_a_time = asyncio.Lock()
        self._header_end = header_end(candidate)
        self.compilations = 0
        self.plain: CompiledCase | None = None  # the kernel as it is, of which plans are changed

    def discard(self, compiled: CompiledChanges) -> None:
        """Removes machine code that was judged."""
        self._pool.discard(compiled.built)

    async def together(self, changes: Sequence[SwitchedChange]) -> CompiledChanges | None:
        """All `changes` in one code, without those that do not compile; None where none is left,
        or where the code does not compile without changes.
        """
        unrolls = self._unrolls
        found = await self._together(changes)
        if found is None and not unrolls and not await self._works_plain():
            found = await self._together(changes)
        return found

    async def _works_plain(self) -> bool:
        """Whether the code without changes compiles. Where it does not, as where a macro asks to
        unroll each loop, loops stay as they are from then on.
        """
        async with self._one_at_a_time:
            if self._compiles_plain is None:
                self._compiles_plain = await self._together(()) is not None
                self._unrolls = not self._compiles_plain
            return self._compiles_plain

    async def _together(self, changes: Sequence[SwitchedChange]) -> CompiledChanges | None:
        numbered = list(enumerate(changes, start=1))
        plan = self._plan(self._candidate)
        for attempt in range(ATTEMPTS):
            if plan is None or (changes and not numbered):
                return None
            pieces = [(number, piece) for number, item in numbered for piece in item.pieces]
            source = self._candidate.source
            written = switched_source(source, self._header_end, pieces, self._unrolls)
            built = await self._build(self._candidate, plan, written.text[self._header_end :])
            if built.status == "ok":
                cases = tuple(_selecting(plan, built, number) for number, _ in numbered)
                changed = tuple(item.change for _, item in numbered)
                return CompiledChanges(changed, cases, built, _selecting(plan, built, 0))
            if not numbered:
                return None
            refused = _refused(built.log, written.line_numbers)
            if not refused:  # nothing says which one: the first half of them, by place, may compile
                refused = {number for number, _ in numbered[len(numbered) // 2 :]}
            lines = {self._line(item) for number, item in numbered if number in refused}
            numbered = [
                (number, item)
                for number, item in numbered
                if number not in refused and (attempt < ALONE or self._line(item) not in lines)
            ]
        return None

    def _line(self, item: SwitchedChange) -> int:
        """The line of the source in which the first piece of a change begins."""
        return self._candidate.source.count("\n", 0, item.start)

    async def of_plan(self, taken: PlanChanges) -> CompiledChanges | None:
        """The plans of all changes with the code of the kernel as it is, without those that cannot
        be bound or are the same plan as one before; None where that code does not compile.
        """
        plan = self._plan(self._candidate)
        if plan is None:
            return None
        code = self._candidate.code.lstrip("\n")
        built = await self._build(self._candidate, plan, code, selects=False, keep=True)
        if built.status != "ok":
            return None
        self.plain = _with_plan(plan, built)
        self._seen_plans.add(plan.model_dump_json())
        changes, cases, left_out = [], [], []
        for change in taken.changes:
            await asyncio.sleep(0)  # to bind some hundred plans takes a second
            changed = self._changed_plan(change)
            if changed is None:
                continue
            if changed.specialisation != plan.specialisation:
                left_out.append(change)
            elif changed.model_dump_json() not in self._seen_plans:
                self._seen_plans.add(changed.model_dump_json())
                changes.append(change)
                cases.append(_with_plan(changed, built))
        return CompiledChanges(tuple(changes), tuple(cases), built, self.plain, tuple(left_out))

    def _changed_plan(self, change: SourceChange) -> CasePlan | None:
        try:
            return self._plan(changed_candidate(self._candidate, change))
        except CandidateError:
            return None

    async def alone(self, change: SourceChange) -> CompiledChanges | None:
        """One change; None where it does not compile or leaves the machine code as it was."""
        if not self._seen:
            plan = self._plan(self._candidate)
            if plan is not None:
                await self._new_code(self._candidate, plan)
        try:
            changed = changed_candidate(self._candidate, change)
        except CandidateError:
            return None
        plan = self._plan(changed)
        built = None if plan is None else await self._new_code(changed, plan)
        if plan is None or built is None:
            return None
        return CompiledChanges((change,), (_with_plan(plan, built),), built)

    async def _new_code(self, changed: Candidate, plan: CasePlan) -> CompileResult | None:
        """The code of a candidate; None where it does not compile or was there before."""
        built = await self._build(changed, plan, changed.code.lstrip("\n"), selects=False)
        if built.status != "ok":
            return None
        seen = f"{built.code_digest} {plan.model_dump_json(exclude={'macros'})}"
        if seen in self._seen:
            self._pool.discard(built)
            return None
        self._seen.add(seen)
        return built

    async def _build(
        self,
        changed: Candidate,
        plan: CasePlan,
        code: str,
        selects: bool = True,
        keep: bool = False,
    ) -> CompileResult:
        self.compilations += 1
        try:
            unit = self._compiler.unit(changed, plan, self._limits.arch)
        except CandidateRefused as refused:
            return CompileResult(status="refused", log=refused.verdict.reason)
        lines = changed.source.count("\n", 0, header_end(changed))
        kernels = tuple(sorted({*unit.kernels, SELECT})) if selects else unit.kernels
        unit = unit.model_copy(update={"code": "\n" * lines + code, "kernels": kernels})
        return await self._pool.compile(unit, keep=keep)

    def _plan(self, changed: Candidate) -> CasePlan | None:
        try:
            return bind(changed, self._compiler.task, self._case, self._limits)
        except CandidateError:
            return None


def changed_candidate(candidate: Candidate, change: SourceChange) -> Candidate:
    """The candidate with a change of its source; raises CandidateError."""
    changed = kernel_file.parse(change.applied(candidate.source), candidate.header.name)
    if changed.plan.tunables == candidate.plan.tunables:
        changed = changed.tuned(candidate.tunables, undeclared_values=True)
    return changed


def _selecting(plan: CasePlan, built: CompileResult, number: int) -> CompiledCase:
    """The case with a launch before the others that chooses the change of `number`."""
    choice = ScalarArgument(scalar=number, dtype="int32")
    select = BoundLaunch(kernel=SELECT, grid=(1,), block=(1,), args=(choice,), shared_bytes=0)
    return _with_plan(plan.model_copy(update={"launches": (select, *plan.launches)}), built)


def _with_plan(plan: CasePlan, built: CompileResult) -> CompiledCase:
    return CompiledCase(plan=plan, code_path=built.code_path, functions=built.functions)


def _refused(log: str, line_numbers: Sequence[tuple[int, ...]]) -> set[int]:
    """The numbers of the changes that a compiler's messages are about."""
    found: set[int] = set()
    for text in (*_ERROR.findall(log), *_NVRTC_ERROR.findall(log)):
        line = int(text) - 1
        while 0 <= line < len(line_numbers) and not line_numbers[line] and line > int(text) - 12:
            line -= 1
        if 0 <= line < len(line_numbers):
            found |= set(line_numbers[line])
    return found
