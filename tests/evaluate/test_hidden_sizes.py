"""Candidates that ask for the size of a hidden case: nothing that a generator reads answers.

Every candidate is judged in two tasks that differ in the hidden size alone. What a generator could
read must be the same to the letter in both, and hold neither size.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from evoengine.candidate import kernel_file
from evoengine.evaluate.compile.pool import CLANG, CompilePool
from evoengine.evaluate.cuda_driver import cuda_devices
from evoengine.evaluate.device.grader_device import cuda_device
from evoengine.evaluate.device.worker_device import emulator_device
from evoengine.evaluate.local_executor import LocalExecutor
from evoengine.generate import parsed_reply
from evoengine.generate.operators import OperatorChoice
from evoengine.generate.prompt_templates import Prompts
from evoengine.protocols import Evaluated, Request
from evoengine.records import Elite, Proposal, Reply, Status, Verdict, outcome_of
from evoengine.task.load import load_task

SIZES = (1777, 1789)
ASKED = range(1760, 1800)  # both sizes are among them
HIDDEN_NAME = "zq_secret"
# Sizes, last indices, bytes, and hexadecimal, as far as they are no other words of a prompt.
TELLING = [
    text
    for size in SIZES
    for number in (size, size - 1, 4 * size, 4 * size - 4)
    for text in (str(number), f"0x{number:x}")
]

TASK = """\
name: doubled
reference: doubled.py:forward
dims: {N: int}
inputs:
  x: {shape: [N], dtype: float32}
outputs:
  out: {shape: [N], dtype: float32}
cases:
  plain: {N: 64}
  second: {N: 321}
hidden_cases:
  NAME: {N: SIZE}
tiers:
  fp32: {atol: 1e-6, rel_rmse: 1e-6}
objective: {cases: [plain]}
baselines: {torch.mul: doubled.py:forward}
budget: {trials: 8}
limits: {scratch: 64KiB}
"""

SOURCE = """\
/* evoengine
name: probe
precision: fp32
HEADER
launches:
  - kernel: KERNEL
    grid: ["GRID"]
    block: [BLOCK]
    shared: SHARED
    args: [x, out, N]
*/
TOP
__global__ void doubled(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    BEFORE
    if (i < n) out[i] = 2 * x[i];
    AFTER
}
"""


@dataclass(frozen=True)
class Probe:
    """A candidate that fails in the hidden case alone, in a way that could tell its size."""

    status: Status
    header: str = ""
    kernel: str = "doubled"
    grid: str = "ceil_div(N, 64)"
    block: str = "64"
    shared: str = "0"
    top: str = ""
    before: str = ""
    after: str = ""
    checked: bool = True  # in checked mode

    @property
    def source(self) -> str:
        text = SOURCE
        for name in ("header", "kernel", "grid", "block", "shared", "top", "before", "after"):
            text = text.replace(name.upper(), getattr(self, name))
        return text


def each(line: str) -> str:
    """`line` for every size that is asked for, each on a line of its own."""
    return "\n".join(line.replace("@", str(size)) for size in ASKED)


NN = "constants: {NN: N}"
PROBES = {
    "requirements": Probe(Status.rejected, header="require:\n" + each("  - N != @")),
    "a division by zero": Probe(
        Status.rejected, header="let:\n  q: " + " + ".join(f"1//(N-{size})" for size in SIZES)
    ),
    "a power": Probe(Status.rejected, header="let:\n  q: 2**N if N > 1000 else 1"),
    "a fraction": Probe(Status.rejected, grid="ceil_div(N, 64) if N < 1000 else N / 1000"),
    "scratch": Probe(Status.over_limits, header="scratch:\n  s: {dtype: float64, shape: [16 * N]}"),
    "threads": Probe(Status.over_limits, block="64 if N < 1000 else N"),
    "dynamic shared memory": Probe(Status.over_limits, shared="300 * N"),
    "a name": Probe(
        Status.rejected,
        kernel="doubled<" + ", ".join(["N**5 if N > 1000 else 1"] * 60) + ">",
        top="template <long long... V>",
    ),
    "an error directive": Probe(
        Status.compile_error, header=NN, top=each("#if NN == @\n#error it is @\n#endif")
    ),
    "an assertion of the compiler": Probe(
        Status.compile_error, header=NN, top='static_assert(NN < 1000, "too large");'
    ),
    "a template argument": Probe(
        Status.compile_error,
        kernel="doubled<N>",
        top="template <int SIZE>",
        before='static_assert(SIZE < 1000, "too large");',
    ),
    "static shared memory": Probe(
        Status.over_limits,
        header=NN,
        before="__shared__ float t[30 * NN]; t[i] = x[i]; if (n < 0) out[0] = t[n + 70];",
    ),
    "stack": Probe(
        Status.over_limits,
        header=NN,
        before="float t[3 * NN]; for (int j = 0; j < n; ++j) t[j * 7 % NN] = x[j];",
        after="if (n < 0) out[1] = t[-n];",
    ),
    "global variables": Probe(
        Status.rejected, header=NN, top="__device__ float kept[20 * NN];", after="kept[i] = 1;"
    ),
    "symbols": Probe(
        Status.rejected,
        header=NN,
        top="#if NN > 1000\n#define HEAP if (n < 0) out[0] = *(float*)malloc(n);\n#else\n"
        "#define HEAP\n#endif",
        before="HEAP",
    ),
    "parameters": Probe(
        Status.rejected,
        header=NN,
        top="#if NN > 1000\n#define doubled(...) doubled(__VA_ARGS__, int more)\n#endif",
    ),
    "registers": Probe(
        Status.over_limits,
        header=NN,
        block="64 if N < 1000 else 1024",
        before="float r[200];\n#pragma unroll\nfor (int j = 0; j < 200; ++j) r[j] = x[j * n];\n"
        "__syncthreads();",
        after="if (n < 0) {\n#pragma unroll\nfor (int j = 0; j < 200; ++j) out[j] = r[j] / r[9];}",
    ),
    "a printed size": Probe(
        Status.wrong_result,
        before='if (n > 1000 && i == 0) printf("N=%d S%dx\\n", n, n);',
        after="if (n > 1000 && i == 5) out[i] = 0;",
    ),
    "a printed size in every case": Probe(
        Status.wrong_result,
        before='if (i == n - 1) printf("N=%d S%dx\\n", n, n);',
        after="if (n > 1000 && i == 5) out[i] = 0;",
    ),
    "an assertion": Probe(Status.crash, top="#include <assert.h>", before=each("assert(n != @);")),
    "a trap": Probe(Status.crash, before=each("if (n == @) __trap();")),
    "an endless loop": Probe(
        Status.timeout, before="while (n > 1000) { if (((volatile float*)x)[0] > 1e30f) break; }"
    ),
    "an index": Probe(Status.fault, after="if (n > 1000 && i == 0) out[n + n] = 1;"),
    "a line": Probe(Status.fault, after=each("if (n == @ && i == 0) out[-1] = 1;")),
    "an address": Probe(
        Status.fault, after="if (n > 1000 && i == 0) ((float*)(size_t)(n * 4096ll))[0] = 1;"
    ),
    "an index where nobody shows the case": Probe(
        Status.fault, after="if (n != 64 && n != 321 && i == 0) out[n + n] = 1;"
    ),
    "an index that is kept for a small case": Probe(
        Status.fault,
        top="__device__ int kept = 7;",
        after="if (n > 1000 && i == 0) { kept = n; out[n + n] = 1; }\n"
        "if (n == 201 && i == 0) out[n + kept] = 1;",
    ),
    "a race": Probe(
        Status.fault,
        before="__shared__ float t[64]; t[threadIdx.x] = x[i % n]; if (n < 1000) __syncthreads();"
        " if (i < n) out[i] = t[(threadIdx.x + n) % 64];",
    ),
    "an uninitialised read": Probe(
        Status.fault,
        before="__shared__ float t[2000]; if (n < 1000 && threadIdx.x == 0) t[n] = 1;",
        after="__syncthreads(); if (i == 0) out[1] = t[n];",
    ),
    "an error": Probe(Status.wrong_result, after="if (n > 1000 && i == 5) out[i] = n;"),
    "a count": Probe(
        Status.wrong_result, after="if (n > 1000 && i < n - 1700) out[i] = 0.0f / 0.0f;"
    ),
    "an index that is wrong": Probe(
        Status.wrong_result, after="if (n > 1000 && i == n - 1) out[i] = 1e9f;"
    ),
    "a written input": Probe(
        Status.cheat, after="if (n > 1000 && i == n - 1) ((float*)x)[i] = n;", checked=False
    ),
    "guards": Probe(Status.cheat, after="if (n > 1000 && i == 0) out[n + 9] = n;", checked=False),
    "an address, unchecked": Probe(
        Status.crash,
        after="if (n > 1000 && i == 0) ((float*)(size_t)(n * 4096ll))[0] = 1;",
        checked=False,
    ),
    "resources of a right kernel": Probe(
        Status.correct, kernel="doubled<N>", shared="4*N", top="template <int SIZE>"
    ),
    "messages of the compiler": Probe(
        Status.correct, header=NN, top=each('#if NN == @\n#pragma message "it is @"\n#endif')
    ),
}

# a write beyond the output hits a guard or no page at all, as its buffer is dealt for a verdict
STRAY = "an index"


class Judged:
    """One task with an executor that serves all tests."""

    def __init__(self, folder: Path, size: int, on_gpu: bool = False) -> None:
        folder.mkdir()
        (folder / "doubled.py").write_text("def forward(x):\n    return x * 2\n")
        self.path = folder / "doubled.yaml"
        self.path.write_text(TASK.replace("NAME", HIDDEN_NAME).replace("SIZE", str(size)))
        self.task = load_task(self.path)
        checks, answers = ("races", "bounds", "init"), folder / "answers"
        device = cuda_device(0) if on_gpu else emulator_device("l4", checks, answers, threads=1)
        nvrtc = CompilePool(1, folder / "cubin")
        clang = None if on_gpu else CompilePool(1, folder / "ptx", module=CLANG)
        self.executor = LocalExecutor(self.task, str(self.path), nvrtc, device, clang=clang)
        self.runner = asyncio.Runner()
        self.environment = self.runner.run(self.executor.start()).environment

    def verdict(self, probe: Probe) -> Verdict:
        candidate = kernel_file.parse(probe.source, "trial 1")
        verify = not probe.checked
        return self.runner.run(self.executor.evaluate(candidate, lambda _: None, verify))

    def readable(self, probe: Probe, verdict: Verdict) -> str:
        """All that a generator can read of a verdict: every prompt, and the text behind them."""
        proposal = Proposal(operator="first", source=probe.source, label="probe")
        outcome = outcome_of(1, proposal, verdict)
        evaluated = Evaluated(outcome, probe.source, verdict)
        elite = (Elite(tier="fp32", place=1, outcome=outcome), evaluated)
        request = Request(
            trial=2,
            seed=1,
            task=self.task,
            environment=self.environment.model_copy(update={"versions": {}}),
            seeds=(),
            elites=(elite,) if verdict.status is Status.correct else (),
            recent=(evaluated,),
            pending=_never,
            settled=2,
        )
        prompts = Prompts(self.path)
        parents = {"first": (), "mutate": (evaluated,), "crossover": (evaluated, evaluated)}
        texts = [
            prompts.render(OperatorChoice(operator, "fp32", chosen), request).text
            for operator, chosen in parents.items()
        ]
        reply = Reply(model="m", prompt="p", text=f"```cuda\n{probe.source}```\n")
        parsed = parsed_reply.read(reply, request, parsed_reply.refuse_nothing)
        told = [verdict.reason, verdict.detail, *verdict.target_exceeds, parsed.problem]
        return "\n".join([*texts, *told, *map(repr, verdict.resources)]).replace(probe.source, "")

    def close(self) -> None:
        self.runner.run(self.executor.close())
        self.runner.close()


async def _never(wanted: object) -> tuple[Proposal, ...]:
    raise AssertionError("nothing is in flight")


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Judged]]:
    folder = tmp_path_factory.mktemp("hidden")
    found = [Judged(folder / str(number), size) for number, size in enumerate(SIZES)]
    yield found
    for item in found:
        item.close()


@pytest.mark.sampled("name", one_in=3)
@pytest.mark.parametrize("name", PROBES)
def test_what_a_generator_reads_does_not_depend_on_a_hidden_size(
    judged: list[Judged], name: str
) -> None:
    probe = PROBES[name]
    verdicts = [item.verdict(probe) for item in judged]
    assert [item.status for item in verdicts] == [probe.status] * 2, [
        (item.reason, item.detail) for item in verdicts
    ]
    texts = [item.readable(probe, found) for item, found in zip(judged, verdicts, strict=True)]
    assert texts[0] == texts[1]
    assert not [word for word in (*TELLING, HIDDEN_NAME) if word in texts[0]]
    if probe.status is not Status.correct:
        assert verdicts[0].reason.partition(";")[0].endswith(" in a hidden case")
        assert verdicts[0].detail == ""


@pytest.mark.parametrize(
    ("name", "beyond"),
    [("an index where nobody shows the case", 201), ("an index that is kept for a small case", 7)],
)
def test_a_fault_in_a_hidden_case_is_told_of_a_small_one(
    judged: list[Judged], name: str, beyond: int
) -> None:
    """What it has noted in the hidden one is forgotten there."""
    verdict = judged[0].verdict(PROBES[name])
    assert verdict.reason == "out of bounds in a hidden case"
    assert verdict.forensics is not None and verdict.forensics.case == "second with N=201"
    (said,) = (item.sentence for item in verdict.forensics.diagnoses)
    assert f"writes 4 bytes at out+{4 * (201 + beyond)} at line " in said


@pytest.mark.gpu
@pytest.mark.timeout(1200)
@pytest.mark.skipif(not cuda_devices().names, reason="needs a CUDA device")
def test_no_text_of_a_gpu_depends_on_a_hidden_size(tmp_path: Path) -> None:
    """Statuses are those of a GPU, which finds no races: what the emulator refuses before it is run
    in a shown case may fail there, with figures of inputs that are drawn anew for every verdict.
    """
    found = [Judged(tmp_path / str(size), size, on_gpu=True) for size in SIZES]
    try:
        for name, probe in PROBES.items():
            verdicts = [item.verdict(probe) for item in found]
            told = [(item.status, without_figures(item.reason), item.detail) for item in verdicts]
            stray = {item.status for item in verdicts} == {Status.crash, Status.cheat}
            assert told[0] == told[1] or (stray and name == STRAY), name
            read = [(item.status, item.reason, item.detail, item.resources) for item in verdicts]
            assert not [word for word in (*TELLING, HIDDEN_NAME) if word in repr(read)]
    finally:
        for item in found:
            item.close()


def without_figures(reason: str) -> str:
    """A reason, without the figures of what was wrong in a shown case."""
    return re.sub("(?s)case plain: .*", "case plain", reason)
