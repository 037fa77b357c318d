"""The judge's backend for the emulator."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Iterator, Sequence

from evoengine.emulator.check.findings import Check
from evoengine.emulator.device import Checks, Emulator
from evoengine.emulator.emulator_errors import EmulatorError
from evoengine.evaluate.floor import floors_of
from evoengine.evaluate.worker.backend import (
    Announce,
    NoActivity,
    SanitizedCase,
    TimedCase,
    shown,
)
from evoengine.evaluate.worker.candidate_failures import (
    CandidateFailure,
    CannotLaunch,
    EmulatorFailure,
)
from evoengine.evaluate.worker.check import layout_of, written_by
from evoengine.evaluate.worker.emulated.checked_mode import FEW_ROUNDS, follow
from evoengine.evaluate.worker.emulated.emulated_arena import SPARE_BYTES, available_bytes
from evoengine.evaluate.worker.emulated.emulated_examination import (
    EmulatedExamination,
    ExaminedSet,
)
from evoengine.evaluate.worker.emulated.emulated_program import (
    EmulatedProgram,
    LoadedModule,
    failure_of,
)
from evoengine.evaluate.worker.emulated.modelled_peaks import modelled_peaks
from evoengine.evaluate.worker.emulated.modelled_time import model_case
from evoengine.evaluate.worker.emulated.secret_sets import SecretSet, secret_sets
from evoengine.evaluate.worker.expected_outputs import ExpectedOutputs
from evoengine.evaluate.worker.forensics.launch_facts import Relaunch, depends_on_poison
from evoengine.evaluate.worker.forensics.wrong_call import WrongCall
from evoengine.protocols import BaselineTimes, CompiledCase, Job, Purpose
from evoengine.records import CaseCheck, CaseModel, CheckedRun, KernelActivity
from evoengine.task.schema import Task

# A launch in checked mode without any check.
NO_CHECKS = Checks(Check(0))
RELAUNCHES_S = 3.0  # for all further launches on the inputs of a wrong call
OTHER_POISON = 0x3C  # an ordinary small number in every floating type
# The instructions of kernels whose threads wait for one another differ a little from run to run.
MORE_WORK = 1.02
# Of loops of a changed kernel, by instructions of the kernel before; and at least.
ROUNDS_OF_CHANGED = 2
LEAST_ROUNDS = 1 << 16
# In checked mode, by those of the first kernel that was followed there; and at least. A loop that
# runs away through memory has a finding in every round.
ROUNDS_OF_FOLLOWED = 4
LEAST_FOLLOWED = 1 << 14
# Compiling one kernel takes half a second; a process in which it takes longer is replaced.
COMPILATIONS_END_S = 3.0


class EmulatedBackend:
    """Implements backend.Backend: PTX on this machine's cores."""

    timing_phase = "model"

    def __init__(
        self,
        task: Task,
        expected_outputs: ExpectedOutputs,
        emulator: Emulator,
        secret: str,
        checks: Sequence[str],
        alive: Callable[[], None],
    ) -> None:
        """All seeds come from `secret`; `checks` names the checks of checked mode; `alive` is
        called before every launch.
        """
        self.task = task
        self.expected_outputs = expected_outputs
        self.emulator = emulator
        self._secret = secret
        self._checks = tuple(checks)
        self._loaded = LoadedModule(emulator, alive)
        # case -> the call that is modelled: one with the most work, not with the easiest inputs
        self._busiest: dict[str, ExaminedSet] = {}
        self._instructions: dict[str, int] = {}  # case -> those of the candidate
        self._followed_rounds: dict[str, int] = {}  # case -> its most in checked mode
        self._wrong_call: WrongCall | None = None  # of this job
        self._next_changes: Collection[str] = ()  # paths of PTX files, of this job and later ones
        self._followed = ""  # the candidate of the last job, if that was checked mode alone
        # paths of PTX files that are also compiled without checks
        self._compiled_unchecked: set[str] = set()

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        return MemoryError, EmulatorError

    def failure(self, error: Exception) -> CandidateFailure:
        if isinstance(error, EmulatorError):
            return failure_of(error)
        return CannotLaunch(f"this machine has too little memory: {error}")

    def prepare(self, compiled: CompiledCase, job: Job, announce: Announce) -> None:
        for given in self._compared_sets(compiled, job):
            announce(f"preparing {shown(compiled)}", False)
            self.expected_outputs.get(compiled.plan.case, given.distribution, given.seed)

    def check(self, compiled: CompiledCase, job: Job, announce: Announce) -> CaseCheck:
        try:
            return self._check(compiled, job)
        except EmulatorFailure:
            raise
        except CandidateFailure:
            # what it wrote beside its buffers is in memory that the next launch fills anew
            if job.only_set is None:
                raise
            plan = compiled.plan
            return CaseCheck(case=plan.case, hidden=plan.hidden, ok=False, sets=())

    def _check(self, compiled: CompiledCase, job: Job) -> CaseCheck:
        plan = compiled.plan
        sets = self._compared_sets(compiled, job)
        is_changed = job.only_set is not None
        examination = self._examination(compiled, is_changed)
        found = examination.check(sets, job.tier, self._no_checks(compiled))
        self._wrong_call = examination.wrong_call
        self._busiest[plan.case] = busiest(found)
        if not is_changed or plan.case not in self._instructions:
            self._instructions[plan.case] = self._busiest[plan.case].instructions
        checks = tuple(item.check for item in found)
        return CaseCheck(
            case=plan.case,
            hidden=plan.hidden,
            ok=all(item.ok for item in checks),
            sets=checks,
            work=self._busiest[plan.case].work if is_changed else None,
        )

    def _rounds_of_changed(self, case: str) -> int | None:
        """The most loop rounds of a changed kernel: many times those of the kernel before the
        change, each of which has some instructions. Endless loops then end in milliseconds.
        """
        known = self._instructions.get(case)
        return None if known is None else max(LEAST_ROUNDS, ROUNDS_OF_CHANGED * known)

    def _no_checks(self, compiled: CompiledCase) -> Checks | None:
        """Launches without checks, of code that is compiled already."""
        return None if compiled.code_path in self._compiled_unchecked else NO_CHECKS

    def wrong_call(self) -> WrongCall | None:
        return self._wrong_call

    def relaunches(
        self, compiled: CompiledCase, job: Job, call: WrongCall, announce: Announce
    ) -> tuple[Relaunch, ...]:
        """The same launch again and with another poison, and where that changes the outputs with
        another one in each scratch buffer; what takes more than RELAUNCHES_S is left out.
        """
        announce(f"launching {shown(compiled)} once more", True)
        examination, checks = self._examination(compiled), self._no_checks(compiled)
        given = self._sets(compiled)[call.number]
        found = list[Relaunch]()
        wanted = ((2, call.poison), (1, OTHER_POISON), (2, call.poison))
        left_s = RELAUNCHES_S
        for calls, poison in wanted:
            left_s -= calls * call.launch_s
            if left_s < 0:
                break
            found.append(examination.relaunch(call, given, calls, poison, checks))
        names = examination.scratch
        if left_s < len(names) * call.launch_s or not depends_on_poison(found):
            return tuple(found)
        # all or none: one that is left out, or fails with other bits, may be the one that counts
        with contextlib.suppress(CandidateFailure):
            found += [
                examination.relaunch(call, given, 1, OTHER_POISON, checks, name) for name in names
            ]
        return tuple(found)

    def compilations_ended(self) -> bool:
        """Whether all compilations for the last candidate have ended; a running one would take
        cores from the next one. Those of changes that come next go on.
        """
        return self._loaded.compilations_ended(COMPILATIONS_END_S, self._next_changes)

    def sanitize(self, job: Job, announce: Announce) -> Iterator[SanitizedCase] | None:
        """Read the PTX of every case and begin to compile it; return checked mode's results."""
        self._busiest.clear()
        self._wrong_call = None
        self._forget_other_than(job)
        self._compiled_unchecked.clear()
        for compiled in job.cases:
            # the candidate's own time, because its PTX may take long to read
            announce(f"reading the code of {shown(compiled)}", True)
            self._refuse_huge_variables(compiled)
        checked_mode = bool(self._checks) and job.checked
        if not checked_mode:
            for compiled in job.cases:
                self._compile_unchecked(compiled)
        if checked_mode or job.purpose not in (Purpose.outputs, Purpose.diagnosis):
            for compiled in job.cases:  # the time model counts accesses in checked mode
                self._loaded.prepare(compiled, checked=True)
        for compiled in job.upcoming:
            with contextlib.suppress(CandidateFailure):  # the case's own job ends with it
                self._loaded.prepare(compiled, checked=checked_mode or job.only_set is None)
        return self._follow_all(job, announce) if checked_mode else None

    def _forget_other_than(self, job: Job) -> None:
        """Closes the modules of another candidate, or of a job that ran more than checked mode.

        Cases that are only followed come one in a job; most share their code, as do the cases of
        jobs that compare one input set. The code of changes that come next is kept.
        """
        of_changes = {item.code_path for item in (*job.cases, *job.upcoming)}
        self._next_changes = of_changes if job.only_set is not None else frozenset()
        follows = job.purpose is Purpose.checked_mode
        followed = job.candidate if follows or job.only_set is not None else ""
        if not followed or followed != self._followed:
            self._loaded.forget(self._next_changes)
        if job.only_set is None:  # a candidate as it is: how far others ran does not bound changes
            self._instructions.clear()
            self._followed_rounds.clear()
        self._followed = followed

    def _refuse_huge_variables(self, compiled: CompiledCase) -> None:
        """Raises CannotLaunch where global variables do not fit into this machine's memory.

        Where NVRTC reports their size, it has been compared with the target's limit before.
        """
        size, free = self._loaded.variable_bytes(compiled), available_bytes()
        # twice, because a copy is kept while a launch is repeated
        if size > (free - SPARE_BYTES) // 2:
            raise CannotLaunch(
                f"global variables of {size} bytes do not fit into this machine's memory, of which"
                f" {free} are free"
            )

    def _follow_all(self, job: Job, announce: Announce) -> Iterator[SanitizedCase]:
        for compiled in job.cases:
            announce(f"following every access on {shown(compiled)}", True)
            if job.only_set is None:
                run = self._follow(compiled, job)
                is_slow = run.blocks < run.total_blocks and job.purpose is not Purpose.checked_mode
            else:
                run = self._follow_changed(compiled, job)
                is_slow = not run.findings  # and without checks, strays end no process
            if is_slow:
                self._compile_unchecked(compiled)
            yield SanitizedCase(compiled, run)

    def _compile_unchecked(self, compiled: CompiledCase) -> None:
        """Begins to compile the code without checks in the background: LLVM uses one core,
        launches use all.

        Cases that checked mode followed whole, and that share their code with no larger one,
        keep the checked code: compiling takes longer than running it.
        """
        self._compiled_unchecked.add(compiled.code_path)
        self._loaded.prepare(compiled, checked=False)

    def _follow(self, compiled: CompiledCase, job: Job) -> CheckedRun:
        """Checked mode on the first input set of a case, so that a fault is found every time."""
        examination, given = self._examination(compiled), self._sets(compiled)[0]
        if job.purpose is Purpose.checked_mode:
            given = _first_drawn(self._sets(compiled))
        with examination.first_call(given) as arena:
            return follow(self.task, examination.program, arena, self._checks)

    def _follow_changed(self, compiled: CompiledCase, job: Job) -> CheckedRun:
        """Checked mode on a changed kernel; one that fails, or that hardly ends, has a finding."""
        assert job.only_set is not None
        examination = self._examination(compiled, is_changed=True)
        given = self._compared_sets(compiled, job)[0]
        known = self._followed_rounds.get(compiled.plan.case)
        most = FEW_ROUNDS if known is None else max(LEAST_FOLLOWED, ROUNDS_OF_FOLLOWED * known)
        try:
            with examination.first_call(given) as arena:
                run = follow(
                    self.task, examination.program, arena, self._checks, min(most, FEW_ROUNDS)
                )
            self._followed_rounds.setdefault(compiled.plan.case, examination.program.most_rounds)
            return run
        except EmulatorFailure:
            raise
        except CandidateFailure as failure:
            return CheckedRun(
                checks=self._checks, blocks=0, total_blocks=0, findings=(str(failure),)
            )

    def time(self, job: Job, announce: Announce) -> Iterator[TimedCase]:
        """Model the time of every case that is not hidden, on the set with the most work."""
        for compiled in job.cases:
            if not compiled.plan.hidden:
                announce(f"modelling {shown(compiled)}", True)
                floors = floors_of(
                    self.task, compiled.plan.case, job.tier, modelled_peaks(self.emulator.target)
                )
                floor = {"floor_us": floors.scored(self.task).us}
                yield TimedCase(compiled, model=self._model(compiled).model_copy(update=floor))

    def _model(self, compiled: CompiledCase) -> CaseModel:
        busiest = self._busiest[compiled.plan.case]
        examination = self._examination(compiled)
        with examination.first_call(self._sets(compiled)[busiest.number]) as arena:
            return model_case(
                examination.program,
                arena,
                written_by(self.task, compiled.plan),
                busiest.reports,
                self.emulator.target,
                cold=self.task.objective.cache == "cold",
            )

    def _sets(self, compiled: CompiledCase) -> tuple[SecretSet, ...]:
        return secret_sets(self.task, compiled.plan.case, self._secret)

    def _compared_sets(self, compiled: CompiledCase, job: Job) -> tuple[SecretSet, ...]:
        """The sets whose outputs a job compares: all, or the one that it asks for."""
        sets = self._sets(compiled)
        return sets if job.only_set is None else (sets[job.only_set % len(sets)],)

    def _examination(self, compiled: CompiledCase, is_changed: bool = False) -> EmulatedExamination:
        """Of a changed kernel endless loops end soon, and strays end no process."""
        most = self._rounds_of_changed(compiled.plan.case) if is_changed else None
        program = self._program(compiled, most)
        return EmulatedExamination(
            self.task, self.expected_outputs, self.emulator, program, strays=is_changed
        )

    def _program(self, compiled: CompiledCase, max_rounds: int | None = None) -> EmulatedProgram:
        elements = sum(
            math.prod(shape)
            for _, shape in layout_of(self.task, compiled.plan, scratch=False).values()
        )
        rounds = self.task.limits.emulator_rounds * elements
        return self._loaded.program(compiled, rounds, max_rounds)

    def baselines(self, case: str) -> BaselineTimes:
        return BaselineTimes(
            median_us={},
            problems=dict.fromkeys(
                self.task.baselines, "times are modelled here: there is nothing to compare with"
            ),
        )

    def gpu_state(self) -> None:
        """None: there is no GPU."""

    def activity(self, job: Job, announce: Announce) -> tuple[KernelActivity, ...]:
        raise NoActivity("times are modelled here: no kernel runs on a GPU")


def _first_drawn(sets: Sequence[SecretSet]) -> SecretSet:
    """The first set whose inputs need no reference: the factor of `extreme` ones follows from it,
    which may take minutes.
    """
    return next((given for given in sets if given.distribution != "extreme"), sets[0])


def busiest(found: Sequence[ExaminedSet]) -> ExaminedSet:
    """The first set, so that the same one is modelled every time, unless another has more work."""
    most = max(found, key=lambda item: item.instructions)
    return most if most.instructions > MORE_WORK * found[0].instructions else found[0]
