"""The layernorm kernel judged as torch extensions are.

`python -m benchmarks.extension --folder EMPTY_FOLDER` compiles it with
torch.utils.cpp_extension.load_inline into the folder, checks it on the same input
sets and against the same answers as evoengine does, and times it and its baseline with events.
Prints one JSON object: the seconds of start, compile, check and timing. The references are computed
before the clock runs, as a warm worker has them. Needs nvcc, ninja and a C++ compiler. Started by
benchmarks.verdict, in a process of its own because it imports torch.
"""

from __future__ import annotations

import time

STARTED = time.monotonic()

import argparse  # noqa: E402 - the clock first: importing torch is what it has to see
import json  # noqa: E402
import os  # noqa: E402
from collections.abc import Callable  # noqa: E402
from functools import partial  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import torch  # noqa: E402

from evoengine.candidate import kernel_file as candidates  # noqa: E402
from evoengine.candidate.kernel_file import Candidate  # noqa: E402
from evoengine.evaluate.worker.check import compare_outputs  # noqa: E402
from evoengine.evaluate.worker.expected_outputs import ExpectedOutputs  # noqa: E402
from evoengine.evaluate.worker.inputs import make_inputs  # noqa: E402
from evoengine.evaluate.worker.task_functions import TaskFunctions  # noqa: E402
from evoengine.paths import find_kernel, find_task  # noqa: E402
from evoengine.task.load import load_task  # noqa: E402
from evoengine.task.schema import Task  # noqa: E402

NAME = "layernorm"
WARM_UP_CALLS = 3
# the usual number of peers: KernelBench times 100 calls, each with its own pair of events
TIMED_CALLS = 100

DECLARATION = (
    "torch::Tensor layernorm_forward(torch::Tensor x, torch::Tensor weight, torch::Tensor bias,"
    " double eps);"
)
LAUNCHER = """
torch::Tensor layernorm_forward(torch::Tensor x, torch::Tensor weight, torch::Tensor bias,
                                double eps) {
    auto out = torch::empty_like(x);
    const int N = x.size(0), C = x.size(1);
    const dim3 grid((N + ROWS_PER_BLOCK - 1) / ROWS_PER_BLOCK), block(THREADS);
    const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
    if (C % VECTOR == 0)
        candidate::layernorm<VECTOR><<<grid, block, 0, stream>>>(
            x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(),
            out.data_ptr<float>(), N, C, static_cast<float>(eps));
    else
        candidate::layernorm<1><<<grid, block, 0, stream>>>(
            x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(),
            out.data_ptr<float>(), N, C, static_cast<float>(eps));
    return out;
}
"""

Forward = Callable[..., torch.Tensor]


def cuda_source(candidate: Candidate) -> str:
    """The candidate's code, with its default tunables, and the host function that launches it."""
    macros = "\n".join(f"#define {name} {value}" for name, value in candidate.tunables.items())
    return (
        f"#include <c10/cuda/CUDAStream.h>\n{macros}\nnamespace candidate"
        f" {{\n{candidate.code.strip()}\n}}\n{LAUNCHER}"
    )


def build(candidate: Candidate, folder: Path) -> Forward:
    """The compiled host function."""
    from torch.utils.cpp_extension import load_inline

    major, minor = torch.cuda.get_device_capability()
    # this device only, which is the least work
    os.environ["TORCH_CUDA_ARCH_LIST"] = f"{major}.{minor}"
    module: Any = load_inline(
        name="evoengine_layernorm",
        cpp_sources=DECLARATION,
        cuda_sources=cuda_source(candidate),
        functions=["layernorm_forward"],
        extra_cuda_cflags=["-O3"],
        build_directory=str(folder),
    )
    forward: Forward = module.layernorm_forward
    return forward


def check(task: Task, expected_outputs: ExpectedOutputs, forward: Forward, eps: float) -> bool:
    """Whether every input set of every case passes the task's gate."""
    (tier,) = task.tiers
    passed = []
    for case in task.all_cases:
        for distribution in task.distributions:
            for seed in task.seeds:
                tensors = expected_outputs.inputs(case, distribution, seed)
                out = forward(tensors["x"], tensors["weight"], tensors["bias"], eps)
                passed.append(
                    compare_outputs(
                        {"out": out},
                        expected_outputs.get(case, distribution, seed),
                        tier,
                        distribution,
                        seed,
                    ).ok
                )
    return all(passed)


def compute_references(task: Task, expected_outputs: ExpectedOutputs) -> None:
    for case in task.all_cases:
        for distribution in task.distributions:
            for seed in task.seeds:
                expected_outputs.get(case, distribution, seed)


def measure(
    task: Task, forward: Forward, eps: float, device: torch.device
) -> dict[str, tuple[list[float], list[float]]]:
    """Milliseconds a call of the extension and of torch's own kernel, by case."""
    found = {}
    for case in task.cases:
        tensors = make_inputs(task, case, "normal", 0, device)
        x, weight, bias = tensors["x"], tensors["weight"], tensors["bias"]
        ours = partial(forward, x, weight, bias, eps)
        theirs = partial(torch.nn.functional.layer_norm, x, x.shape[-1:], weight, bias, eps)
        found[case] = (_times_ms(ours), _times_ms(theirs))
    return found


def _times_ms(call: Callable[[], torch.Tensor]) -> list[float]:
    for _ in range(WARM_UP_CALLS):
        call()
    times = []
    for _ in range(TIMED_CALLS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True)
    folder: Path = parser.parse_args().folder
    path = find_task(NAME)
    task, candidate = (
        load_task(path),
        candidates.parse(find_kernel(NAME).read_text(encoding="utf-8")),
    )
    device = torch.device("cuda", 0)
    expected_outputs = ExpectedOutputs(task, TaskFunctions(task, path), device)
    eps = float(str(task.inputs["eps"].value))
    compute_references(task, expected_outputs)
    ready = time.monotonic()
    forward = build(candidate, folder)
    built = time.monotonic()
    if not check(task, expected_outputs, forward, eps):
        raise SystemExit("the extension's results are wrong")
    checked = time.monotonic()
    measure(task, forward, eps, device)
    timed = time.monotonic()
    print(
        json.dumps(
            {
                "start": ready - STARTED,
                "compile": built - ready,
                "check": checked - built,
                "timing": timed - checked,
            }
        )
    )


if __name__ == "__main__":
    main()
