"""Times one candidate paired with one baseline on one case, and checks the timed outputs."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from functools import partial

import torch

from evoengine.errors import TaskError
from evoengine.evaluate.worker.arena import Arena, Layout
from evoengine.evaluate.worker.candidate_failures import CannotLaunch, Cheated
from evoengine.evaluate.worker.check import compare_outputs, layout_of
from evoengine.evaluate.worker.cuda.cuda_launch import CUDA_ERRORS, CudaProgram, translate
from evoengine.evaluate.worker.cuda.timing import (
    Call,
    Flusher,
    Side,
    calls_per_sample,
    estimate_us,
    measure,
)
from evoengine.evaluate.worker.expected_outputs import ExpectedOutputs
from evoengine.evaluate.worker.inputs import Tensors, make_inputs
from evoengine.protocols import CompiledCase
from evoengine.records import CaseTiming, InputSetCheck
from evoengine.task.schema import Task

# calls of one sample alternate between them, so that the outputs of the call before are never
# right
INPUT_SETS = 2
MAX_OUTPUT_BYTES = 512 * 1024**2  # outputs and scratch of one sample, separate for each call
DISTRIBUTION = "normal"


class PairedTiming:
    """Times a checked candidate, its code loaded anew, on inputs of random seeds.

    A candidate cannot have seen these inputs before.
    """

    def __init__(
        self,
        task: Task,
        expected_outputs: ExpectedOutputs,
        flusher: Flusher,
        compiled: CompiledCase,
        baseline: str,
    ) -> None:
        """Prepares the baseline, which may compile first; no code of the candidate runs yet."""
        self.task = task
        self.expected_outputs = expected_outputs
        self.flusher = flusher
        self.case = compiled.plan.case
        self.compiled = compiled
        self.seeds = [1000 + secrets.randbelow(2**30) for _ in range(INPUT_SETS)]
        self.inputs: list[Tensors] = [
            make_inputs(task, self.case, DISTRIBUTION, seed, expected_outputs.device)
            for seed in self.seeds
        ]
        self.layout = layout_of(task, compiled.plan)
        self.shared: list[Arena] = []  # the candidate's inputs, by input set
        # its outputs and scratch, by call; the last arena is for cold samples
        self.arenas: list[Arena] = []
        self.baseline = baseline
        self._baseline_side = self._prepare_baseline(task.baselines[baseline])

    def run(self) -> CaseTiming:
        """Hot and cold samples of both sides, in microseconds a call; raises CandidateFailure."""
        try:
            hot_side, cold_side = self._prepare_candidate()
            budget_s = self.task.limits.timing_ms / 1000
            hot = measure(hot_side, self._baseline_side, budget_s)
            cold = measure(cold_side, self._baseline_side, budget_s, self.flusher)
        except CUDA_ERRORS as error:
            raise translate(error) from None
        except TaskError as error:
            raise _no_memory(error) from None
        return CaseTiming(case=self.case, baseline=self.baseline, hot=hot, cold=cold)

    def check_outputs(self, tier: str) -> list[InputSetCheck]:
        """The comparison of the outputs of the last timed launches, one for each hot call and one
        for the cold one; raises Cheated.
        """
        self._refuse_stray_writes()
        checks = []
        try:
            expected = [
                self.expected_outputs.get_uncached(self.case, DISTRIBUTION, seed)
                for seed in self.seeds
            ]
        except TaskError as error:
            raise _no_memory(error) from None
        for index, arena in enumerate(self.arenas):
            turn = index % INPUT_SETS
            outputs = {name: arena.tensors[name] for name in self.task.outputs}
            checks.append(
                compare_outputs(
                    outputs, expected[turn], tier, f"timed {DISTRIBUTION}", self.seeds[turn]
                )
            )
        return checks

    def _refuse_stray_writes(self) -> None:
        """Compares inputs bit for bit, and the guard zones around all buffers, as a check does.

        The inputs are made again for it, because the baseline may have written into the first
        ones.
        """
        for arena, seed in zip(self.shared, self.seeds, strict=True):
            for name, value in make_inputs(
                self.task, self.case, DISTRIBUTION, seed, self.expected_outputs.device
            ).items():
                if bool(arena.differs(name, value)):
                    raise Cheated(f"input {name!r} was overwritten in a timed launch")
        if any(bool(arena.guards_broken()) for arena in (*self.shared, *self.arenas)):
            raise Cheated("memory outside the buffers was written in a timed launch")

    def _prepare_candidate(self) -> tuple[Side, Side]:
        """The candidate's sides for hot and for cold samples: calls that share the input buffers in
        turn, each with its own outputs and scratch.
        """
        program = CudaProgram(self.compiled)
        own = {name: entry for name, entry in self.layout.items() if name not in self.inputs[0]}
        for tensors in self.inputs:
            arena = Arena(
                {name: self.layout[name] for name in tensors}, self.expected_outputs.device
            )
            arena.fill(tensors)
            self.shared.append(arena)
        first = self._add_call(program, own)
        rest = [self._add_call(program, own) for _ in range(self._count(estimate_us(first)))]
        calls: list[Call] = [first, *rest]
        resets: list[Call] = [partial(arena.poison, list(own)) for arena in self.arenas]
        return Side(calls[:-1], resets[:-1]), Side(calls[-1:], resets[-1:])

    def _add_call(self, program: CudaProgram, own: Layout) -> Callable[[], None]:
        """One more call of the candidate, with its own arena for outputs and scratch."""
        inputs = self.shared[len(self.arenas) % INPUT_SETS]
        written = Arena(own, self.expected_outputs.device)
        written.poison(list(own))
        self.arenas.append(written)
        pointers = {
            name: arena.pointer(name) for arena in (inputs, written) for name in arena.tensors
        }
        return program.prepare(pointers, torch.cuda.current_stream())

    def _prepare_baseline(self, function: str) -> Side:
        """The baseline's side; its time is estimated on other inputs, so that no outputs for the
        timed ones are left in memory.
        """
        bind = partial(self.expected_outputs.functions.bind, function, case=self.case)
        spare = make_inputs(
            self.task, self.case, DISTRIBUTION, self.task.seeds[0], self.expected_outputs.device
        )
        with self.expected_outputs.functions.running(function, self.case):
            count = self._count(estimate_us(bind(tensors=spare)))
        bound = [self._announced(function, bind(tensors=tensors)) for tensors in self.inputs]
        return Side([bound[index % INPUT_SETS] for index in range(count)], [])

    def _announced(self, function: str, call: Call) -> Call:
        """`call`, charged to its function although it is captured while the candidate is timed."""

        def work() -> object:
            with self.expected_outputs.functions.running(function, self.case):
                return call()

        return work

    def _count(self, call_us: float) -> int:
        """The number of calls of a sample, limited by the memory for their outputs and scratch."""
        written = [entry for name, entry in self.layout.items() if name not in self.inputs[0]]
        outputs = sum(math.prod(shape) * dtype.itemsize for dtype, shape in written)
        return max(1, min(calls_per_sample(call_us), MAX_OUTPUT_BYTES // max(1, outputs)))


def _no_memory(error: TaskError) -> TaskError | CannotLaunch:
    """`error`, or CannotLaunch if a function that worked before runs out of memory beside the
    candidate's buffers.
    """
    return (
        CannotLaunch(str(error))
        if isinstance(error.__cause__, torch.cuda.OutOfMemoryError)
        else error
    )
