"""Examines one candidate on one case: replays of a random number of calls, compared whole.

Each call has an input set of its own, at addresses of its own. Before each replay, global variables
have their first values at another address, and shared and local memory hold another pattern. All
outputs of all calls are compared after a replay, before the candidate's code runs again.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import torch

from evoengine.emulator.device import Checks, Emulator, LaunchReport
from evoengine.evaluate.worker.candidate_failures import Cheated
from evoengine.evaluate.worker.check import compare_outputs, layout_of, poisoned_for
from evoengine.evaluate.worker.emulated.checked_mode import instructions_of, lines_of
from evoengine.evaluate.worker.emulated.emulated_arena import EmulatedArena
from evoengine.evaluate.worker.emulated.emulated_program import EmulatedProgram
from evoengine.evaluate.worker.emulated.secret_sets import SecretSet
from evoengine.evaluate.worker.expected_outputs import ExpectedOutputs
from evoengine.evaluate.worker.forensics.launch_facts import Relaunch
from evoengine.evaluate.worker.forensics.wrong_call import WrongCall, plainness
from evoengine.records import EmulatedWork, InputSetCheck
from evoengine.task.schema import Task

# NaN in every floating type and -1 in integers; a large number or NaN, and large integers.
# Buffers are filled with one of them, shared and local memory with the other one.
PATTERNS = (0xFF, 0x7F)
REPLAY_BYTES = 4 << 30  # of buffers, for all calls of a replay


@dataclass(frozen=True)
class ExaminedSet:
    """One call: its comparison, and the reports of its launches."""

    number: int
    check: InputSetCheck
    reports: tuple[LaunchReport, ...]

    @property
    def instructions(self) -> int:
        """The instructions that warps ran in its launches."""
        return sum(instructions_of(report) for report in self.reports)

    @property
    def work(self) -> EmulatedWork:
        """The same, and of the warps that ran most."""
        longest = (int(report.warp_work.max(initial=0)) for report in self.reports)
        return EmulatedWork(
            instructions=self.instructions,
            of_longest_warps=sum(longest),
            lines=tuple(sorted(set().union(*map(lines_of, self.reports)))),
        )


class EmulatedExamination:
    """One candidate on one case."""

    def __init__(
        self,
        task: Task,
        expected_outputs: ExpectedOutputs,
        emulator: Emulator,
        program: EmulatedProgram,
        strays: bool = False,
    ) -> None:
        """`strays`: whether an access that strays ends no process, as for changed kernels."""
        self._task = task
        self._expected = expected_outputs
        self._emulator = emulator
        self.program = program
        self._strays = strays
        self._plan = program.compiled.plan
        self._layout = layout_of(task, self._plan)
        self.wrong_call: WrongCall | None = None  # the one with the plainest inputs
        self._launch_s = 0.0  # of the last replay, by call
        self._poisoned = poisoned_for(task, self._plan)

    def check(
        self, sets: Sequence[SecretSet], tier: str, checks: Checks | None
    ) -> list[ExaminedSet]:
        """Each of `sets` in one call; launches run under `checks`. Raises CandidateFailure."""
        sizes = (math.prod(shape) * dtype.itemsize for dtype, shape in self._layout.values())
        most = max(1, REPLAY_BYTES // max(1, sum(sizes)))
        found: list[ExaminedSet] = []
        pattern = secrets.choice(PATTERNS)
        for given in split(secrets.SystemRandom().sample(sets, len(sets)), most):
            found += self._replay(given, tier, checks, pattern)
            pattern = other(pattern)
        return sorted(found, key=lambda item: item.number)

    @property
    def scratch(self) -> tuple[str, ...]:
        """The scratch buffers that nothing fills before a call."""
        filled = {fill.buffer for fill in self._plan.fills}
        return tuple(name for name in self._plan.scratch if name not in filled)

    def relaunch(
        self,
        call: WrongCall,
        given: SecretSet,
        calls: int,
        poison: int,
        checks: Checks | None,
        scratch: str = "",
    ) -> Relaunch:
        """One replay of `calls` calls on the inputs of a wrong call, with `poison` in one scratch
        buffer alone where it is named; raises CandidateFailure.
        """
        of_all = call.poison if scratch else poison
        self.program.reset(of_all)
        with ExitStack() as stack:
            arenas = [stack.enter_context(self._dealt(given, of_all)) for _ in range(calls)]
            for arena in arenas:
                if scratch:
                    arena.poison([scratch], poison)
                self._launch(arena, checks)
            outputs = tuple(
                {name: arena.tensors[name].clone() for name in call.outputs} for arena in arenas
            )
        return Relaunch(outputs, poison, scratch)

    @contextmanager
    def first_call(self, given: SecretSet) -> Iterator[EmulatedArena]:
        """The buffers of a call that is the first of its replay."""
        pattern = secrets.choice(PATTERNS)
        self.program.reset(other(pattern))
        with self._dealt(given, pattern) as arena:
            yield arena

    @contextmanager
    def _dealt(self, given: SecretSet, pattern: int) -> Iterator[EmulatedArena]:
        """Buffers at new addresses: the inputs of a set, and poison in all others."""
        with EmulatedArena(self._layout, self._emulator) as arena:
            arena.fill(self._inputs(given))
            arena.poison(self._poisoned, pattern)
            arena.begin(self._plan.fills)
            yield arena

    def _replay(
        self, sets: Sequence[SecretSet], tier: str, checks: Checks | None, pattern: int
    ) -> list[ExaminedSet]:
        self.program.reset(other(pattern))
        with ExitStack() as stack:
            arenas = [stack.enter_context(self._dealt(given, pattern)) for given in sets]
            if self._strays:
                stack.enter_context(self._emulator.memory.surroundings())
            start = time.monotonic()
            reports = [self._launch(arena, checks) for arena in arenas]
            self._launch_s = (time.monotonic() - start) / len(sets)
            for given, arena in zip(sets, arenas, strict=True):
                self._refuse_stray_writes(given, arena)
            return [
                ExaminedSet(given.number, self._compare(given, arena, tier, pattern), found)
                for given, arena, found in zip(sets, arenas, reports, strict=True)
            ]

    def _launch(self, arena: EmulatedArena, checks: Checks | None) -> tuple[LaunchReport, ...]:
        pointers = arena.pointers
        return tuple(self.program.run(step, pointers, checks) for step in self._plan.launches)

    def _refuse_stray_writes(self, given: SecretSet, arena: EmulatedArena) -> None:
        for name, value in self._inputs(given).items():
            if name not in self._task.outputs and arena.differs(name, value):
                raise Cheated(f"input {name!r} was overwritten")
        if arena.guards_broken():
            raise Cheated("memory outside the buffers was written")

    def _compare(
        self, given: SecretSet, arena: EmulatedArena, tier: str, pattern: int
    ) -> InputSetCheck:
        expected = self._expected.get(self._plan.case, given.distribution, given.seed)
        outputs = {name: arena.tensors[name] for name in self._task.outputs}
        check = compare_outputs(outputs, expected, tier, given.distribution, given.number)
        if not check.ok and self._is_plainer(given.distribution):
            self.wrong_call = WrongCall(
                case=self._plan.case,
                distribution=given.distribution,
                number=given.number,
                inputs=self._inputs(given),
                outputs={name: value.clone() for name, value in outputs.items()},
                reference=expected.reference,
                gates=expected.gates[tier],
                poison=pattern,
                launch_s=self._launch_s,
            )
        return check

    def _is_plainer(self, distribution: str) -> bool:
        """Whether inputs of `distribution` are plainer than those of the wrong call so far."""
        known, order = self.wrong_call, self._task.distributions
        return known is None or plainness(distribution, order) < plainness(
            known.distribution, order
        )

    def _inputs(self, given: SecretSet) -> dict[str, torch.Tensor]:
        return self._expected.inputs(self._plan.case, given.distribution, given.seed)


def other(pattern: int) -> int:
    """The one of PATTERNS that is not `pattern`."""
    return PATTERNS[1 - PATTERNS.index(pattern)]


def split(sets: Sequence[SecretSet], most: int) -> list[list[SecretSet]]:
    """`sets` in replays of a random number of calls, `most` at most, in a random order.

    One replay has a single call and another has several, where `most` and the number of sets allow
    it: work that is left to a later call is then wrong, and so is what an earlier call left behind.
    """
    alone, *left = sets
    replays, least = [[alone]], 2
    while left:
        limit = min(len(left), most)
        least = min(least, limit)
        count = least + secrets.randbelow(limit - least + 1)
        replays.append(left[:count])
        left, least = left[count:], 1
    secrets.SystemRandom().shuffle(replays)
    return replays
