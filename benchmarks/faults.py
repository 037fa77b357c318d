"""The findings of checked mode: in every planted fault and its repaired twin, and in the corpus,
which must have none.

    python -m benchmarks.faults [--markdown FILE.md]

Exits with status 1 if a fault is missed or there is a false finding.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.table import Row, machine, table
from evoengine.emulator.device import Checks, Emulator
from tests.emulator.corpus import load_corpus
from tests.emulator.corpus_launch import launch
from tests.emulator.faults.checked_launches import at_the_fault, checked
from tests.emulator.faults.fault_table import FAULTS, PlantedFault

TARGET = "h200"  # some kernels of the corpus need sm_90


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    emulator = Emulator(TARGET)
    rows = [_row(emulator, fault) for fault in FAULTS]
    clean, alarms = _corpus(emulator)
    found, quiet = (
        sum(bool(row["found"]) for row in rows),
        sum(bool(row["twin clean"]) for row in rows),
    )
    text = "\n\n".join(
        (
            "# What checked mode finds",
            (
                "`python -m benchmarks.faults`: kernels with one planted fault each"
                " (`tests/emulator/faults/`), launched with all checks. `found`: a finding of the"
                " planted kind names a marked line; `twin clean`: nothing is found in the same"
                " kernel repaired; `says`: the first finding."
            ),
            ", ".join(f"{name} {value}" for name, value in machine().items()) + ".",
            (
                f"{found} of {len(rows)} faults found, {quiet} of {len(rows)} repaired twins clean."
                f" In the corpus (`tests/emulator/kernels/`) {clean} launches without a finding,"
                f" {len(alarms)} with one{'.' if not alarms else ':'} Left out of it are kernels"
                " whose order comes from spinning on a flag in shared memory, which CUDA's memory"
                " model does not call ordered."
            ),
            *alarms,
            table(rows),
        )
    )
    print(text)
    if options.markdown:
        options.markdown.write_text(text + "\n", encoding="utf-8")
    sys.exit(0 if found == quiet == len(rows) and not alarms else 1)


def _row(emulator: Emulator, fault: PlantedFault) -> Row:
    report, twin = checked(emulator, fault, fault.case), checked(emulator, fault, fault.fixed)
    return {
        "fault": fault.name,
        "found": at_the_fault(report, fault),
        "twin clean": not twin.findings,
        "says": report.describe(report.findings[0]) if report.findings else "",
    }


def _corpus(emulator: Emulator) -> tuple[int, list[str]]:
    """Launches of the corpus without a finding, and the others in words."""
    clean, alarms = 0, []
    for kernel in load_corpus():
        for case in kernel.cases:
            if case.ordered_by == "flag":
                continue
            report = launch(emulator, kernel, case, Checks()).report
            clean += not report.findings
            alarms += (
                [f"{kernel.name} {case.name}: {report.describe(report.findings[0])}"]
                if report.findings
                else []
            )
    return clean, alarms


if __name__ == "__main__":
    main()
