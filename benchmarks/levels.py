"""The cost of code generation for each seed at LLVM's levels 0, 1 and 2: processor time of one core
in LLVM.

    python -m benchmarks.levels [--repeats N] [--markdown FILE]

The IR is that of the seeds' defaults on the first case of their tasks, of the launch with the most
code. `fast` and `checked` are the emulator's modes; the emulator takes level 1 for the first and 0
for the second. The shortest of N repetitions.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

from benchmarks.emulator import KERNELS
from benchmarks.emulator_child import ARCH, compile_plan
from benchmarks.table import Row, machine, table
from evoengine.candidate import kernel_file as candidates
from evoengine.candidate.arch import limits_of_arch
from evoengine.candidate.binding import bind
from evoengine.emulator.front.clang import find_clang
from evoengine.emulator.lower.kernel import lower
from evoengine.emulator.lower.layout import lay_out
from evoengine.emulator.ptx.inline import inline_calls
from evoengine.emulator.ptx.parser import parse
from evoengine.emulator.run.codegen_child import emit_object
from evoengine.evaluate.worker.emulated.emulated_program import three
from evoengine.paths import find_kernel, find_task
from evoengine.task import schema as tasks

LEVELS = (0, 1, 2)
ARENA_BASE, ARENA_BITS = 1 << 40, 38  # any address: nothing is run


def lowered(task_name: str, kernel: str, checked: bool, vector_memory: bool) -> str:
    """The IR of the launch with the most of it."""
    task = tasks.load(find_task(task_name))
    candidate = candidates.parse(find_kernel(kernel).read_text(encoding="utf-8"))
    plan = bind(candidate, task, next(iter(task.cases)), limits_of_arch(ARCH))
    with tempfile.TemporaryDirectory() as folder:
        compiled = compile_plan(candidate, plan, Path(folder))
        module = parse(Path(compiled.code_path).read_text(encoding="utf-8"))
    texts = []
    for launch in plan.launches:
        function = inline_calls(module, compiled.functions[launch.kernel])
        layout = lay_out(module, function)
        layout.arena_base, layout.arena_bits = ARENA_BASE, ARENA_BITS
        texts.append(
            lower(
                function, layout, three(launch.block), checked=checked, vector_memory=vector_memory
            ).ir
        )
    return max(texts, key=len)


def rows(repeats: int) -> Iterator[Row]:
    """One for each seed and mode."""
    llvm.initialize_native_target()
    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features()
    wide = bool(features.get("avx512f"))
    text = features.flatten() + (",-prefer-256-bit" if wide else "")
    for task, kernels in KERNELS.items():
        for kernel in kernels:
            for checked in (False, True):
                ir = lowered(task, kernel, checked, wide)
                took = {
                    level: min(_processor_s(ir, cpu, text, level) for _ in range(repeats))
                    for level in LEVELS
                }
                row: Row = {
                    "kernel": kernel,
                    "mode": "checked" if checked else "fast",
                    "lines of IR": ir.count("\n"),
                }
                yield {
                    **row,
                    **{f"level {level} ms": took[level] * 1000 for level in LEVELS},
                    "0 to 1": took[0] / took[1],
                }


def _processor_s(ir: str, cpu: str, features: str, level: int) -> float:
    started = time.process_time()
    emit_object(ir, cpu, features, level)
    return time.process_time() - started


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3, metavar="N")
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write machine and table there as well"
    )
    options = parser.parse_args(arguments)
    where = machine(clang=find_clang().version, llvmlite=llvmlite.__version__)
    command = " ".join(
        ["python -m benchmarks.levels", *(arguments if arguments is not None else sys.argv[1:])]
    )
    place = ", ".join(f"{name} {value}" for name, value in where.items())
    text = f"`{command}`\n\n{place}.\n\n{table(list(rows(options.repeats)))}\n"
    sys.stdout.write(text)
    if options.markdown is not None:
        options.markdown.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
