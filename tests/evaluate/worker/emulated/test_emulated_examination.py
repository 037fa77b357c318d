"""Replays on the emulator: what a call leaves behind, or puts off, is wrong in another call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from evoengine.candidate.binding import BoundLaunch, BufferArgument, CasePlan
from evoengine.emulator.device import Emulator
from evoengine.emulator.front.clang import compile_cuda
from evoengine.evaluate.worker.emulated.emulated_backend import busiest
from evoengine.evaluate.worker.emulated.emulated_examination import (
    EmulatedExamination,
    ExaminedSet,
    split,
)
from evoengine.evaluate.worker.emulated.emulated_program import LoadedModule
from evoengine.evaluate.worker.emulated.secret_sets import secret_sets
from evoengine.evaluate.worker.expected_outputs import ExpectedOutputs
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.protocols import CompiledCase
from tests.evaluate.worker.shrunken import CPU
from tests.small import small_task

TASK = small_task(distributions=("normal", "wide", "outliers"))
SETS = secret_sets(TASK, "plain", "secret")
ELEMENTS = 64 * 96
LAUNCH = BoundLaunch(
    kernel="k",
    grid=(ELEMENTS // 256,),
    block=(256,),
    shared_bytes=0,
    args=(BufferArgument(buffer="x"), BufferArgument(buffer="out")),
)
PLAN = CasePlan(case="plain", hidden=False, macros={}, scratch={}, launches=(LAUNCH,))
CODE = """GLOBALS
extern "C" __global__ void k(const float* x, float* out) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    BODY
}
"""
# Ends every call: the last block to get here counts it, and resets the count of blocks.
COUNT = """
    __syncthreads();
    if (threadIdx.x == 0 && atomicAdd(&blocks, 1) == gridDim.x - 1) { blocks = 0; ++calls; }"""
GLOBALS = (
    "__device__ unsigned blocks, calls; __device__ const float* xs[8]; __device__ float* outs[8];"
)


@contextmanager
def examination(folder: Path, body: str, variables: str = GLOBALS) -> Iterator[EmulatedExamination]:
    """That of a kernel with a thread for each element; it is to double x."""
    (folder / "scale_rows.py").write_text("def forward(x):\n    return x * 2\n")
    source = CODE.replace("GLOBALS", variables).replace("BODY", body)
    compiled = compile_cuda(source, name="k.cu", macros={}, arch="sm_89", kernels=["k"])
    (folder / "k.ptx").write_text(compiled.ptx)
    case = CompiledCase(
        plan=PLAN, code_path=str(folder / "k.ptx"), functions=dict(compiled.functions)
    )
    emulator = Emulator("l4", threads=1)
    expected = ExpectedOutputs(TASK, TaskFunctions(TASK, folder / "t.yaml"), CPU)
    try:
        program = LoadedModule(emulator, lambda: None).program(case, rounds=2.0**30)
        yield EmulatedExamination(TASK, expected, emulator, program)
    finally:
        emulator.close()


def wrong_sets(folder: Path, body: str, variables: str = GLOBALS) -> int:
    """The number of sets on which a kernel is wrong."""
    with examination(folder, body, variables) as made:
        return sum(not item.check.ok for item in made.check(SETS, "fp32", None))


@pytest.mark.parametrize(
    "body",
    [
        "out[i] = 2.0f * x[i];",
        "__shared__ float tile[256]; tile[threadIdx.x] = x[i]; __syncthreads();"
        " out[i] = 2.0f * tile[threadIdx.x];" + COUNT,
        "out[i] = (calls ? 2.0f : 2.0f) * x[i];" + COUNT,
    ],
    ids=["plain", "shared memory", "counts its calls"],
)
def test_an_honest_kernel_is_right_on_every_set(tmp_path: Path, body: str) -> None:
    for _ in range(3):
        assert wrong_sets(tmp_path, body) == 0


@pytest.mark.parametrize(
    "body",
    [
        "if (calls == 0) out[i] = 2.0f * x[i];" + COUNT,
        "if (calls > 0) out[i] = 2.0f * x[i];" + COUNT,
        # the first call is left to the second one, which does the work of both
        "xs[calls] = x; outs[calls] = out; __syncthreads();"
        " if (calls) { out[i] = 2.0f * x[i]; outs[0][i] = 2.0f * xs[0][i]; }" + COUNT,
        # the second call copies what the first one wrote
        "if (calls) { out[i] = outs[0][i]; } else { out[i] = 2.0f * x[i]; outs[0] = out; }" + COUNT,
    ],
    ids=["only the first call", "only later calls", "puts a call off", "copies a call"],
)
def test_a_kernel_that_tells_calls_apart_is_wrong_every_time(tmp_path: Path, body: str) -> None:
    for _ in range(5):
        assert wrong_sets(tmp_path, body)


def test_variables_have_their_first_values_in_every_replay(tmp_path: Path) -> None:
    variables = GLOBALS + "__device__ float factor = 2.0f; static __device__ float twice = 1.0f;"
    body = "out[i] = factor * twice * x[i];" + COUNT
    last = " if (calls == 2 && threadIdx.x == 0) { factor = 3.0f; twice = 5.0f; }"
    # in the replay with two calls, the second one spoils what the other replay would find
    for _ in range(5):
        assert wrong_sets(tmp_path, body + last, variables) == 0


@pytest.mark.parametrize(
    "body",
    [
        "__shared__ volatile float old[256]; float v = old[threadIdx.x];"
        " out[i] = v == v ? v : 2.0f * x[i]; old[threadIdx.x] = 2.0f * x[i];",
        "volatile float old[4]; float v = old[i & 3];"
        " out[i] = v == v ? v : 2.0f * x[i]; old[i & 3] = 2.0f * x[i];",
    ],
    ids=["shared memory", "local memory"],
)
def test_memory_on_the_chip_holds_another_pattern_in_some_replay(tmp_path: Path, body: str) -> None:
    for _ in range(3):
        assert wrong_sets(tmp_path, body)


def test_every_call_has_other_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []
    with examination(tmp_path, "out[i] = 2.0f * x[i];") as made:
        run = made.program.run

        def noted(launch: BoundLaunch, pointers: dict[str, int], *rest: object) -> object:
            found.extend(pointers.values())
            return run(launch, pointers, *rest)  # type: ignore[arg-type]

        monkeypatch.setattr(made.program, "run", noted)
        for _ in range(3):
            made.check(SETS, "fp32", None)
    assert len(found) == len(set(found)) == 3 * len(SETS) * 2
    assert len({later - earlier for earlier, later in pairwise(found)}) == len(found) - 1


@pytest.mark.parametrize("count", [3, 4, 5, 9])
def test_one_replay_has_one_call_and_another_has_several(count: int) -> None:
    sets = secret_sets(
        small_task(distributions=["normal"], seeds=tuple(range(count))), "plain", "secret"
    )
    splits = [split(sets, 12) for _ in range(200)]
    for replays in splits:
        sizes = [len(replay) for replay in replays]
        assert sum(sizes) == count and 1 in sizes and max(sizes) >= 2
    assert len({tuple(len(replay) for replay in replays) for replays in splits}) >= 2


def test_buffers_that_fit_once_get_replays_of_one_call() -> None:
    assert [len(replay) for replay in split(SETS, 1)] == [1] * len(SETS)


def test_the_first_set_is_modelled_unless_another_has_more_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def chosen(*counts: int) -> int:
        monkeypatch.setattr(ExaminedSet, "instructions", property(lambda item: counts[item.number]))
        sets = [ExaminedSet(number, None, ()) for number in range(len(counts))]  # type: ignore[arg-type]
        return busiest(sets).number

    assert (chosen(1000, 1001, 990), chosen(1000, 1001, 2000), chosen(5, 5, 5)) == (0, 2, 0)
