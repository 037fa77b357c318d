"""Every planted fault is found at its line, and nothing is found in its repaired twin."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from evoengine.emulator.device import Checks, Emulator, LaunchReport
from evoengine.emulator.front.clang import compile_cuda
from tests.emulator.corpus import Case, Out, initial
from tests.emulator.faults.table import FAULTS, Fault

every_fault = pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    made = Emulator("h200", threads=1)
    yield made
    made.close()


def checked(emulator: Emulator, fault: Fault, case: Case) -> LaunchReport:
    """The report of a checked launch, outputs uninitialised."""
    compiled = compile_cuda(fault.source, name=f"{fault.name}.cu", macros=case.macros, arch=case.arch, kernels=[case.kernel])
    program, args, addresses, unset = emulator.load(compiled.ptx), [], [], set()
    try:
        for index, argument in enumerate(case.args):
            if isinstance(argument, np.generic):
                args.append(argument.tobytes())
                continue
            data = initial(argument)
            address = emulator.memory.allocate(data.nbytes, name=f"argument {index}")
            emulator.memory.view(address, data.nbytes)[:] = data.view(np.uint8).reshape(-1)
            addresses.append(address)
            args.append(np.uint64(address).tobytes())
            unset |= {address} if isinstance(argument, Out) else set()
        checks = Checks(uninitialised=frozenset(unset))
        symbol = compiled.functions[case.kernel]
        return program.launch(symbol, grid=case.grid, block=case.block, args=args, shared_bytes=case.shared_bytes, checks=checks)
    finally:
        for address in addresses:
            emulator.memory.free(address)
        program.close()


@every_fault
def test_the_fault_is_found_at_its_line(emulator: Emulator, fault: Fault) -> None:
    report = checked(emulator, fault, fault.case)
    meant = [found for found in report.findings if found.kind in fault.kinds and found.space is fault.space]
    sites = {site for found in meant for site in (found.site, found.other_site) if site >= 0}
    lines = {report.lowered.sites[site].line for site in sites}
    assert lines & fault.lines, [report.describe(found) for found in report.findings]


@every_fault
def test_nothing_is_found_in_the_repaired_twin(emulator: Emulator, fault: Fault) -> None:
    report = checked(emulator, fault, fault.fixed)
    assert [report.describe(found) for found in report.findings] == []
