"""One PTX module on the device: kernels lowered and compiled as they are launched."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass

import numpy

from evoengine.emulator.emulator_errors import LaunchRefused
from evoengine.emulator.launch_report import Checks, LaunchReport, fault_of
from evoengine.emulator.lower.kernel import FUNCTION, Lowered, lower
from evoengine.emulator.lower.layout import lay_out
from evoengine.emulator.module_variables import Variables
from evoengine.emulator.ptx.inline import inline_calls
from evoengine.emulator.ptx.syntax import Function, Module
from evoengine.emulator.run.geometry import (
    Dimensions,
    Geometry,
    check_chosen,
    check_dimensions,
    check_memory,
)
from evoengine.emulator.run.jit import CompiledCode, Jit
from evoengine.emulator.run.launch import Code, run_blocks
from evoengine.emulator.run.launch_checker import Checking
from evoengine.emulator.run.memory import Buffer, DeviceMemory
from evoengine.emulator.run.printing import Printer
from evoengine.emulator.targets import TargetGpu

DEFAULT_FUEL = 1 << 34  # rounds of loops and starts of warps, for each host thread; some minutes


@dataclass(frozen=True)
class Parts:
    """What a program needs of its device."""

    target: TargetGpu
    threads: int  # of this machine
    memory: DeviceMemory
    jit: Jit
    makers: ThreadPoolExecutor  # of code, beside the thread that launches


@dataclass(frozen=True)
class _Kernel:
    lowered: Lowered
    code: CompiledCode


class Program:
    """One PTX module on the device."""

    def __init__(self, parts: Parts, module: Module) -> None:
        self.module = module
        self._parts = parts
        self._variables = Variables(parts.memory, module)
        self._functions: dict[str, Function] = {}
        self._kernels: dict[tuple[str, Dimensions, bool], Future[_Kernel]] = {}
        self._lock = threading.Lock()  # of the functions

    def reset(self) -> None:
        """Gives every global variable its initial value again."""
        self._variables.reset()

    @property
    def variable_bytes(self) -> int:
        """What its global variables take."""
        return self._variables.bytes

    @property
    def values(self) -> bytes:
        """What its global variables hold now; setting it gives them back what they held."""
        return self._variables.values

    @values.setter
    def values(self, kept: bytes) -> None:
        self._variables.values = kept

    def close(self) -> None:
        """Gives the memory of its variables and its code back."""
        for kernel in self._kernels.values():
            kernel.cancel()
        self._kernels.clear()
        self._variables.close()

    def settled(self, timeout_s: float) -> bool:
        """Gives up code that nobody has begun to make, and waits for the rest; whether no more is
        being made.
        """
        under_way = [kernel for kernel in self._kernels.values() if not kernel.cancel()]
        return not wait(under_way, timeout_s).not_done

    def prepare(self, symbol: str, block: Dimensions, checked: bool) -> None:
        """Begins to make the code of a kernel for blocks of `block`, while this thread does
        something else.

        What is wrong with the kernel is raised when it is launched.
        """
        key = (symbol, block, checked)
        if key not in self._kernels:
            self._kernels[key] = self._parts.makers.submit(self._made, symbol, block, checked)

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

        args: the bytes of every parameter, little-endian. Raises LaunchRefused, Unsupported,
        PtxError, Trapped, OutOfFuel.
        """
        function = self._function(symbol)
        check_dimensions(
            grid,
            block,
            (
                math.prod(function.directives.get("maxntid", ()))
                if "maxntid" in function.directives
                else 0
            ),
        )
        params = _parameters(function, args)
        chosen = None if blocks is None else tuple(blocks)
        check_chosen(chosen, math.prod(grid))
        self.prepare(symbol, block, checks is not None)
        kernel = self._kernels[symbol, block, checks is not None].result()
        layout = kernel.lowered.layout
        geometry = Geometry(
            grid,
            block,
            layout.static_shared,
            shared_bytes,
            layout.frame_bytes,
            kernel.lowered.warp_bytes,
        )
        check_memory(geometry, self._parts.target.shared_per_block, self._parts.target.title)
        with _placed(self._parts.memory, params) as address:
            return self._run(
                kernel, geometry, address, checks, DEFAULT_FUEL if fuel is None else fuel, chosen
            )

    def _run(
        self,
        kernel: _Kernel,
        geometry: Geometry,
        params: int,
        checks: Checks | None,
        fuel: int,
        chosen: tuple[int, ...] | None,
    ) -> LaunchReport:
        parts, lowered = self._parts, kernel.lowered
        buffers = list(parts.memory.buffers.values())
        weights = [len(node.instructions) for node in lowered.flow.nodes]
        native = parts.jit.native
        driver, silence = native.address("ev_run"), native.address("ev_print_nothing")
        code = Code(driver, silence, kernel.code.address, params, self._variables.address, weights)
        printer = Printer(parts.memory)
        checking = (
            self._checking(lowered, geometry, checks, buffers) if checks is not None else None
        )
        try:
            outcome = run_blocks(
                code,
                geometry,
                parts.memory,
                threads=parts.threads,
                fuel=fuel,
                chosen=chosen,
                printed=printer.print,
                checking=checking,
            )
        finally:
            if checking is not None:
                checking.close()
        if outcome.fault is not None:
            raise fault_of(outcome.fault, lowered.sites, printer.text)
        return LaunchReport(
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

    def _checking(
        self, lowered: Lowered, geometry: Geometry, checks: Checks, buffers: Sequence[Buffer]
    ) -> Checking:
        spans = [
            (item.address, item.bytes, item.address not in checks.uninitialised) for item in buffers
        ]
        return Checking(
            self._parts.jit.native, checks.which, spans, geometry.blocks, len(lowered.sites) + 1
        )

    def _function(self, symbol: str) -> Function:
        with self._lock:
            if symbol not in self._functions:
                kernels = [name for name, item in self.module.functions.items() if item.is_kernel]
                if symbol not in kernels:
                    raise LaunchRefused(
                        f"no kernel {symbol!r}; there are: {', '.join(sorted(kernels)) or 'none'}"
                    )
                self._functions[symbol] = inline_calls(self.module, symbol)
            return self._functions[symbol]

    def _made(self, symbol: str, block: Dimensions, checked: bool) -> _Kernel:
        """Code for the dimensions of a block, because they decide what is the same in all lanes."""
        function, parts = self._function(symbol), self._parts
        layout = lay_out(self.module, function)
        layout.globals = self._variables.places
        layout.sm_count = parts.target.sms
        layout.arena_base, layout.arena_bits = parts.memory.base, parts.memory.bits
        lowered = lower(
            function, layout, block, checked=checked, vector_memory=parts.jit.has_avx512
        )
        return _Kernel(lowered, parts.jit.compile(lowered.ir, FUNCTION, hasty=checked))


def _parameters(function: Function, args: Sequence[bytes]) -> bytes:
    """The parameter buffer; integers may be given in more bytes than the parameter has."""
    if len(args) != len(function.parameters):
        raise LaunchRefused(
            f"{function.name} takes {len(function.parameters)} parameters, the launch passes"
            f" {len(args)}"
        )
    size = max((item.offset + item.size for item in function.parameters), default=0)
    buffer = bytearray(size)
    for position, (parameter, given) in enumerate(
        zip(function.parameters, args, strict=True), start=1
    ):
        if len(given) < parameter.size:
            raise LaunchRefused(
                f"{function.name}: parameter {position} has {parameter.size} bytes, the launch"
                f" passes {len(given)}"
            )
        buffer[parameter.offset : parameter.offset + parameter.size] = given[: parameter.size]
    return bytes(buffer)


@contextmanager
def _placed(memory: DeviceMemory, params: bytes) -> Iterator[int]:
    """The address of the parameter buffer: in device memory, because kernels may take addresses of
    parameters.
    """
    address = memory.allocate(max(1, len(params)), "parameters")
    try:
        memory.view(address, len(params))[:] = numpy.frombuffer(params, dtype=numpy.uint8)
        yield address
    finally:
        memory.free(address)
