"""The emulator as its users see it: memory, programs, launches."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy

from evoengine.emulator import targets
from evoengine.emulator.check.findings import AccessCounts, Check, Finding
from evoengine.emulator.errors import LaunchRefused, OutOfFuel, Trapped
from evoengine.emulator.lower.context import Site
from evoengine.emulator.lower.kernel import FUNCTION, Lowered, lower
from evoengine.emulator.lower.layout import lay_out
from evoengine.emulator.ptx.inline import inline_calls
from evoengine.emulator.ptx.parser import parse
from evoengine.emulator.ptx.program import Function, Module, Symbol
from evoengine.emulator.run.abi import End
from evoengine.emulator.run.jit import Compiled, Jit
from evoengine.emulator.run.launch import Buffers, Checking, Dimensions, Geometry, Outcome, Runner
from evoengine.emulator.run.memory import DeviceMemory
from evoengine.emulator.run.printing import Printer
from evoengine.emulator.targets import Target

MAX_GRID = (2**31 - 1, 65535, 65535)  # CUDA C++ Programming Guide 13.0, technical specifications
MAX_BLOCK = (1024, 1024, 64)
MAX_THREADS = 1024
DEFAULT_FUEL = 1 << 34  # rounds of loops; some minutes
MEMORY_BYTES = 16 << 30  # of this machine, not of the target: what is not touched costs nothing

ALL_CHECKS = Check.RACES | Check.BOUNDS | Check.INIT | Check.ASYNC


@dataclass(frozen=True)
class Checks:
    """What checked mode looks for, and which global buffers hold something before the launch.

    `uninitialised` are addresses of buffers that must be written before they are read.
    """

    which: Check = ALL_CHECKS
    uninitialised: frozenset[int] = frozenset()


@dataclass(frozen=True)
class LaunchReport:
    """What a launch did."""

    blocks_run: int
    blocks: int  # of the grid
    warps: int  # of a block
    printed: str
    findings: tuple[Finding, ...]
    accesses: AccessCounts | None  # None outside checked mode
    counters: numpy.ndarray = field(repr=False)  # [blocks of the flow, 2]: executions by warps, and by lanes
    lowered: Lowered = field(repr=False)
    works: numpy.ndarray = field(repr=False)  # instructions of PTX by warps, of each block that was run; of the first 2^16 at most
    buffers: tuple[str, ...] = ()  # names, by the index that findings give

    def describe(self, finding: Finding) -> str:
        """One line on a finding, with the candidate's lines."""
        return finding.describe(lambda site: _place(self.lowered.sites, site), self.buffers)


def _place(sites: list[Site], site: int) -> str:
    if not 0 <= site < len(sites):
        return "an unknown place"
    found = sites[site]
    return f"line {found.line}" if found.line else f"`{found.text}`"


class Emulator:
    """A CUDA device made of this machine's cores."""

    def __init__(
        self, target: str | Target = "l4", threads: int | None = None, *, cache: Path | None = None, without: tuple[str, ...] = ()
    ) -> None:
        self.target = target if isinstance(target, Target) else targets.find(target)
        self.threads = threads or len(os.sched_getaffinity(0))
        self.memory = DeviceMemory(MEMORY_BYTES)
        self.jit = Jit(cache, without)

    def load(self, ptx: str) -> Program:
        """A program with its global variables at their initial values; raises PtxError."""
        return Program(self, parse(ptx))

    def close(self) -> None:
        """Gives all memory back."""
        self.memory.close()


@dataclass(frozen=True)
class _Kernel:
    lowered: Lowered
    code: Compiled


class Program:
    """One PTX module on the device."""

    def __init__(self, emulator: Emulator, module: Module) -> None:
        self.emulator = emulator
        self.module = module
        self._functions: dict[str, Function] = {}
        self._kernels: dict[tuple[str, Dimensions, bool], _Kernel] = {}
        variables = [item for item in module.variables.values() if item.space in ("global", "const")]
        self._places: dict[str, int] = {}
        end = 0
        for item in variables:
            end = -(-end // max(1, item.align)) * max(1, item.align)
            self._places[item.name] = end
            end += item.size
        self._globals_bytes = end
        self._globals = emulator.memory.allocate(max(1, end), "global variables")
        self.reset()

    def reset(self) -> None:
        """Gives every global variable its initial value again."""
        view = self.emulator.memory.view(self._globals, self._globals_bytes)
        view[:] = 0
        for name, place in self._places.items():
            item = self.module.variables[name]
            view[place : place + len(item.data)] = numpy.frombuffer(item.data, dtype=numpy.uint8)
            for offset, symbol in item.addresses:
                address = self._address(symbol)
                view[place + offset : place + offset + 8] = numpy.frombuffer(address.to_bytes(8, "little"), dtype=numpy.uint8)

    def _address(self, symbol: Symbol) -> int:
        """Where a variable that another one points to lies; 0 for what is no variable in memory, as a kernel."""
        place = self._places.get(symbol.name)
        return 0 if place is None else self._globals + place + symbol.offset

    def close(self) -> None:
        """Gives the memory of its variables back."""
        self.emulator.memory.free(self._globals)

    def launch(
        self,
        symbol: str,
        *,
        grid: Dimensions,
        block: Dimensions,
        args: Sequence[bytes],
        shared_bytes: int = 0,
        checks: Checks | None = None,
        fuel: int | None = None,
        blocks: Sequence[int] | None = None,
    ) -> LaunchReport:
        """Runs kernel `symbol` to its end; `blocks` chooses some of the grid by linear index.

        args: the bytes of every parameter, little-endian. Raises LaunchRefused, Unsupported, PtxError, Trapped, OutOfFuel.
        """
        function = self._function(symbol)
        _check_dimensions(grid, block)
        params = _parameters(function, args)
        kernel = self._compiled(symbol, block, checks is not None)
        layout = kernel.lowered.layout
        geometry = Geometry(grid, block, layout.static_shared, shared_bytes, layout.frame_bytes, kernel.lowered.warp_bytes)
        allowed = self.emulator.target.shared_per_block
        if geometry.shared > allowed:
            raise LaunchRefused(f"{geometry.shared} bytes of shared memory, {self.emulator.target.title} allows a block {allowed}")
        with _placed(self.emulator.memory, params) as address:
            return self._run(kernel, geometry, address, checks, fuel or DEFAULT_FUEL, blocks)

    def _run(
        self, kernel: _Kernel, geometry: Geometry, params: int, checks: Checks | None, fuel: int, blocks: Sequence[int] | None
    ) -> LaunchReport:
        emulator, lowered = self.emulator, kernel.lowered
        buffers = list(emulator.memory.buffers.values())
        weights = [len(node.instructions) for node in lowered.flow.nodes]
        runner = Runner(emulator.jit.native, emulator.memory, kernel.code.address, geometry, weights)
        printer = Printer(emulator.memory)
        checking = None
        if checks is not None:
            spans = tuple((item.address, item.bytes, item.address not in checks.uninitialised) for item in buffers)
            checking = Checking(emulator.jit.native, checks.which, Buffers(spans), geometry.blocks, len(lowered.sites) + 1)
        try:
            outcome = runner.run(
                params, self._globals, threads=emulator.threads, fuel=fuel, chosen=blocks, printed=printer.print, checking=checking
            )
        finally:
            if checking is not None:
                checking.close()
        report = LaunchReport(
            blocks_run=outcome.blocks_run,
            blocks=geometry.blocks,
            warps=geometry.warps,
            printed=printer.text,
            findings=outcome.findings,
            accesses=outcome.accesses,
            counters=outcome.counters,
            lowered=lowered,
            works=outcome.works,
            buffers=tuple(item.name for item in buffers),
        )
        _raise_fault(outcome, lowered, printer.text)
        return report

    def _function(self, symbol: str) -> Function:
        if symbol not in self._functions:
            kernels = [name for name, item in self.module.functions.items() if item.is_kernel]
            if symbol not in kernels:
                raise LaunchRefused(f"no kernel {symbol!r}; there are: {', '.join(sorted(kernels)) or 'none'}")
            self._functions[symbol] = inline_calls(self.module, symbol)
        return self._functions[symbol]

    def _compiled(self, symbol: str, block: Dimensions, checked: bool) -> _Kernel:
        key = (symbol, block, checked)
        if key not in self._kernels:
            function = self._function(symbol)
            layout = lay_out(self.module, function)
            layout.globals = self._places
            layout.sm_count = self.emulator.target.sms
            layout.arena_base, layout.arena_bits = self.emulator.memory.base, self.emulator.memory.bits
            lowered = lower(function, layout, block, checked=checked, vector_memory=self.emulator.jit.has_avx512)
            self._kernels[key] = _Kernel(lowered, self.emulator.jit.compile(lowered.ir, FUNCTION))
        return self._kernels[key]


def _check_dimensions(grid: Dimensions, block: Dimensions) -> None:
    for name, given, most in (("grid", grid, MAX_GRID), ("block", block, MAX_BLOCK)):
        for axis, value, limit in zip("xyz", given, most, strict=True):
            if not 1 <= value <= limit:
                raise LaunchRefused(f"{name}.{axis} must be 1 to {limit}, got {value}")
    threads = block[0] * block[1] * block[2]
    if threads > MAX_THREADS:
        raise LaunchRefused(f"a block has at most {MAX_THREADS} threads, got {threads} = {block[0]} x {block[1]} x {block[2]}")


def _parameters(function: Function, args: Sequence[bytes]) -> bytes:
    """The parameter buffer; integers may be given in more bytes than the parameter has."""
    if len(args) != len(function.parameters):
        raise LaunchRefused(f"{function.name} takes {len(function.parameters)} parameters, the launch passes {len(args)}")
    size = max((item.offset + item.size for item in function.parameters), default=0)
    buffer = bytearray(size)
    for position, (parameter, given) in enumerate(zip(function.parameters, args, strict=True), start=1):
        if len(given) < parameter.size:
            raise LaunchRefused(f"{function.name}: parameter {position} has {parameter.size} bytes, the launch passes {len(given)}")
        buffer[parameter.offset : parameter.offset + parameter.size] = given[: parameter.size]
    return bytes(buffer)


@contextmanager
def _placed(memory: DeviceMemory, params: bytes) -> Iterator[int]:
    """The address of the parameter buffer: in device memory, because kernels may take addresses of parameters."""
    address = memory.allocate(max(1, len(params)), "parameters")
    try:
        memory.view(address, len(params))[:] = numpy.frombuffer(params, dtype=numpy.uint8)
        yield address
    finally:
        memory.free(address)


def _raise_fault(outcome: Outcome, lowered: Lowered, printed: str) -> None:
    fault = outcome.fault
    if fault is None:
        return
    where = f"{_place(lowered.sites, fault.site)} (block {fault.block}, warp {fault.warp})"
    if fault.end is End.trapped:
        said = printed.strip().splitlines()
        raise Trapped(f"the kernel ended itself at {where}" + (f": {said[-1]}" if said else ""))
    if fault.end is End.no_fuel:
        raise OutOfFuel(f"out of fuel in a loop at {where}: it never ends, or waits for a block that runs later")
    raise OutOfFuel(f"threads of block {fault.block} wait at a barrier that the others never reach")
