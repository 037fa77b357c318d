"""Machine code of this process, linked to the C runtime."""

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
from evoengine.emulator.run.codegen_child import FUNCTIONS, initialise, machine
from evoengine.emulator.run.codegen_pool import codegen_pool
from evoengine.emulator.run.native import Native, load_native

# Of LLVM's code generator (benchmarks.levels; docs/measurements/emulator-speed.md): 2 takes 5 to 9
# % longer than 1, and its code is no faster. 0 takes three fifths of 1, and its code runs more
# slowly: for what runs shortly.
CODE_LEVEL = 1
HASTY_CODE_LEVEL = 0


@cache
def _runtime(cpu: str, features: str, folder: Path) -> Native:
    """The C runtime, kept as long as the process: LLVM's own calls find functions of it by name,
    and no device takes them back.
    """
    native = load_native(cpu, features, folder)
    for name, address in native.symbols.items():
        llvm.add_symbol(name, address)
    return native


class Jit:
    """Compiles lowered kernels for this machine; `without` masks CPU features, as a machine without
    them.
    """

    def __init__(self, cache_folder: Path | None = None, without: tuple[str, ...] = ()) -> None:
        initialise()
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
        self._made: WeakValueDictionary[tuple[str, str, bool], CompiledCode] = WeakValueDictionary()
        self._making: dict[tuple[str, str, bool], Future[CompiledCode]] = {}

    def compile(self, ir: str, function: str, hasty: bool = False) -> CompiledCode:
        """Machine code of the module `ir`, entered at `function`; raises Unsupported for IR that is
        none.

        `hasty`: made in three fifths of the time, for code that runs too shortly to be worth more.
        IR of which code is alive gets that one: the cases of a task share kernels that do not
        depend on what sets them apart. Any number of threads may call this.
        """
        key = ir, function, hasty
        with self._lock:
            known, under_way = self._made.get(key), self._making.get(key)
            if known is None and under_way is None:
                own = self._making[key] = Future()
        if known is not None:
            return known
        if under_way is not None:
            return under_way.result()
        try:
            found = self._compile(ir, function, HASTY_CODE_LEVEL if hasty else CODE_LEVEL)
            own.set_result(found)
        except BaseException as error:
            own.set_exception(error)
            raise
        finally:
            with self._lock:
                if own.exception() is None:
                    self._made[key] = own.result()
                del self._making[key]
        return found

    def _compile(self, ir: str, function: str, level: int) -> CompiledCode:
        # A warp is two 512-bit vectors; without this LLVM splits them on CPUs that once ran slower
        # so.
        features = self.features + (",-prefer-256-bit" if self.has_avx512 else "")
        return self._linked(
            codegen_pool().make(ir, self.cpu, features, level), FUNCTIONS.findall(ir), function
        )

    def _linked(self, made: bytes, names: list[str], function: str) -> CompiledCode:
        """The code in this process. Calls are tied to this device's own runtime; LLVM ends the
        process where it finds one nowhere.
        """
        module = llvm.parse_assembly("".join(f"declare void @{name}()\n" for name in names))
        engine = llvm.create_mcjit_compiler(module, machine(self.cpu, self.features, CODE_LEVEL))
        for item in module.functions:
            address = self.native.symbols.get(item.name)
            if not address:
                raise Unsupported(f"{item.name}: the C runtime has no such function")
            engine.add_global_mapping(item, address)
        engine.add_object_file(llvm.ObjectFileRef.from_data(made))
        engine.finalize_object()
        return CompiledCode(engine, engine.get_function_address(function))


class CompiledCode:
    """Machine code, alive as long as this."""

    def __init__(self, engine: llvm.ExecutionEngine, address: int) -> None:
        self._engine = engine
        self.address = address


def cache_home(environ: Mapping[str, str] = os.environ) -> Path:
    """Where built parts are kept between processes."""
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "evoengine" / "emulator"
