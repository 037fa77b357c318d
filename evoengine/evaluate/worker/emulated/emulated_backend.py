"""The judge's seam to the emulator."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from evoengine.emulator.check.findings import Check
from evoengine.emulator.device import Checks, Emulator, LaunchReport
from evoengine.emulator.emulator_errors import EmulatorError
from evoengine.evaluate.worker.backend import LoadedCandidate
from evoengine.evaluate.worker.candidate_failures import CandidateFailure, CannotLaunch, Faulty
from evoengine.evaluate.worker.check import layout_of, written_by
from evoengine.evaluate.worker.emulated.checked_mode import follow
from evoengine.evaluate.worker.emulated.emulated_arena import (
    SPARE_BYTES,
    EmulatedArena,
    available_bytes,
)
from evoengine.evaluate.worker.emulated.emulated_program import (
    EmulatedProgram,
    LoadedModule,
    finding_of,
)
from evoengine.evaluate.worker.emulated.modelled_time import model_case
from evoengine.evaluate.worker.expected_outputs import ExpectedOutputs
from evoengine.evaluate.worker.inputs import InputSet, paired_sets
from evoengine.evaluate.worker.judge import JobRun
from evoengine.protocols import BaselineTimes, CompiledCase
from evoengine.records import CaseCheck, CheckedRun
from evoengine.task.schema import Task

COUNTED = Checks(Check(0))  # checked mode that looks for nothing
# code of one kernel is made in half a second; what takes longer is left to a process that ends
SETTLE_S = 3.0


class EmulatedBackend:
    """Implements backend.Backend: PTX on this machine's cores."""

    def __init__(
        self,
        task: Task,
        answers: ExpectedOutputs,
        emulator: Emulator,
        checks: Sequence[str],
        alive: Callable[[], None],
    ) -> None:
        self.task = task
        self.answers = answers
        self.emulator = emulator
        self._checks = tuple(checks)
        self._loaded = LoadedModule(emulator, alive)
        self._done: dict[
            str, list[LaunchReport]
        ] = {}  # by case: what the launches of the first input set did
        # paths of the code that is made for launches which nothing follows, too
        self._fast: set[str] = set()

    @property
    def input_sets(self) -> tuple[InputSet, ...]:
        """A launch takes as long as everything else of a verdict together, so seeds and
        distributions go in pairs.
        """
        return paired_sets(self.task)

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        return MemoryError, EmulatorError

    def finding(self, error: Exception) -> CandidateFailure:
        if isinstance(error, EmulatorError):
            return finding_of(error)
        return CannotLaunch(f"this machine's memory does not suffice: {error}")

    @contextmanager
    def load(self, compiled: CompiledCase) -> Iterator[LoadedCandidate]:
        plan = compiled.plan
        program = self._program(compiled)
        with EmulatedArena(layout_of(self.task, plan), self.emulator) as arena:
            pointers = {name: arena.pointer(name) for name in arena.tensors}
            unfollowed = None if compiled.code_path in self._fast else COUNTED

            def launch() -> None:
                reports = [program.run(step, pointers, unfollowed) for step in plan.launches]
                self._done.setdefault(plan.case, reports)

            yield LoadedCandidate(arena, launch)

    def settled(self) -> bool:
        """Whether the next candidate finds all cores: code of the last one that is still being made
        would take its time.
        """
        return self._loaded.settled(SETTLE_S)

    def sanitize(self, trial: JobRun) -> None:
        """Checked mode over every case; the first one with findings ends the job."""
        self._done.clear()
        self._loaded.forget()
        self._fast.clear()
        for compiled in trial.job.cases:
            # from here on it is the candidate's time: its text may take long to read
            trial.enter("reading the code of", compiled)
            self._refuse_huge_variables(compiled)
        if not (self._checks and trial.job.checked):
            for compiled in trial.job.cases:
                self._make_fast(compiled)
        for compiled in trial.job.cases:  # modelling counts in checked mode
            self._loaded.prepare(compiled, checked=True)
        if self._checks and trial.job.checked:
            self._follow_all(trial)

    def _refuse_huge_variables(self, compiled: CompiledCase) -> None:
        """Where NVRTC tells how much a candidate keeps, it has been refused before; here this
        machine's memory is the limit.
        """
        size, free = self._loaded.variable_bytes(compiled), available_bytes()
        # they are kept as they were, beside, while a launch is repeated
        if size > (free - SPARE_BYTES) // 2:
            raise CannotLaunch(
                f"global variables of {size} bytes do not fit into this machine's memory, of which"
                f" {free} are free"
            )

    def _follow_all(self, trial: JobRun) -> None:
        with trial.phase("checked"):
            for compiled in trial.job.cases:
                trial.enter("following every access on", compiled)
                found = self._follow(compiled)
                if found.blocks < found.total_blocks:
                    self._make_fast(compiled)
                trial.checked[compiled.plan.case] = found
                if found.findings:
                    plan = compiled.plan
                    trial.checks.append(
                        CaseCheck(
                            case=plan.case, hidden=plan.hidden, ok=False, sets=(), checked=found
                        )
                    )
                    raise Faulty(found.findings[0], "\n".join(found.findings))

    def _make_fast(self, compiled: CompiledCase) -> None:
        """Begins to make the code without checks, while something else goes on: LLVM works on one
        core, launches on all.

        Cases that were followed whole, and share their code with no larger one, go on with what
        they have: to make more would take longer than to run it.
        """
        self._fast.add(compiled.code_path)
        self._loaded.prepare(compiled, checked=False)

    def _follow(self, compiled: CompiledCase) -> CheckedRun:
        """Checked mode on the first input set of a case."""
        with self._first_set(compiled) as (program, arena):
            return follow(self.task, program, arena, self._checks)

    def time(self, trial: JobRun) -> None:
        """The modelled time of every case that generators see, on the first input set."""
        cold = self.task.objective.cache == "cold"
        with trial.phase("model"):
            for compiled in trial.job.cases:
                if not compiled.plan.hidden:
                    trial.enter("modelling", compiled)
                    with self._first_set(compiled) as (program, arena):
                        written, executions = (
                            written_by(self.task, compiled.plan),
                            self._done[compiled.plan.case],
                        )
                        trial.modelled.append(
                            model_case(
                                program, arena, written, executions, self.emulator.target, cold
                            )
                        )

    @contextmanager
    def _first_set(self, compiled: CompiledCase) -> Iterator[tuple[EmulatedProgram, EmulatedArena]]:
        """The code of a case with its first inputs, and nothing but poison in what it writes."""
        plan, task = compiled.plan, self.task
        program = self._program(compiled)
        with EmulatedArena(layout_of(task, plan), self.emulator) as arena:
            arena.fill(self.answers.inputs(plan.case, *self.input_sets[0]))
            arena.poison(written_by(task, plan))
            yield program, arena

    def _program(self, compiled: CompiledCase) -> EmulatedProgram:
        elements = sum(
            math.prod(shape)
            for _, shape in layout_of(self.task, compiled.plan, scratch=False).values()
        )
        return self._loaded.program(compiled, self.task.limits.emulator_rounds * elements)

    def baselines(self, case: str) -> BaselineTimes:
        return BaselineTimes(
            median_us={},
            problems=dict.fromkeys(
                self.task.baselines, "times are modelled here: there is nothing to compare with"
            ),
        )
