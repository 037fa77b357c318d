"""Checked launches of the planted faults."""

from __future__ import annotations

import numpy as np

from evoengine.emulator.device import Checks, Emulator, LaunchReport
from evoengine.emulator.front.clang import compile_cuda
from tests.emulator.corpus import Case, Out, initial
from tests.emulator.faults.fault_table import PlantedFault


def checked(emulator: Emulator, fault: PlantedFault, case: Case) -> LaunchReport:
    """The report of a checked launch, outputs uninitialised."""
    compiled = compile_cuda(
        fault.source,
        name=f"{fault.name}.cu",
        macros=case.macros,
        arch=case.arch,
        kernels=[case.kernel],
    )
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
        return program.launch(
            symbol,
            grid=case.grid,
            block=case.block,
            args=args,
            shared_bytes=case.shared_bytes,
            checks=checks,
        )
    finally:
        for address in addresses:
            emulator.memory.free(address)
        program.close()


def at_the_fault(report: LaunchReport, fault: PlantedFault) -> bool:
    """Whether a finding of the planted kind has a marked line as its own or its other line."""
    meant = [
        found
        for found in report.findings
        if found.kind in fault.kinds and found.space is fault.space
    ]
    sites = {site for found in meant for site in (found.site, found.other_site) if site >= 0}
    return bool({report.lowered.sites[site].line for site in sites} & fault.lines)
