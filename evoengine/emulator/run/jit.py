"""LLVM IR to machine code of this process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from weakref import WeakValueDictionary

import llvmlite.binding as llvm

from evoengine.emulator.errors import Unsupported
from evoengine.emulator.run.native import Native, load_native

# Of LLVM's code generator (docs/measurements/emulator-speed.md). Against 2, code of level 1 ran as fast and was made in three
# quarters of the time on every seed. Level 0 takes half as long again and its code runs half as fast: for what runs shortly.
CODE_LEVEL = 1
HASTY_CODE_LEVEL = 0


@cache
def initialise() -> None:
    """Readies LLVM for this machine, once."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@cache
def _runtime(cpu: str, features: str, folder: Path) -> Native:
    """The C runtime, kept as long as the process: LLVM's own calls find functions of it by name, and no device takes them back."""
    native = load_native(cpu, features, folder)
    for name, address in native.symbols.items():
        llvm.add_symbol(name, address)
    return native


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
        self.native = _runtime(self.cpu, self.features, cache_folder or cache_home())
        self._made: WeakValueDictionary[tuple[str, str, bool], Compiled] = WeakValueDictionary()

    def compile(self, ir: str, function: str, hasty: bool = False) -> Compiled:
        """Machine code of the module `ir`, entered at `function`; raises Unsupported for IR that is none.

        `hasty`: made in half the time, for code that is run less often than that saves. IR of which code is alive gets that one:
        the cases of a task share kernels that do not depend on what sets them apart.
        """
        key = ir, function, hasty
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = self._compile(ir, function, HASTY_CODE_LEVEL if hasty else CODE_LEVEL)
        return found

    def _compile(self, ir: str, function: str, level: int) -> Compiled:
        module = parsed(ir)
        machine = self._machine(level)
        module.triple = llvm.get_process_triple()
        module.data_layout = str(machine.target_data)
        _simplify(module, machine)
        engine = llvm.create_mcjit_compiler(module, machine)
        self._link(module, engine)
        engine.finalize_object()
        return Compiled(engine, engine.get_function_address(function))

    def _link(self, module: llvm.ModuleRef, engine: llvm.ExecutionEngine) -> None:
        """Ties calls to this device's own runtime; LLVM ends the process where it finds a function nowhere."""
        for item in module.functions:
            if not item.is_declaration or item.name.startswith("llvm."):
                continue
            address = self.native.symbols.get(item.name)
            if not address:
                raise Unsupported(f"{item.name}: the C runtime has no such function")
            engine.add_global_mapping(item, address)

    def _machine(self, level: int) -> llvm.TargetMachine:
        # A warp is two 512-bit vectors; without this LLVM splits them on CPUs that once ran slower so.
        features = self.features + (",-prefer-256-bit" if self.has_avx512 else "")
        return llvm.Target.from_default_triple().create_target_machine(cpu=self.cpu, features=features, opt=level, jit=True)


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


def parsed(ir: str) -> llvm.ModuleRef:
    """LLVM's module; raises Unsupported where it refuses: PTX with operands of types that do not fit lowers to such IR."""
    try:
        module = llvm.parse_assembly(ir)
        module.verify()
    except RuntimeError as error:
        raise Unsupported(f"operands of types that do not fit: {str(error).strip().splitlines()[0]}") from error
    return module


class Compiled:
    """Machine code, alive as long as this."""

    def __init__(self, engine: llvm.ExecutionEngine, address: int) -> None:
        self._engine = engine
        self.address = address


def cache_home(environ: Mapping[str, str] = os.environ) -> Path:
    """Where built parts are kept between processes."""
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "evoengine" / "emulator"
