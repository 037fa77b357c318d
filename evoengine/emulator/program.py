"""A PTX module on the emulated device: its kernels are lowered and compiled when they are
launched.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass

import numpy

from evoengine.emulator.check.findings import STRAYS
from evoengine.emulator.emulator_errors import LaunchRefused
from evoengine.emulator.launch_report import Checks, LaunchReport, describe, fault_error
from evoengine.emulator.lower.kernel import FUNCTION, LoweredKernel, lower
from evoengine.emulator.lower.layout import lay_out
from evoengine.emulator.module_variables import ModuleVariables
from evoengine.emulator.ptx.inline import inline_calls
from evoengine.emulator.ptx.syntax import Function, Module
from evoengine.emulator.run.geometry import (
    Dimensions,
    LaunchGeometry,
    check_chosen_blocks,
    check_dimensions,
    check_memory,
)
from evoengine.emulator.run.jit import CompiledCode, Jit
from evoengine.emulator.run.launch import LaunchCode, run_blocks
from evoengine.emulator.run.launch_checker import LaunchChecker
from evoengine.emulator.run.memory import Buffer, DeviceMemory
from evoengine.emulator.run.printing import DevicePrinter
from evoengine.emulator.targets import TargetGpu

DEFAULT_FUEL = 1 << 34  # loop iterations and warp starts, for each host thread; some minutes
POISON = 0xFF  # NaN in every floating type


@dataclass(frozen=True)
class DeviceResources:
    """The parts of a device that its programs share."""

    target: TargetGpu
    threads: int  # host threads of a launch
    memory: DeviceMemory
    jit: Jit
    codegen_threads: ThreadPoolExecutor  # compile kernels in the background


@dataclass(frozen=True)
class _CompiledKernel:
    lowered: LoweredKernel
    code: CompiledCode


class Program:
    """A PTX module on the emulated device."""

    def __init__(self, parts: DeviceResources, module: Module) -> None:
        self.module = module
        self._device = parts
        self._variables = ModuleVariables(parts.memory, module)
        self._functions: dict[str, Function] = {}
        self._kernels: dict[tuple[str, Dimensions, bool], Future[_CompiledKernel]] = {}
        self._lock = threading.Lock()  # guards _functions

    def reset(self) -> None:
        """Resets every global variable to its initial value."""
        self._variables.reset()

    @property
    def variable_bytes(self) -> int:
        """The size of its global variables in bytes."""
        return self._variables.bytes

    @property
    def variable_values(self) -> bytes:
        """The current contents of its global variables; assign a saved value to restore them."""
        return self._variables.values

    @variable_values.setter
    def variable_values(self, saved: bytes) -> None:
        self._variables.values = saved

    def close(self) -> None:
        """Frees its variables and its code."""
        for kernel in self._kernels.values():
            kernel.cancel()
        self._kernels.clear()
        self._variables.close()

    def cancel_codegen(self, timeout_s: float) -> bool:
        """Cancels compilations that have not begun and waits for the others; returns whether all
        have finished.
        """
        # what was cancelled begins anew where it is launched after all
        self._kernels = {key: it for key, it in self._kernels.items() if not it.cancel()}
        return not wait(self._kernels.values(), timeout_s).not_done

    def start_compiling(self, symbol: str, block: Dimensions, checked: bool) -> None:
        """Starts to compile a kernel for thread blocks of `block` in the background.

        Errors in the kernel are raised when it is launched.
        """
        key = (symbol, block, checked)
        if key not in self._kernels:
            self._kernels[key] = self._device.codegen_threads.submit(
                self._compile, symbol, block, checked
            )

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
        poison: int = POISON,
    ) -> LaunchReport:
        """Runs kernel `symbol` to its end; `blocks` restricts the launch to these linear block
        indices.

        `args`: the bytes of every parameter, little-endian. `fuel`: the budget of loop iterations
        and warp starts of each host thread. `poison`: the byte that fills shared and local memory
        first. Raises LaunchRefused, Unsupported, PtxError, Trapped,
        OutOfFuel.
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
        check_chosen_blocks(chosen, math.prod(grid))
        self.start_compiling(symbol, block, checks is not None)
        kernel = self._kernels[symbol, block, checks is not None].result()
        layout = kernel.lowered.layout
        geometry = LaunchGeometry(
            grid,
            block,
            layout.static_shared,
            shared_bytes,
            layout.frame_bytes,
            kernel.lowered.warp_bytes,
        )
        check_memory(geometry, self._device.target.shared_per_block, self._device.target.title)
        with _placed(self._device.memory, params) as address:
            return self._run(
                kernel,
                geometry,
                address,
                checks,
                DEFAULT_FUEL if fuel is None else fuel,
                chosen,
                poison,
            )

    def _run(
        self,
        kernel: _CompiledKernel,
        geometry: LaunchGeometry,
        params: int,
        checks: Checks | None,
        fuel: int,
        chosen: tuple[int, ...] | None,
        poison: int,
    ) -> LaunchReport:
        parts, lowered = self._device, kernel.lowered
        buffers = tuple(parts.memory.buffers.values())
        weights = [len(node.instructions) for node in lowered.cfg.nodes]
        native = parts.jit.native
        is_guarded = parts.memory.is_guarded and checks is None
        driver = native.address("ev_run_guarded" if is_guarded else "ev_run")
        silence = native.address("ev_print_nothing")
        code = LaunchCode(
            driver, silence, kernel.code.address, params, self._variables.address, weights, poison
        )
        printer = DevicePrinter(parts.memory)
        launch_checker = (
            self._launch_checker(lowered, geometry, checks, buffers) if checks is not None else None
        )
        try:
            outcome = run_blocks(
                code,
                geometry,
                parts.memory,
                threads=parts.threads,
                fuel=fuel,
                chosen=chosen,
                on_print=None if is_guarded else printer.print,
                launch_checker=launch_checker,
            )
        finally:
            if launch_checker is not None:
                launch_checker.close()
        if outcome.fault is not None:
            strays = tuple(
                describe(item, lowered, buffers) for item in outcome.findings if item.kind in STRAYS
            )
            raise fault_error(outcome.fault, lowered.sites, printer.text, strays)
        return LaunchReport(
            blocks_run=outcome.blocks_run,
            blocks=geometry.blocks,
            warps=geometry.warps,
            printed=printer.text,
            findings=outcome.findings,
            accesses=outcome.accesses,
            counters=outcome.counters,
            lowered=lowered,
            block_work=outcome.block_work,
            warp_work=outcome.warp_work,
            site_accesses=outcome.site_accesses,
            contention=outcome.contention,
            buffers=buffers,
            rounds=outcome.rounds,
        )

    def _launch_checker(
        self,
        lowered: LoweredKernel,
        geometry: LaunchGeometry,
        checks: Checks,
        buffers: Sequence[Buffer],
    ) -> LaunchChecker:
        spans = [
            (item.address, item.bytes, item.address not in checks.uninitialised) for item in buffers
        ]
        return LaunchChecker(
            self._device.jit.native, checks.which, spans, geometry.blocks, len(lowered.sites) + 1
        )

    def _function(self, symbol: str) -> Function:
        with self._lock:
            if symbol not in self._functions:
                kernels = [name for name, item in self.module.functions.items() if item.is_kernel]
                if symbol not in kernels:
                    raise LaunchRefused(
                        f"no kernel {symbol!r};"
                        f" known kernels: {', '.join(sorted(kernels)) or 'none'}"
                    )
                self._functions[symbol] = inline_calls(self.module, symbol)
            return self._functions[symbol]

    def _compile(self, symbol: str, block: Dimensions, checked: bool) -> _CompiledKernel:
        """Lowers and compiles a kernel for the dimensions of a block, because these decide which
        registers are uniform.
        """
        function, parts = self._function(symbol), self._device
        layout = lay_out(self.module, function)
        layout.globals = self._variables.places
        layout.sm_count = parts.target.sms
        layout.arena_base, layout.arena_bits = parts.memory.base, parts.memory.bits
        lowered = lower(
            function, layout, block, checked=checked, vector_memory=parts.jit.has_avx512
        )
        return _CompiledKernel(lowered, parts.jit.compile(lowered.ir, FUNCTION, quick=checked))


def _parameters(function: Function, args: Sequence[bytes]) -> bytes:
    """The parameter buffer; an argument may have more bytes than its parameter, of which the low
    ones count.
    """
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
    """The address of the parameter buffer; it is in device memory, because kernels may take
    addresses of parameters.
    """
    address = memory.allocate(max(1, len(params)), "parameters")
    try:
        memory.view(address, len(params))[:] = numpy.frombuffer(params, dtype=numpy.uint8)
        yield address
    finally:
        memory.free(address)
