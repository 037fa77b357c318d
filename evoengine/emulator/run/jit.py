"""LLVM IR to machine code of this process."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import llvmlite.binding as llvm

from evoengine.emulator.run.native import Native, load_native

# Of LLVM's code generator. Against 2 its code ran as fast and was made in three quarters of the time on every seed
# (docs/measurements/emulator-speed.md).
CODE_LEVEL = 1


@cache
def initialise() -> None:
    """Readies LLVM for this machine, once."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


class Jit:
    """Compiles lowered kernels for this machine; `without` masks CPU features, as a machine without them."""

    def __init__(self, cache_folder: Path | None = None, without: tuple[str, ...] = ()) -> None:
        initialise()
        self.cpu = llvm.get_host_cpu_name()
        found = llvm.get_host_cpu_features()
        for name in list(found):
            if any(name.startswith(prefix) for prefix in without):
                found[name] = False
        self.has_avx512 = bool(found.get("avx512f") and found.get("avx512bw") and found.get("avx512vl"))
        self.features = found.flatten()
        self.native: Native = load_native(self.cpu, self.features, cache_folder or cache_home())
        for name, address in self.native.symbols.items():
            llvm.add_symbol(name, address)

    def compile(self, ir: str, function: str) -> Compiled:
        """Machine code of the module `ir`, entered at `function`."""
        module = llvm.parse_assembly(ir)
        machine = self._machine()
        module.triple = llvm.get_process_triple()
        module.data_layout = str(machine.target_data)
        _simplify(module, machine)
        engine = llvm.create_mcjit_compiler(module, machine)
        engine.finalize_object()
        return Compiled(engine, engine.get_function_address(function))

    def _machine(self) -> llvm.TargetMachine:
        # A warp is two 512-bit vectors; without this LLVM splits them on CPUs that once ran slower so.
        features = self.features + (",-prefer-256-bit" if self.has_avx512 else "")
        return llvm.Target.from_default_triple().create_target_machine(cpu=self.cpu, features=features, opt=CODE_LEVEL, jit=True)


def _simplify(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """Registers out of memory, and no code that does nothing.

    clang has optimised the kernel already: the whole of -O2 takes five times as long as this and its code runs no faster.
    """
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_aggressive_dce_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.PipelineTuningOptions()))


class Compiled:
    """Machine code, alive as long as this."""

    def __init__(self, engine: llvm.ExecutionEngine, address: int) -> None:
        self._engine = engine
        self.address = address


def cache_home(environ: Mapping[str, str] = os.environ) -> Path:
    """Where built parts are kept between processes."""
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "evoengine" / "emulator"


def function(address: int, result: type | None, *arguments: type) -> ctypes._NamedFuncPointer:
    """A C function at `address`; the interpreter's lock is not held while it runs."""
    return ctypes.CFUNCTYPE(result, *arguments)(address)  # type: ignore[return-value]
