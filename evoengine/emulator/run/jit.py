"""Compiles LLVM IR and links it to the C runtime in this process."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from functools import cache
from pathlib import Path
from weakref import WeakValueDictionary

import llvmlite.binding as llvm

from evoengine.emulator.emulator_errors import Unsupported
from evoengine.emulator.run.codegen_child import DECLARED_FUNCTIONS, initialise_llvm, target_machine
from evoengine.emulator.run.codegen_pool import codegen_pool
from evoengine.emulator.run.native import NativeRuntime, load_runtime

# Of LLVM's code generator (benchmarks.levels; docs/measurements/emulator-speed.md): 2 takes 5 to 9
# % longer than 1, and its code is no faster. 0 takes three fifths of 1, and its code runs more
# slowly: for short runs.
CODE_LEVEL = 1
QUICK_CODE_LEVEL = 0


@cache
def _runtime(cpu: str, features: str, folder: Path) -> NativeRuntime:
    """The C runtime, kept until this process exits: LLVM's own calls find its functions by name,
    and are never unregistered.
    """
    native = load_runtime(cpu, features, folder)
    for name, address in native.symbols.items():
        llvm.add_symbol(name, address)
    return native


class Jit:
    """Compiles lowered kernels for this machine; `without`: prefixes of CPU features not to use."""

    def __init__(self, cache_folder: Path | None = None, without: tuple[str, ...] = ()) -> None:
        initialise_llvm()
        self.cpu = llvm.get_host_cpu_name()
        found = llvm.get_host_cpu_features()
        for name in list(found):
            if any(name.startswith(prefix) for prefix in without):
                found[name] = False
        self.has_avx512 = bool(
            found.get("avx512f") and found.get("avx512bw") and found.get("avx512vl")
        )
        self.features = found.flatten()
        self.native = _runtime(self.cpu, self.features, cache_folder or cache_home())
        self._lock = threading.Lock()
        self._compiled: WeakValueDictionary[tuple[str, str, bool], CompiledCode] = (
            WeakValueDictionary()
        )
        self._compiling: dict[tuple[str, str, bool], Future[CompiledCode]] = {}

    def compile(self, ir: str, function: str, quick: bool = False) -> CompiledCode:
        """Machine code of the module `ir`, with entry `function`; raises Unsupported for invalid
        IR.

        `quick`: compiled in three fifths of the time, for code that runs too shortly to be worth
        more. Code that is still in use is returned again for the same IR, because the cases of a
        task often share kernels. Thread-safe.
        """
        key = ir, function, quick
        with self._lock:
            cached, under_way = self._compiled.get(key), self._compiling.get(key)
            if cached is None and under_way is None:
                own = self._compiling[key] = Future()
        if cached is not None:
            return cached
        if under_way is not None:
            return under_way.result()
        try:
            found = self._compile(ir, function, QUICK_CODE_LEVEL if quick else CODE_LEVEL)
            own.set_result(found)
        except BaseException as error:
            own.set_exception(error)
            raise
        finally:
            with self._lock:
                if own.exception() is None:
                    self._compiled[key] = own.result()
                del self._compiling[key]
        return found

    def _compile(self, ir: str, function: str, level: int) -> CompiledCode:
        # A warp of 32-bit values is two 512-bit vectors; without this LLVM splits them on CPUs for
        # which it prefers 256 bits.
        features = self.features + (",-prefer-256-bit" if self.has_avx512 else "")
        return self._linked(
            codegen_pool().compile(ir, self.cpu, features, level),
            DECLARED_FUNCTIONS.findall(ir),
            function,
        )

    def _linked(self, object_file: bytes, names: list[str], function: str) -> CompiledCode:
        """The code linked into this process. Calls are bound to this runtime beforehand, because
        LLVM aborts the process for a function that it does not find.
        """
        module = llvm.parse_assembly("".join(f"declare void @{name}()\n" for name in names))
        engine = llvm.create_mcjit_compiler(
            module, target_machine(self.cpu, self.features, CODE_LEVEL)
        )
        for item in module.functions:
            address = self.native.symbols.get(item.name)
            if not address:
                raise Unsupported(f"{item.name}: the C runtime has no such function")
            engine.add_global_mapping(item, address)
        engine.add_object_file(llvm.ObjectFileRef.from_data(object_file))
        engine.finalize_object()
        return CompiledCode(engine, engine.get_function_address(function))


class CompiledCode:
    """Machine code, freed together with this object."""

    def __init__(self, engine: llvm.ExecutionEngine, address: int) -> None:
        self._engine = engine
        self.address = address


def cache_home(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder of the compiled C runtime, which is kept between processes."""
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "evoengine" / "emulator"
