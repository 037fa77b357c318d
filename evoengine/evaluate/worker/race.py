"""One candidate against one baseline on one case: fresh inputs, and the timed outputs are checked."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import partial

import torch

from evoengine.evaluate.worker.answers import Answers
from evoengine.evaluate.worker.arena import Arena, Layout
from evoengine.evaluate.worker.check import Cheated, judge, layout_of
from evoengine.evaluate.worker.inputs import Tensors, make_inputs
from evoengine.evaluate.worker.launch import CUDA_ERRORS, Program, translate
from evoengine.evaluate.worker.timing import Flusher, Side, calls_per_sample, estimate_us, measure
from evoengine.records import CaseTiming, InputSetCheck
from evoengine.seams import CompiledCase
from evoengine.task import Task

INPUT_SETS = 2  # calls of one sample alternate between them, so that no answer can be carried over
MAX_OUTPUT_BYTES = 512 * 1024**2  # the timed outputs of one sample, all kept apart
DISTRIBUTION = "normal"


class Race:
    """Times a checked candidate. Its inputs have seeds that nobody could know before."""

    def __init__(self, task: Task, answers: Answers, flusher: Flusher, compiled: CompiledCase) -> None:
        self.task = task
        self.answers = answers
        self.flusher = flusher
        self.case = compiled.plan.case
        self.compiled = compiled
        self.seeds = [1000 + secrets.randbelow(2**30) for _ in range(INPUT_SETS)]
        self.inputs: list[Tensors] = [make_inputs(task, self.case, DISTRIBUTION, seed, answers.device) for seed in self.seeds]
        self.shared: list[Arena] = []  # the candidate's inputs, by input set
        self.arenas: list[Arena] = []  # its outputs and scratch, by call

    def run(self, baseline: str) -> CaseTiming:
        """Hot and cold samples of both sides; raises Crashed or LaunchRefused."""
        try:
            candidate, opponent = self._candidate(), self._baseline(self.task.baselines[baseline])
            budget_s = self.task.limits.timing_ms / 1000
            hot = measure(candidate, opponent, budget_s)
            cold = measure(candidate, opponent, budget_s, self.flusher)
        except CUDA_ERRORS as error:
            raise translate(error) from None
        return CaseTiming(case=self.case, baseline=baseline, hot=hot, cold=cold)

    def verify(self, tier: str) -> list[InputSetCheck]:
        """The outputs that the timed launches left, each compared in full; raises Cheated."""
        checks = []
        answers = [self.answers.one_off(self.case, DISTRIBUTION, seed) for seed in self.seeds]
        for index, arena in enumerate(self.arenas):
            if bool(arena.guards_broken()):
                raise Cheated("memory outside the buffers was written in a timed launch")
            turn = index % INPUT_SETS
            outputs = {name: arena.tensors[name] for name in self.task.outputs}
            checks.append(judge(outputs, answers[turn], tier, f"timed {DISTRIBUTION}", self.seeds[turn]))
        return checks

    def _candidate(self) -> Side:
        """Calls that share input buffers by turns and have outputs and scratch of their own."""
        program = Program(self.compiled)
        layout = layout_of(self.task, self.compiled.plan)
        own = {name: entry for name, entry in layout.items() if name not in self.inputs[0]}
        for tensors in self.inputs:
            arena = Arena({name: layout[name] for name in tensors}, self.answers.device)
            arena.fill(tensors)
            self.shared.append(arena)
        first = self._add_call(program, own)
        rest = [self._add_call(program, own) for _ in range(self._count(estimate_us(first)) - 1)]
        return Side([first, *rest], [partial(arena.poison, list(own)) for arena in self.arenas])

    def _add_call(self, program: Program, own: Layout) -> Callable[[], None]:
        """One more call of the candidate, with an arena of its own for what it writes."""
        inputs, written = self.shared[len(self.arenas) % INPUT_SETS], Arena(own, self.answers.device)
        written.poison(list(own))
        self.arenas.append(written)
        pointers = {name: arena.pointer(name) for arena in (inputs, written) for name in arena.tensors}
        return program.prepare(pointers, torch.cuda.current_stream())

    def _baseline(self, function: str) -> Side:
        bound = [self.answers.functions.bind(function, tensors, self.case) for tensors in self.inputs]
        count = self._count(estimate_us(bound[0]))
        return Side([bound[index % INPUT_SETS] for index in range(count)], [])

    def _count(self, call_us: float) -> int:
        outputs = sum(spec.numel() * spec.element_size() for spec in self.arenas[0].tensors.values())
        return max(1, min(calls_per_sample(call_us), MAX_OUTPUT_BYTES // max(1, outputs)))
