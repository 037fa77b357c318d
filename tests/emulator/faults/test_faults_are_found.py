"""Each planted fault is found at its line, and nothing is found in its repaired twin."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evoengine.emulator.device import Emulator
from tests.emulator.faults.checked_launches import at_the_fault, checked
from tests.emulator.faults.fault_table import FAULTS, FOLDER, PlantedFault

every_fault = pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
of_a_sample = pytest.mark.sampled(
    "fault",
    one_in=5,
    kind=lambda fault: (fault.kinds, fault.space),
    files=lambda fault: (FOLDER / f"{fault.name}.cu",),
)


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    made = Emulator("h200", threads=1)
    yield made
    made.close()


@of_a_sample
@every_fault
def test_the_fault_is_found_at_its_line(emulator: Emulator, fault: PlantedFault) -> None:
    report = checked(emulator, fault, fault.case)
    assert at_the_fault(report, fault), [report.describe(found) for found in report.findings]


@of_a_sample
@every_fault
def test_nothing_is_found_in_the_repaired_twin(emulator: Emulator, fault: PlantedFault) -> None:
    report = checked(emulator, fault, fault.fixed)
    assert [report.describe(found) for found in report.findings] == []
