"""Grader and runner in one process on a real GPU, for tests that look inside."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path

import cupy
import torch

from evoengine.evaluate.cuda_driver import cuda_facts
from evoengine.evaluate.worker.cuda.baselines import Baselines
from evoengine.evaluate.worker.cuda.dealing import drawn
from evoengine.evaluate.worker.cuda.examination import Examination, Examined
from evoengine.evaluate.worker.cuda.gpu_harness import GpuHarness
from evoengine.evaluate.worker.cuda.harness.runner_messages import (
    AnyRequest,
    Load,
    Profile,
    Replay,
    Result,
    Served,
    Unload,
)
from evoengine.evaluate.worker.cuda.input_pool import InputPool, PoolSet
from evoengine.evaluate.worker.cuda.pair_client import PairClient
from evoengine.evaluate.worker.cuda.runner.replayer import Replayer
from evoengine.evaluate.worker.cuda.runner_client import RunnerClient
from evoengine.evaluate.worker.cuda.slots import Slot
from evoengine.evaluate.worker.expected_outputs import ExpectedOutputs
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.protocols import CompiledCase
from evoengine.task.load import load_task
from tests.evaluate.worker.cuda.gpu_candidates import IN_THE_LAB, TIMED
from tests.evaluate.worker.cuda.test_gpu_candidates import TASK, compile_all

# `twin` launches the machine code of the honest candidate by CuPy, as a baseline.
FUNCTIONS = """
import cupy, numpy, torch
from evoengine.evaluate.worker.cuda.gpu_harness import as_cupy

CODE = r'''TWIN'''
kernels = {}

def forward(x):
    return x * 2

def twin(x):
    out = torch.empty_like(x)
    if not kernels:
        kernels["twin"] = cupy.RawKernel(CODE, "scale")
        kernels["stream"] = as_cupy(torch.cuda.current_stream())
    blocks = 8 * torch.cuda.get_device_properties(0).multi_processor_count
    arguments = (numpy.uintp(x.data_ptr()), numpy.uintp(out.data_ptr()), numpy.int32(x.numel()))
    with kernels["stream"]:
        kernels["twin"]((blocks,), (256,), arguments)
    return out
"""


class LocalRunner(RunnerClient):
    """A runner in this process; no candidate of it may break the context."""

    def __init__(self) -> None:
        self.replayer = Replayer(0)
        self._known = set()

    def wait(self) -> None:
        pass

    def drop(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            if number in self._known:
                address, _ = self.replayer._slots.pop(number)
                self.replayer._range.unmap(address)
        self._known.difference_update(numbers)

    def map(self, slots: Iterable[Slot]) -> None:
        for slot in slots:
            if slot.number not in self._known:
                address = self.replayer._range.map(slot.memory)
                self.replayer._slots[slot.number] = address, slot.memory
                self._known.add(slot.number)

    def _ask(self, message: AnyRequest, descriptors: Sequence[int] = ()) -> Result:
        match message:
            case Load():
                self.replayer.load(message)
            case Replay():
                replayed = self.replayer.replay(message)
                self.replayer.reload()
                return replayed
            case Profile():
                profiled = self.replayer.profile(message)
                self.replayer.reload()
                return profiled
            case Unload():
                return Served(free_bytes=self.replayer.unload())
        return Served()


class Lab:
    """One GPU with a pool, baselines and a runner; the task is `scale`, out = 2 x."""

    def __init__(self, folder: Path) -> None:
        (folder / "scale.yaml").write_text(TASK)
        (folder / "scale.py").write_text(
            FUNCTIONS.replace("TWIN", TIMED["honest"].partition("*/")[2])
        )
        self.task = load_task(folder / "scale.yaml")
        cupy.cuda.Device(0).use()
        self.stream = torch.cuda.Stream(0)
        torch.cuda.set_stream(self.stream)
        self.harness = GpuHarness(0, self.stream)
        self.functions = TaskFunctions(self.task, folder / "scale.yaml")
        device = torch.device("cuda", 0)
        expected = ExpectedOutputs(self.task, self.functions, device)
        self.pool = InputPool(self.task, expected, lambda: None)
        self.baselines = Baselines(self.harness, self.task, self.functions, self.pool)
        self.runner = LocalRunner()
        found = asyncio.run(compile_all(folder / "scale.yaml", cuda_facts(0).arch, IN_THE_LAB))
        self._compiled = {
            (name, case.plan.case): case for name, one in found.items() for case in one.cases
        }

    def compiled(self, name: str, case: str) -> CompiledCase:
        """One of IN_THE_LAB for one case."""
        return self._compiled[name, case]

    def examine(self, name: str, case: str = "large") -> Examination:
        """One of IN_THE_LAB, loaded."""
        compiled = self.compiled(name, case)
        runners = PairClient(self.runner, None)
        return Examination(self.harness, runners, self.task, compiled, "fp32")

    def replay(self, name: str, cold: bool, count: int, case: str = "large") -> Examined:
        """One replay with so many timed calls, and one untimed one before."""
        return self.examine(name, case).replay(self.drawn(1 + count, case), cold)

    def drawn(self, count: int, case: str = "large") -> list[PoolSet]:
        """Different sets of a case."""
        return drawn(self.pool.sets(case), count)

    def close(self) -> None:
        """Other tests find torch as they left it."""
        torch.cuda.synchronize()
        torch.cuda.set_stream(torch.cuda.default_stream())
