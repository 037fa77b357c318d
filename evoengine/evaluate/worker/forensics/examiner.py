"""Runs forensics on a wrong result, so that whatever happens there the verdict stays as it is."""

from __future__ import annotations

from collections.abc import Sequence

from evoengine.errors import EvoError
from evoengine.evaluate.worker.backend import Announce, Backend, shown
from evoengine.evaluate.worker.candidate_failures import CandidateFailure
from evoengine.evaluate.worker.forensics.investigation import (
    TIME_LIMIT_S,
    Circumstances,
    investigate,
)
from evoengine.evaluate.worker.forensics.launch_facts import Relaunch
from evoengine.evaluate.worker.forensics.recomputed_reference import ON_CPU, Processor
from evoengine.evaluate.worker.forensics.wrong_call import WrongCall
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.protocols import CompiledCase, Job
from evoengine.records import CaseCheck, Forensics
from evoengine.task.schema import Task

# A reference of no larger tensors is computed again on the CPU. A GPU would take as long for its
# launches, and each time wait until nobody else holds it.
MOST_ON_CPU = 1 << 18

# Faults of the analysis, and of a reference on inputs that it was not written for: they cost a
# candidate its diagnosis, and nothing else.
FAULTS: tuple[type[Exception], ...] = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EvoError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)


class Examiner:
    """Examines the wrong results of one task."""

    def __init__(
        self,
        task: Task,
        functions: TaskFunctions,
        backend: Backend,
        seconds: float = TIME_LIMIT_S,
        processor: Processor = ON_CPU,
    ) -> None:
        """`seconds` limits the analysis of one result, without its further launches; on
        `processor` references are computed again, if their tensors are large.
        """
        self._task = task
        self._functions = functions
        self._backend = backend
        self._seconds = seconds
        self._processor = processor
        self._faults: tuple[type[Exception], ...] = (*FAULTS, *backend.errors)
        self.healthy = True  # whether the last further launches left the process as it was
        self.has_device = True  # whether the device of the references still answers

    def examine(
        self,
        compiled: CompiledCase,
        job: Job,
        check: CaseCheck,
        passed: Sequence[str],
        announce: Announce,
    ) -> Forensics:
        """What was found out about the last wrong call of the backend; `passed` names the cases
        that were right before it. Raises nothing.
        """
        found = self._examined(compiled, job, check, passed, announce)
        try:
            self._processor.answer()
        except self._faults as error:
            self.has_device = False
            return _nothing(check, f"forensics broke the device: {_line(error)}")
        return found

    def _examined(
        self,
        compiled: CompiledCase,
        job: Job,
        check: CaseCheck,
        passed: Sequence[str],
        announce: Announce,
    ) -> Forensics:
        self.healthy = True
        problem = ""
        call = None
        try:
            call = self._backend.wrong_call()
            if call is None:
                return _nothing(check, "its outputs were not kept")
            relaunches, problem = self._relaunched(compiled, job, call, announce)
            announce(f"diagnosing {shown(compiled)}", False)
            known = Circumstances(compiled.plan, check, tuple(passed), relaunches)
            processor = self._processor_for(compiled.plan.case)
            found = investigate(self._task, self._functions, call, known, self._seconds, processor)
        except self._faults as error:
            return _nothing(check, f"forensics failed: {type(error).__name__}: {_line(error)}")
        if problem:
            whole = "; ".join(filter(None, (found.problem, problem)))
            return found.model_copy(update={"problem": whole})
        return found

    def _processor_for(self, case: str) -> Processor:
        is_small = self._task.most_elements(self._task.scope(case)) <= MOST_ON_CPU
        return ON_CPU if is_small else self._processor

    def _relaunched(
        self, compiled: CompiledCase, job: Job, call: WrongCall, announce: Announce
    ) -> tuple[tuple[Relaunch, ...], str]:
        try:
            return self._backend.relaunches(compiled, job, call, announce), ""
        except CandidateFailure as failure:
            self.healthy = failure.healthy
            return (), f"launched once more: {failure.status.value}: {_line(failure)}"


def _nothing(check: CaseCheck, problem: str) -> Forensics:
    return Forensics(case=check.case, problem=problem)


def _line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else ""
