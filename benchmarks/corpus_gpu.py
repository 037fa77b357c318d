"""Compares the corpus of tests/emulator/kernels on a GPU and on the emulator.

    python -m benchmarks.corpus_gpu record FILE.npz                        on a machine with a GPU
    python -m benchmarks.corpus_gpu compare FILE.npz [--markdown FILE.md]  on any machine

`record` launches every case, says where the GPU does not give what numpy and torch
expect, and writes what it gave. `compare` launches every case on the emulator and says
how far the two are apart: bit for bit, or in units of the last place, against what the
case asks for. Either ends with status 1 when something is not as it should be.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.table import Row, machine, table
from tests.emulator.corpus import (
    Agreement,
    Bitwise,
    Case,
    In,
    InOut,
    Kernel,
    Out,
    Ulp,
    difference,
    dtype_of,
    initial,
    load_corpus,
    wrong,
    wrong_lines,
)

LARGEST_FILE = 15_000_000  # bytes; what a repository bears
META = "meta"
CORPUS = (  # the first part of an array's name; sweeps over single instructions get their own
    "corpus"
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    comparing = commands.add_parser("compare")
    for command in (recording, comparing):
        command.add_argument("file", type=Path)
        command.add_argument("--only", nargs="*", metavar="KERNEL", help="these kernels alone")
    comparing.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    kernels = [
        kernel for kernel in load_corpus() if not options.only or kernel.name in options.only
    ]
    good = (
        record(kernels, options.file)
        if options.command == "record"
        else compare(kernels, options.file, options.markdown)
    )
    sys.exit(0 if good else 1)


def record(kernels: list[Kernel], file: Path) -> bool:
    """Launches all cases on the GPU and writes `file`; whether all gave what is expected."""
    from cupy_backends.cuda.api.driver import CUDADriverError
    from cupy_backends.cuda.api.runtime import CUDARuntimeError
    from cupy_backends.cuda.libs.nvrtc import NVRTCError

    from benchmarks import gpu_launch

    arrays: dict[str, np.ndarray] = {}
    digests: dict[str, str] = {}
    failures: list[Row] = []
    for kernel, case in _cases(kernels):
        try:
            launched = gpu_launch.launch(kernel, case)
        except (NVRTCError, CUDADriverError, CUDARuntimeError) as error:
            failures.append(
                {
                    "kernel": kernel.name,
                    "case": case.name,
                    "what": f"{type(error).__name__}: {error}",
                }
            )
            continue
        problems = [wrong(case, index, array) for index, array in launched.results.items()]
        problems.append(wrong_lines(case, launched.printed))
        failures += [
            {"kernel": kernel.name, "case": case.name, "what": problem}
            for problem in problems
            if problem
        ]
        digests[f"{kernel.name}/{case.name}"] = digest(kernel, case)
        arrays |= {_key(kernel, case, index): array for index, array in launched.results.items()}
    meta = {
        "machine": machine(**gpu_launch.versions()),
        "cases": digests,
        "not as expected": failures,
    }
    np.savez_compressed(file, **arrays, **{META: np.array(json.dumps(meta))})
    print(
        f"{len(digests)} cases of {len(kernels)} kernels, {len(failures)} not as expected,"
        f" {file.stat().st_size:,} bytes in {file}"
    )
    if failures:
        print(table(failures))
    if file.stat().st_size > LARGEST_FILE:
        print(f"{file} is larger than {LARGEST_FILE:,} bytes: make the largest cases smaller")
    return not failures and file.stat().st_size <= LARGEST_FILE


def compare(kernels: list[Kernel], file: Path, markdown: Path | None) -> bool:
    """Launches all cases on the emulator and prints how far it is from `file`; whether all agree as
    they should.
    """
    from evoengine.emulator.device import Emulator

    with np.load(file, allow_pickle=False) as stored:
        recorded = {name: stored[name] for name in stored.files}
    meta = json.loads(str(recorded.pop(META)))
    emulator = Emulator(target="l4", threads=2)
    rows = [
        row
        for kernel, case in _cases(kernels)
        for row in _compared(emulator, kernel, case, recorded, meta["cases"])
    ]
    agreed = sum(row["verdict"] == "agrees" for row in rows)
    equal = sum(row.get("bitwise") is True for row in rows)
    summary = f"{agreed} of {len(rows)} results agree as asked, {equal} of them bit for bit."
    where = ", ".join(f"{name} {value}" for name, value in meta["machine"].items())
    here = ", ".join(f"{name} {value}" for name, value in machine().items())
    print(f"GPU: {where}\nemulator: {here}\n\n{table(rows)}\n\n{summary}")
    if markdown is not None:
        markdown.write_text(_document(where, here, summary, rows), encoding="utf-8")
    return agreed == len(rows)


def _compared(
    emulator: object,
    kernel: Kernel,
    case: Case,
    recorded: dict[str, np.ndarray],
    digests: dict[str, str],
) -> Iterator[Row]:
    """One row for every result of a case."""
    from evoengine.emulator.emulator_errors import EmulatorError
    from tests.emulator.corpus_launch import launch

    first = {"kernel": kernel.name, "case": case.name}
    known = digests.get(f"{kernel.name}/{case.name}")
    if known != digest(kernel, case):
        yield {
            **first,
            "asked": asked(case.gpu),
            "verdict": "CHANGED SINCE" if known else "NOT RECORDED",
        }
        return
    try:
        launched = launch(emulator, kernel, case)
    except EmulatorError as error:
        yield {**first, "asked": asked(case.gpu), "verdict": f"{type(error).__name__}: {error}"}
        return
    for index, array in launched.results.items():
        argument = case.args[index]
        assert isinstance(argument, InOut | Out)
        found = difference(case.gpu, dtype_of(argument), array, recorded[_key(kernel, case, index)])
        yield {
            **first,
            "argument": f"{index} {dtype_of(argument)}",
            "asked": asked(case.gpu),
            "bitwise": found.bitwise,
            "ulp": found.ulp,
            "absolute": None if found.absolute is None else f"{found.absolute:.1e}",
            "verdict": "agrees" if found.agrees else "DIFFERS",
        }


def asked(agreement: Agreement) -> str:
    """An agreement in words."""
    if isinstance(agreement, Bitwise):
        return "bitwise"
    if isinstance(agreement, Ulp):
        return f"{agreement.n} ulp of {agreement.dtype}"
    return f"atol {agreement.atol:g}, rtol {agreement.rtol:g}"


def digest(kernel: Kernel, case: Case) -> str:
    """A name for all that a result depends on: source, launch and inputs."""
    whole = hashlib.sha256(
        repr(
            (
                kernel.source,
                case.kernel,
                case.grid,
                case.block,
                case.shared_bytes,
                sorted(case.macros.items()),
            )
        ).encode()
    )
    for argument in case.args:
        whole.update(
            initial(argument).tobytes()
            if isinstance(argument, In | InOut | Out)
            else argument.tobytes()
        )
    return whole.hexdigest()[:16]


def _document(where: str, here: str, summary: str, rows: list[Row]) -> str:
    return (
        "# The corpus on the emulator and on a GPU\n\n`python -m benchmarks.corpus_gpu compare`:"
        " every case of `tests/emulator/kernels/`. `asked` is how the two must agree: bit for bit"
        " where the arithmetic defines the result, within units of the last place (ulp) or a"
        f" tolerance where it does not. All NaNs count as one.\n\nGPU: {where}.\n\nEmulator:"
        f" {here}.\n\n{summary}\n\n{table(rows)}\n"
    )


def _cases(kernels: list[Kernel]) -> Iterator[tuple[Kernel, Case]]:
    return ((kernel, case) for kernel in kernels for case in kernel.cases)


def _key(kernel: Kernel, case: Case, index: int) -> str:
    return f"{CORPUS}/{kernel.name}/{case.name}/{index}"


if __name__ == "__main__":
    main()
