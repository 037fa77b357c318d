"""The table of planted faults and its files belong together."""

from __future__ import annotations

import pytest

from tests.emulator.faults.fault_table import FAULTS, FOLDER, PlantedFault

every_fault = pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)


def test_every_file_is_in_the_table_once() -> None:
    assert sorted(fault.name for fault in FAULTS) == sorted(
        path.stem for path in FOLDER.glob("*.cu")
    )


@every_fault
def test_every_fault_is_marked_and_has_a_repaired_twin(fault: PlantedFault) -> None:
    assert fault.lines
    assert "FIXED" in fault.source
    assert f" {fault.name}(" in fault.source
    assert fault.fixed.macros["FIXED"] == 1
