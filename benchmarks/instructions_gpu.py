"""Compares single PTX instructions on a GPU and on the emulator.

    python -m benchmarks.instructions_gpu record FILE.npz          on a machine with a GPU
    python -m benchmarks.instructions_gpu compare FILE.npz [--markdown FILE.md]  on any machine

`record` runs every instruction of tests/emulator/instructions.py over its operands and writes the
GPU's results, with the places where they differ from the model of the instruction. `compare` runs
the same on the emulator and reports the differences in units of the last place. Instructions that
are not approximations must agree bit for bit; `compare` exits with status 1 if one does not.
"""

from __future__ import annotations

import argparse
import json
import sys
import zlib
from pathlib import Path

import numpy as np

from benchmarks.table import Row, machine, table
from tests.emulator.instruction import stored_width
from tests.emulator.instructions import (
    CASES,
    Case,
    distances,
    expected,
    grid_of,
    inputs_of,
    ptx_of,
    shown,
)

LARGEST_FILE = 5_000_000  # bytes; what a repository bears
META = "meta"
FAR = 1 << 62  # a number beside a NaN: no distance


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    comparing = commands.add_parser("compare")
    for command in (recording, comparing):
        command.add_argument("file", type=Path)
        command.add_argument("--only", default="", help="instructions whose names hold this")
    comparing.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    cases = [case for case in CASES if options.only in case.name]
    good = (
        record(cases, options.file)
        if options.command == "record"
        else compare(cases, options.file, options.markdown)
    )
    sys.exit(0 if good else 1)


def digest(case: Case) -> int:
    """A number for all that a result depends on."""
    whole = zlib.crc32(ptx_of(case).encode())
    for array in inputs_of(case):
        whole = zlib.crc32(array.tobytes(), whole)
    return whole


def record(cases: list[Case], file: Path) -> bool:
    """Runs all cases on the GPU and writes `file`; whether all could be run and the file is small
    enough.
    """
    from cupy_backends.cuda.api.driver import CUDADriverError
    from cupy_backends.cuda.api.runtime import CUDARuntimeError

    from benchmarks import gpu_launch

    arrays: dict[str, np.ndarray] = {}
    digests: dict[str, int] = {}
    failures: list[Row] = []
    for case in cases:
        try:
            found = _on_gpu(case)
        except (CUDADriverError, CUDARuntimeError) as error:
            failures.append({"instruction": case.name, "what": f"{type(error).__name__}: {error}"})
            continue
        arrays[case.name], digests[case.name] = found, digest(case)
    meta = {"machine": machine(**gpu_launch.versions()), "digests": digests, "failed": failures}
    np.savez_compressed(file, **{**arrays, META: np.array(json.dumps(meta))})  # type: ignore[arg-type]
    size = file.stat().st_size
    print(f"{len(arrays)} of {len(cases)} instructions recorded, {size:,} bytes in {file}")
    if failures:
        print(table(failures))
    _print_differences([case for case in cases if case.name in arrays], arrays)
    return not failures and size <= LARGEST_FILE


def _print_differences(cases: list[Case], arrays: dict[str, np.ndarray]) -> None:
    """Where the GPU does not do what the models say: what is left to learn from it."""
    for case in cases:
        want = expected(case)
        far = np.flatnonzero(distances(case, arrays[case.name], want) > case.ulp)
        for place in far[:3]:
            print(
                f"{len(far)} of {len(want)}: GPU {shown(case, int(place), arrays[case.name], want)}"
            )


def _on_gpu(case: Case) -> np.ndarray:
    import cupy
    from cupy.cuda import function

    module = function.Module()
    module.load(ptx_of(case).encode() + b"\0")
    inputs = [cupy.asarray(array) for array in inputs_of(case)]
    count = len(inputs[0])
    result = cupy.zeros(count, dtype=f"uint{stored_width(case.result)}")
    blocks, threads = grid_of(case)
    module.get_function("k")((blocks,), (threads,), (*inputs, result, np.uint32(count)))
    cupy.cuda.runtime.deviceSynchronize()
    return cupy.asnumpy(result)


def compare(cases: list[Case], file: Path, markdown: Path | None) -> bool:
    """Runs all cases on the emulator and prints how far it is from `file`; whether the exact ones
    agree.
    """
    from evoengine.emulator.device import Emulator

    with np.load(file, allow_pickle=False) as stored:
        recorded = {name: stored[name] for name in stored.files}
    meta = json.loads(str(recorded.pop(META)))
    emulator = Emulator(target="h200", threads=1)
    rows = [_compared(emulator, case, recorded, meta["digests"]) for case in cases]
    exact = [row for row in rows if row["verdict"] == "bit for bit"]
    near = [row for row in rows if row["verdict"] == "approximate"]
    worst = [row for row in rows if row not in exact and row not in near]
    summary = (
        f"{len(exact)} of {len(rows)} instructions agree bit for bit, {len(near)} approximate ones"
        f" differ, {len(worst)} others differ."
    )
    where = ", ".join(f"{name} {value}" for name, value in meta["machine"].items())
    print(f"GPU: {where}\n\n{table(worst)}\n\n{table(near)}\n\n{summary}")
    if markdown is not None:
        markdown.write_text(_document(where, summary, rows), encoding="utf-8")
    return not worst


def _compared(
    emulator: object, case: Case, recorded: dict[str, np.ndarray], digests: dict[str, int]
) -> Row:
    from evoengine.emulator.emulator_errors import EmulatorError
    from tests.emulator.instruction_launch import launched

    row: Row = {"instruction": case.name}
    if digests.get(case.name) != digest(case):
        return {**row, "verdict": "CHANGED SINCE" if case.name in digests else "NOT RECORDED"}
    try:
        here = launched(emulator, case)
    except EmulatorError as error:
        return {**row, "verdict": f"{type(error).__name__}: {error}"}
    gaps = distances(case, here, recorded[case.name])
    far = np.flatnonzero(gaps)
    row |= {"values": len(gaps), "different": len(far)}
    if not len(far):
        return {**row, "verdict": "bit for bit"}
    finite = gaps[gaps < FAR]
    row["largest ulp"] = int(finite.max()) if len(finite) else None
    row["classes"] = int((gaps >= FAR).sum())
    row["first"] = shown(case, int(far[0]), here, recorded[case.name]).replace("expected", "GPU")
    return {**row, "verdict": "approximate" if case.ulp or case.absolute else "DIFFERS"}


def _document(where: str, summary: str, rows: list[Row]) -> str:
    alike = [row for row in rows if row["verdict"] == "bit for bit"]
    others = [row for row in rows if row not in alike]
    return (
        "# Single instructions on the emulator and on a GPU\n\n`python -m"
        " benchmarks.instructions_gpu compare`: every instruction of"
        " `tests/emulator/instructions.py`, over special and random operands. All NaNs count as"
        f" one.\n\nGPU: {where}.\n\n{summary}\n\n## Different\n\n`different`: how many results"
        " differ, `largest ulp`: by how many units of the last place at most, `classes`: how many"
        f" are a NaN on one side only.\n\n{table(others)}\n\n## Bit for bit\n\nWith the number of"
        " operands that each was tried on: "
        + ", ".join(f"`{row['instruction']}` {row['values']:,}" for row in alike)
        + ".\n"
    )


if __name__ == "__main__":
    main()
