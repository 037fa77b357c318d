"""Measures the speed of the emulator on this machine: every seed, every acceptance case.

    python -m benchmarks.emulator [--only KERNEL ...] [--verdicts] [--markdown FILE] [--json FILE]

Every figure of a row comes from one process that does nothing else. `jit` is parsing, lowering and
code generation for one case: the first launch of one block less the second. `run` is the median of
a few launches of the whole grid with all threads, `one thread` the same with one, `processor` the
processor time of one of them, which tells the same on a busy machine. `checked` is checked mode on
the whole grid, once, and `sampled` on a few blocks, as for long cases in a verdict. `error` is the
largest one against float64. `memory` is the peak of the process, torch included, before references
are computed. `no AVX-512` repeats the mission cases with these features masked. `torch` is torch's
own implementation on the same cores right after, in the inputs' precision and in float32: for
orientation, since it simulates nothing.

--verdicts times whole verdicts instead, as a run asks for them: of one executor, from the source to
the report, each with code that no cache has seen; the first one of a task, which computes
references, and the middle one of three of every kernel. `start` is what bringing up compilers and
worker takes, once for a run.

Marks are shown beside their figures, and whether they hold: they are meant for two cores that do
nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import llvmlite
import torch

from benchmarks.processes import Memory
from benchmarks.subjects import numbers, renewed
from benchmarks.table import Cell, Row, machine, publish, table
from evoengine.candidate import kernel_file as candidates
from evoengine.emulator.front.clang import find_clang
from evoengine.emulator.run.jit import Jit
from evoengine.evaluate.compile.pool import CLANG, CompilePool
from evoengine.evaluate.device.worker_device import emulator_device
from evoengine.evaluate.local_executor import LocalExecutor
from evoengine.paths import find_kernel, find_task
from evoengine.records import Status, Verdict
from evoengine.search.choose_run import parse_checks
from evoengine.search.make_executor import COMPILERS, find_device
from evoengine.task.load import load_task

KERNELS = {
    "sdpa_l4": (
        "sdpa_v2b",
        "sdpa_v2c",
        "sdpa_v2c_wmma_qk",
        "sdpa_v2c_wmma",
        "sdpa_fp8",
        "sdpa_mma",
    ),
    "layernorm": ("layernorm",),
    "matmul_fp16": ("matmul_fp16",),
}
SCALAR = ("sdpa_v2b", "sdpa_v2c")  # without tensor instructions
MISSION = "mission"
DEVICE = "emulator:l4"
# The marks, for two cores.
RUN_MARK_MS = {"scalar": 300.0, "tensor": 50.0}  # on the mission case
JIT_MARK_MS = 1000.0
VERDICT_MARK_S = {"scalar": 20.0, "tensor": 5.0}
MEMORY_MARK_MIB = 1536.0
CHILD_LIMIT_S = 600.0
REPEATS = 3  # of a verdict


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", metavar="KERNEL", help="these kernels alone")
    parser.add_argument("--cases", nargs="+", metavar="CASE", help="these cases alone")
    parser.add_argument("--verdicts", action="store_true", help="whole verdicts through the engine")
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write machine and tables there as well"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write machine and rows there as well"
    )
    return parser.parse_args(arguments)


def subjects(
    only: Sequence[str] | None, cases: Sequence[str] | None
) -> Iterator[tuple[str, str, str]]:
    """(task, kernel, case): all acceptance cases of attention, the first case of every other
    task.
    """
    for task_name, kernels in KERNELS.items():
        known = list(load_task(find_task(task_name)).cases)
        for kernel in kernels:
            if only is None or kernel in only:
                chosen = known if task_name == "sdpa_l4" else known[:1]
                yield from (
                    (task_name, kernel, case) for case in chosen if cases is None or case in cases
                )


def measure(task: str, kernel: str, case: str, *without: str) -> dict[str, float | int | str]:
    """What benchmarks.emulator_child finds in a new process, or {"problem": why it finds
    nothing}.
    """
    command = [sys.executable, "-m", "benchmarks.emulator_child", task, kernel, case, *without]
    try:
        done = subprocess.run(  # noqa: S603 - ours
            command, capture_output=True, text=True, check=False, timeout=CHILD_LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return {"problem": f"took more than {CHILD_LIMIT_S:g} s"}
    if done.returncode:
        return {
            "problem": (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
        }
    found: dict[str, float | int | str] = json.loads(done.stdout.splitlines()[-1])
    return found


def row_of(task: str, kernel: str, case: str) -> Row:
    """Every figure of one kernel and case."""
    found = measure(task, kernel, case)
    row: dict[str, Cell] = {"kernel": kernel, "case": case}
    if "problem" in found:
        return {**row, "problem": found["problem"]}
    run, jit = _ms(found, "run_s"), max(_ms(found, "jit_s"), _ms(found, "checked_jit_s"))
    mark = RUN_MARK_MS[_kind(kernel)] if case == MISSION else None
    row |= {
        "clang ms": _ms(found, "clang_s"),
        "jit ms": _ms(found, "jit_s"),
        "checked jit ms": _ms(found, "checked_jit_s"),
        "jit mark": f"<= {JIT_MARK_MS:g}",
        "jit kept": jit <= JIT_MARK_MS,
        "run ms": run,
        "run mark": f"<= {mark:g}" if mark else None,
        "run kept": run <= mark if mark else None,
        "one thread ms": _ms(found, "one_thread_s"),
        "scaling": float(found["one_thread_s"]) / float(found["run_s"]),
        "processor ms": _ms(found, "processor_s"),
        "sampled ms": _ms(found, "sampled_s"),
        "checked ms": _ms(found, "checked_s"),
        "blocks": found["blocks"],
        "error": f"{found['error']:.2e}",
        "memory MiB": float(found["rss_mib"]),
        "torch ms": _ms(found, "peer_s"),
        "torch float32 ms": _ms(found, "peer_float32_s"),
        "x torch": float(found["run_s"]) / float(found["peer_s"]),
    }
    return row


def masked_row(task: str, kernel: str, case: str, whole: Row) -> Row:
    """The same without AVX-512, beside what the row `whole` has with it."""
    found = measure(task, kernel, case, "avx512")
    if "problem" in found or "problem" in whole:
        return {"kernel": kernel, "case": case, "problem": found.get("problem", "")}
    run, jit, before = _ms(found, "run_s"), _ms(found, "jit_s"), whole["run ms"]
    assert isinstance(before, float)
    return {
        "kernel": kernel,
        "case": case,
        "no AVX-512: jit ms": jit,
        "jit mark": f"<= {JIT_MARK_MS:g}",
        "jit kept": jit <= JIT_MARK_MS,
        "no AVX-512: run ms": run,
        "with: run ms": before,
        "x": run / before,
        "error": f"{found['error']:.2e}",
    }


def _kind(kernel: str) -> str:
    return "scalar" if kernel in SCALAR else "tensor"


def _ms(found: dict[str, float | int | str], name: str) -> float:
    return float(found[name]) * 1000


# ---------------------------------------------------------------- whole verdicts


@contextlib.asynccontextmanager
async def executor_of(task_name: str, folder: Path) -> AsyncIterator[tuple[LocalExecutor, float]]:
    """Compilers and a worker for a task, started, and the seconds that took; references are kept in
    `folder`.
    """
    path = find_task(task_name).resolve()
    task = load_task(path)
    chosen = find_device(DEVICE, task)
    device = emulator_device(chosen.target, parse_checks(None, chosen), folder)
    executor = LocalExecutor(
        task, str(path), CompilePool(COMPILERS), device, None, CompilePool(COMPILERS, module=CLANG)
    )
    started = time.perf_counter()
    try:
        await executor.start()
        yield executor, time.perf_counter() - started
    finally:
        await executor.close()


async def verdict_rows(only: Sequence[str] | None, folder: Path) -> AsyncIterator[Row]:
    """The first verdict of each task, and later ones of each of its kernels."""
    number = numbers()
    for task, kernels in KERNELS.items():
        chosen = [name for name in kernels if only is None or name in only]
        if not chosen:
            continue
        memory = Memory()
        with memory.watching():
            async with executor_of(task, folder) as (executor, start_s):
                first = await judge(executor, chosen[0], number)
                yield {
                    **verdict_row(task, f"{chosen[0]}, the first: references computed", [first]),
                    "start s": start_s,
                    **_peak(memory),
                }
                for kernel in chosen:
                    verdicts = [await judge(executor, kernel, number) for _ in range(REPEATS)]
                    yield {
                        **verdict_row(task, kernel, verdicts, VERDICT_MARK_S[_kind(kernel)]),
                        **_peak(memory),
                    }


async def judge(executor: LocalExecutor, kernel: str, number: Iterator[int]) -> Verdict:
    """A verdict on code that no cache has seen."""
    source = renewed(find_kernel(kernel).read_text(encoding="utf-8"), next(number))
    return await executor.evaluate(candidates.parse(source), lambda _: None)


def verdict_row(
    task: str, name: str, verdicts: Sequence[Verdict], mark: float | None = None
) -> Row:
    """The middle one of some verdicts on the same kernel: its phases, and whether it keeps the
    mark.
    """
    wrong = [verdict for verdict in verdicts if verdict.status is not Status.correct]
    middle = sorted(wrong or verdicts, key=lambda verdict: verdict.phases_s["total"])[
        len(wrong or verdicts) // 2
    ]
    seconds = middle.phases_s["total"]
    row: dict[str, Cell] = {
        "verdict": f"{task}: {name}",
        "status": middle.status.value,
        "seconds": seconds,
    }
    if mark is not None and task == "sdpa_l4":
        row |= {"mark": f"<= {mark:g}", "kept": not wrong and seconds <= mark}
    row |= {f"{phase} s": found for phase, found in middle.phases_s.items() if phase != "total"}
    return {**row, "problem": middle.reason} if wrong else row


def _peak(memory: Memory) -> Row:
    """Of any process so far."""
    return {"memory MiB": memory.peak_mib, "memory kept": memory.peak_mib <= MEMORY_MARK_MIB}


# ---------------------------------------------------------------- what is shown


def features() -> str:
    """The widest vectors that this machine's emulator uses."""
    jit = Jit()  # builds the C runtime where no cache has it, so that no figure contains that
    return (
        "AVX-512"
        if jit.has_avx512
        else "AVX2"
        if "+avx2" in jit.features
        else "neither AVX-512 nor AVX2"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_arguments(arguments)
    where = machine(
        vectors=features(),
        clang=find_clang().version,
        llvmlite=llvmlite.__version__,
        torch=torch.__version__,
    )
    parts: list[tuple[str, list[Row]]] = []
    if options.verdicts:
        with tempfile.TemporaryDirectory(prefix="evoengine-benchmark-") as folder:
            parts.append(
                ("Whole verdicts", asyncio.run(_all_told(verdict_rows(options.only, Path(folder)))))
            )
    else:
        chosen = list(subjects(options.only, options.cases))
        rows = _told(row_of(*subject) for subject in chosen)
        missions = [
            (subject, row)
            for subject, row in zip(chosen, rows, strict=True)
            if subject[2] == MISSION or subject[0] != "sdpa_l4"
        ]
        parts.append(("Every seed and case", rows))
        parts.append(
            ("Without AVX-512", _told(masked_row(*subject, row) for subject, row in missions))
        )
    publish(where, _failed_last([row for _, rows in parts for row in rows]), options.json)
    if options.markdown is not None:
        options.markdown.write_text(
            as_markdown(where, parts, list(arguments if arguments is not None else sys.argv[1:])),
            encoding="utf-8",
        )


def _told(rows: Iterator[Row]) -> list[Row]:
    """All of them; each is shown as soon as it is known."""
    kept = []
    for row in rows:
        _tell(row)
        kept.append(row)
    return kept


async def _all_told(rows: AsyncIterator[Row]) -> list[Row]:
    kept = []
    async for row in rows:
        _tell(row)
        kept.append(row)
    return kept


def _tell(row: Row) -> None:
    words = (
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in row.items()
    )
    sys.stderr.write(", ".join(words) + "\n")


def _failed_last(rows: Sequence[Row]) -> list[Row]:
    """So that what went wrong is the last column."""
    return sorted(rows, key=lambda row: "problem" in row)


def as_markdown(
    where: dict[str, str], parts: Sequence[tuple[str, list[Row]]], arguments: Sequence[str]
) -> str:
    """A page: command, machine, tables."""
    command = " ".join(["python -m benchmarks.emulator", *arguments])
    lines = [
        f"`{command}`",
        "",
        ", ".join(f"{name} {value}" for name, value in where.items()) + ".",
    ]
    for title, rows in parts:
        lines += ["", f"## {title}", "", table(_failed_last(rows))]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
