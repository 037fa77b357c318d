"""Whether a process that starts its context, or ends, disturbs what another one times on the GPU.

    python -m benchmarks.process_starts [--seconds N] [--json FILE]

One process times two kernels over and over, one of which moves bytes, the other computes. Beside it
processes start as runners do, alone and two at a time, and end. For each kernel the times are
shown that fell into a start, into an end, and into neither; then what a start takes, by step.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import cupy

from benchmarks.table import Row, machine, publish
from evoengine.evaluate.worker.cuda.runner.replayer import Replayer

SOURCE = """
extern "C" __global__ void copy_bytes(const float4* from, float4* to) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    to[i] = from[i];
}
extern "C" __global__ void compute(const float4*, float* to) {
    float x = threadIdx.x;
    for (int i = 0; i < 4000; i++) x = x * 1.0001f + 0.5f;
    to[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
"""
KERNELS = {"copy_bytes": 8192, "compute": 528}  # blocks of 256 threads
LAUNCHES = 5  # of a replay, which takes some 90 us on an H200
ELEMENTS = 1 << 24
WARM_UP_S = 6.0  # until both kernels are compiled and the clocks have risen
PAUSE_S = 0.2  # between a start and an end, and between two rounds
DURING = NEITHER, START, END = "neither", "a start", "an end"
Sample = tuple[float, str, float]  # when it ended, the kernel, microseconds
Span = tuple[str, float, float]  # what it is, from, to


def measure(seconds: float, file: Path) -> tuple[str, list[Row]]:
    """The device's name and the rows; the process that times leaves its samples in `file`."""
    begun = time.time()
    timing = os.fork()
    if timing == 0:
        with _ending():
            name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
            file.write_text(json.dumps([name, list(_times(begun + seconds))]))
    time.sleep(WARM_UP_S)
    spans, steps = list[Span](), list[dict[str, float]]()
    while time.time() < begun + seconds - 1:
        for count in (1, 2):
            steps += _start_and_end(count, spans)
            time.sleep(PAUSE_S)
    if os.waitpid(timing, 0)[1]:
        raise SystemExit("this benchmark needs a CUDA device")
    device, samples = json.loads(file.read_text())
    within = [one for one in samples if begun + WARM_UP_S < one[0] < spans[-1][2]]
    found = {(kernel, during): list[float]() for kernel in KERNELS for during in DURING}
    for at, kernel, time_us in within:
        found[kernel, _at(at, spans)].append(time_us)
    medians = {name: statistics.median(one[name] for one in steps) for name in steps[0]}
    return device, [
        *(_row(kernel, during, samples) for (kernel, during), samples in found.items()),
        *({"step of a start": name, "median ms": value} for name, value in medians.items()),
    ]


def _row(kernel: str, during: str, samples: list[float]) -> Row:
    cuts = statistics.quantiles(samples, n=100)
    return {
        "kernel": kernel,
        "beside": during,
        "replays": len(samples),
        "median us": cuts[49],
        "90th percentile us": cuts[89],
        "99th percentile us": cuts[98],
    }


def _at(moment: float, spans: Sequence[Span]) -> str:
    return next((what for what, begun, ended in spans if begun <= moment <= ended), NEITHER)


def _times(until: float) -> Iterator[Sample]:
    """Replays of each kernel in turn."""
    module = cupy.RawModule(code=SOURCE)
    here, there = (cupy.zeros(ELEMENTS, dtype=cupy.float32) for _ in range(2))
    stream = cupy.cuda.Stream(non_blocking=True)
    graphs = {}
    with stream:
        for name, blocks in KERNELS.items():
            kernel = module.get_function(name)
            stream.begin_capture()
            for _ in range(LAUNCHES):
                kernel((blocks,), (256,), (here, there))
            graphs[name] = stream.end_capture()
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    while time.time() < until:
        for name, graph in graphs.items():
            begin.record(stream)
            graph.launch(stream)
            end.record(stream)
            end.synchronize()
            yield time.time(), name, cupy.cuda.get_elapsed_time(begin, end) * 1e3


def _start_and_end(count: int, spans: list[Span]) -> list[dict[str, float]]:
    """Lets `count` processes start together and end together; the steps of each start in ms."""
    began = time.time()
    started = [_start() for _ in range(count)]
    steps = [json.loads(os.read(told, 4096)) for _, told, _ in started]
    spans.append((START, began, time.time()))
    time.sleep(PAUSE_S)
    ending = time.time()
    for _, told, keep in started:
        os.close(told)
        os.close(keep)
    for pid, _, _ in started:
        os.waitpid(pid, 0)
    spans.append((END, ending, time.time()))
    return steps


def _start() -> tuple[int, int, int]:
    """A process that starts as a runner does, the end of its pipe, and one it ends with."""
    told, tell = os.pipe()
    wait, keep = os.pipe()
    pid = os.fork()
    if pid == 0:
        with _ending():
            os.close(keep)
            begun = time.perf_counter()
            cupy.cuda.runtime.getDeviceCount()
            found = time.perf_counter()
            cupy.cuda.Device(0).use()
            cupy.cuda.runtime.free(0)
            context = time.perf_counter()
            replayer = Replayer(0)
            cupy.cuda.Device().synchronize()
            steps = {
                "driver": found - begun,
                "context": context - found,
                "our kernels and memory": time.perf_counter() - context,
            }
            os.write(tell, json.dumps({name: 1e3 * s for name, s in steps.items()}).encode())
            os.read(wait, 1)
            del replayer
    os.close(tell)
    os.close(wait)
    return pid, told, keep


@contextmanager
def _ending() -> Iterator[None]:
    """Ends a forked process with its block."""
    try:
        yield
    except BaseException:  # noqa: BLE001 - the top of a process
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.process_starts",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seconds", type=float, default=20.0, help="default: 20")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there as well")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        device, rows = measure(options.seconds, Path(folder) / "samples.json")
    publish(machine(device=device), rows, options.json)


if __name__ == "__main__":
    main()
