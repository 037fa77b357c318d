"""Every planted fault is found at its line, and nothing is found in its repaired twin."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evoengine.emulator.device import Emulator
from tests.emulator.faults.checked_launches import at_the_fault, checked
from tests.emulator.faults.fault_table import FAULTS, PlantedFault

every_fault = pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    made = Emulator("h200", threads=1)
    yield made
    made.close()


@every_fault
def test_the_fault_is_found_at_its_line(emulator: Emulator, fault: PlantedFault) -> None:
    report = checked(emulator, fault, fault.case)
    assert at_the_fault(report, fault), [report.describe(found) for found in report.findings]


@every_fault
def test_nothing_is_found_in_the_repaired_twin(emulator: Emulator, fault: PlantedFault) -> None:
    report = checked(emulator, fault, fault.fixed)
    assert [report.describe(found) for found in report.findings] == []
