"""Puts stand-ins through the gates of every tier.

A kernel knows the sizes of the cases that it is shown, so each case that is scored must refuse by
itself; one distribution that does is enough, but for zeros: a kernel can tell the distributions
apart, and must not get away with nothing on any. A stand-in that applies to none of them, e.g. a
flag that is false in all, must be refused by one of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from evoengine.evaluate.worker.audit.audited_set import AuditedSet
from evoengine.evaluate.worker.audit.stand_ins import StandIn, stand_ins
from evoengine.evaluate.worker.expected_outputs import ExpectedOutputs
from evoengine.evaluate.worker.gate import Errors, Gate, errors_of, share_of
from evoengine.evaluate.worker.inputs import Tensors
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.protocols import Report
from evoengine.records import AuditReport, AuditRow, Status
from evoengine.task.schema import Task

SEEDS = (0, 1)  # of a case and distribution: the set itself, and the one whose outputs stand in
EQUAL = 1e-9  # of the largest value, far below what any tier allows
ELEMENTS, WHOLE, ANY = "each element", "the whole output", "any bound"


@dataclass(frozen=True)
class _Bound:
    """What one bound said of one stand-in on one set; `excess` is above 1 where it refuses."""

    case: str
    distribution: str
    error: float
    limit: float
    refuses: bool

    @property
    def excess(self) -> float:
        return share_of(self.error, self.limit)


@dataclass
class _Trial:
    """A stand-in for one output under one tier, and the bounds that have not refused it yet."""

    stand_in: StandIn
    open: set[str]
    closest: dict[str, _Bound] = field(default_factory=dict)
    is_right: bool = True  # so far, on all sets to which it applies
    sets: int = 0

    def add(self, bound: str, found: _Bound) -> None:
        before = self.closest.get(bound)
        if before is None or found.refuses or found.excess > before.excess:
            self.closest[bound] = found
        if found.refuses:
            self.open.discard(bound)


class TaskAudit:
    """The audit of one task on one device."""

    def __init__(
        self,
        task: Task,
        functions: TaskFunctions,
        expected: ExpectedOutputs,
        announce: Callable[[str], None],
    ) -> None:
        """`announce` is called with each step."""
        self._task = task
        self._functions = functions
        self._expected = expected
        self._announce = announce
        # by tier, stand-in, output, and the case that is scored, or "" for all others
        self._trials: dict[tuple[str, str, str, str], _Trial] = {}
        self._stand_ins = {tier: list(stand_ins(task, tier)) for tier in task.tiers}

    def report(self) -> Report:
        """The report on a job that audits; raises TaskError where a function of the task fails.

        Cases come by size, and a stand-in that every bound has refused is not tried again.
        """
        self._trials.clear()
        for case in sorted(self._task.all_cases, key=self._expected.elements):
            for distribution in self._task.distributions:
                wanted = list(self._wanted(case, distribution))
                if wanted:
                    self._announce(f"auditing case {case}, {distribution}")
                    self._try(wanted, self._set(case, distribution, *SEEDS))
        return Report(status=Status.correct, audit=AuditReport(rows=tuple(self._rows())))

    def _wanted(
        self, case: str, distribution: str
    ) -> Iterator[tuple[str, StandIn, dict[str, _Trial]]]:
        """The stand-ins of every tier that `case` must refuse and has not yet, with their trials by
        output; those that are for another distribution are left out.
        """
        for tier, candidates in self._stand_ins.items():
            for stand_in in candidates:
                if stand_in.distribution not in ("", distribution):
                    continue
                trials = {
                    name: trial
                    for name in self._task.outputs
                    if self._must_refuse(case, stand_in, name)
                    and (trial := self._trial(tier, stand_in, name, case)).open
                }
                if trials:
                    yield tier, stand_in, trials

    def _must_refuse(self, case: str, stand_in: StandIn, output: str) -> bool:
        scored = self._task.objective.cases
        return stand_in.applies(case, output) and (
            case in scored or not any(stand_in.applies(one, output) for one in scored)
        )

    def _try(
        self, wanted: Sequence[tuple[str, StandIn, dict[str, _Trial]]], given: AuditedSet
    ) -> None:
        for tier, stand_in, trials in wanted:
            made = stand_in.make(given)
            for name, trial in trials.items():
                self._judge(trial, given, tier, name, made[name])

    def _set(self, case: str, distribution: str, seed: int, other: int) -> AuditedSet:
        inputs = self._expected.inputs(case, distribution, seed)

        def recompute(tensors: Tensors, flags: Mapping[str, bool]) -> Tensors:
            return self._functions.reference(tensors, case, flags)

        return AuditedSet(
            case,
            distribution,
            inputs,
            self._expected.get(case, distribution, seed),
            recompute,
            lambda: self._set(case, distribution, other, seed),
        )

    def _trial(self, tier: str, stand_in: StandIn, output: str, case: str) -> _Trial:
        group = case if case in self._task.objective.cases else ""
        bounds = {ELEMENTS, WHOLE} if stand_in.gross else {ANY}
        return self._trials.setdefault(
            (tier, stand_in.name, output, group), _Trial(stand_in, bounds)
        )

    def _judge(
        self, trial: _Trial, given: AuditedSet, tier: str, output: str, value: torch.Tensor
    ) -> None:
        dtype = getattr(torch, self._task.outputs[output].dtype)
        gate, reference = given.expected.gates[tier][output], given.reference[output]
        errors = errors_of(value.to(dtype), reference, gate)
        trial.sets += 1
        trial.is_right &= _is_equal(value, reference)
        # infinities count in no RMSE: without another element, it says nothing
        silent = () if bool(reference.isfinite().any()) else (WHOLE,)
        for bound, error, limit, refuses in _bounds(errors, gate):
            if bound in trial.open and bound not in silent:
                found = _Bound(given.case, given.distribution, error, limit, refuses)
                trial.add(bound, found)

    def _rows(self) -> Iterator[AuditRow]:
        for (tier, _, output, group), trial in self._trials.items():
            if not trial.sets or (trial.is_right and self._is_no_fault(tier, trial, group)):
                continue
            for bound, found in trial.closest.items():
                yield AuditRow(
                    tier=tier,
                    output=output,
                    stand_in=trial.stand_in.name,
                    bound=bound,
                    refused=bound not in trial.open,
                    case=found.case,
                    distribution=found.distribution,
                    error=found.error,
                    limit=found.limit,
                )

    def _is_no_fault(self, tier: str, right: _Trial, group: str) -> bool:
        """Whether a stand-in may be right for one output."""
        stand_in = right.stand_in
        if not stand_in.must_differ:
            return stand_in.may_be_right
        return any(
            not self._trials[tier, stand_in.name, output, group].is_right
            for output in self._task.outputs
        )


def _is_equal(value: torch.Tensor, reference: torch.Tensor) -> bool:
    """Whether two float64 tensors are the same but for the order of sums."""
    finite = reference.isfinite()
    if not torch.equal(value[~finite], reference[~finite]):
        return False
    distance = (value - reference)[finite].abs()
    return not len(distance) or bool(distance.max() <= EQUAL * reference[finite].abs().max())


def _bounds(errors: Errors, gate: Gate) -> Iterator[tuple[str, float, float, bool]]:
    """Each bound with the error that it looks at, its limit, and whether it refuses."""
    elements = (errors.needed_atol, gate.atol, errors.failing > 0)
    whole = (errors.rel_rmse, gate.rel_rmse, not errors.rel_rmse <= gate.rel_rmse)
    rows = (errors.slice_rel_rmse, gate.rel_slice, not errors.slice_rel_rmse <= gate.rel_slice)
    yield ELEMENTS, *elements
    yield WHOLE, *whole
    # what refuses it, or comes closest to that
    yield ANY, *max((elements, whole, rows), key=lambda it: (it[2], share_of(it[0], it[1])))
