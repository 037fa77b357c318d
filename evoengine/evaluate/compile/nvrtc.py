"""One unit through NVRTC, inside a compiler process."""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass
from pathlib import Path

from evoengine.evaluate.compile import (
    compiler_log,
    cubin,
    instruction_counts,
    machine_code,
    ptxas_log,
)
from evoengine.evaluate.compile.compile_unit import Built, CompileUnit
from evoengine.evaluate.compile.elf_sections import FOREIGN
from evoengine.evaluate.compile.includes import PRELUDE, SHIM
from evoengine.evaluate.compile.nvrtc_binding import Binding, load_nvrtc
from evoengine.evaluate.compile.parameter_rules import parameter_problem
from evoengine.evaluate.compile.ptxas_log import RECURSIVE_CALLS, AssemblerReport
from evoengine.records import KernelResources

OPTIONS = (
    "--std=c++17",
    # There is no host code, so what has no annotation is meant for the device; nvcc accepts
    # unannotated constexpr helpers too.
    "--device-as-default-execution-space",
    "--device-int128",  # as nvcc does
    # Profilers and memory checkers can then name the candidate's lines; it costs no speed.
    "-lineinfo",
    # Nothing else reports spills.
    "--ptxas-options=-v",
    # libcu++ and the shim both define limits such as INT_MAX, with equal values.
    "--diag-suppress=47",
    f"-I{SHIM}",
    f"--pre-include={SHIM / PRELUDE}",
)

_OUT_OF_MEMORY = re.compile(
    r"catastrophic error: out of memory$|NVRTC_ERROR_OUT_OF_MEMORY", re.MULTILINE
)


@dataclass(frozen=True)
class LoadedNvrtc:
    """The binding and the library behind it."""

    binding: Binding
    version: tuple[int, int]
    library: str


def load() -> LoadedNvrtc:
    """The NVRTC of this environment; raises OSError or NVRTCError if none works."""
    binding = load_nvrtc()
    return LoadedNvrtc(binding, binding.getVersion(), _loaded_library())


def _loaded_library() -> str:
    """The path of the library that this process has mapped."""
    maps = Path("/proc/self/maps").read_text()
    names = {line.split(maxsplit=5)[5] for line in maps.splitlines() if "libnvrtc.so" in line}
    return min(names, default="")


class NvrtcCompiler:
    """Compiles units with one NVRTC and one set of header folders."""

    def __init__(self, loaded: LoadedNvrtc, folders: tuple[Path, ...]) -> None:
        self.nvrtc = loaded.binding
        self.library = ctypes.CDLL(loaded.library)
        self.folders = folders

    def compile(self, unit: CompileUnit) -> tuple[Built, bytes]:
        """The result for `unit`, and its cubin: a real one, because PTX may hold instructions that
        the assembler refuses.
        """
        program = self.nvrtc.createProgram(unit.code, unit.name)
        try:
            for kernel in unit.kernels:
                self.nvrtc.addNameExpression(program, kernel)
            try:
                self.nvrtc.compileProgram(program, self.options(unit, unit.arch))
            except self.nvrtc.NVRTCError as error:
                return self._failed(unit, str(error), self._log(program)), b""
            log = self._log(program)
            functions = {kernel: self._lowered_name(program, kernel) for kernel in unit.kernels}
            absent = [kernel for kernel, function in functions.items() if not function]
            if absent:
                return (
                    Built(
                        status="compile_error",
                        log=_missing_kernels(unit, absent, self._cleaned(log)),
                    ),
                    b"",
                )
            if problem := self._parameter_problem(program, functions):
                return Built(status="refused", log=problem), b""
            code = cubin.completed(self.nvrtc.getCUBIN(program))
            return self._built(unit, functions, code, log), code
        finally:
            self.nvrtc.destroyProgram(program)

    def _parameter_problem(self, program: int, functions: dict[str, str]) -> str:
        """Why the kernels' use of their parameters is refused, in one line; empty if it is not."""
        ptx = self.nvrtc.getPTX(program)  # beside the cubin, and from the same compilation
        if not ptx:
            return "NVRTC returned no PTX, so that the use of parameters cannot be checked"
        return parameter_problem(ptx, {name: kernel for kernel, name in functions.items()})

    def _log(self, program: int) -> str:
        """The compiler's log. It quotes the source, which need not be UTF-8; the binding would
        raise.
        """
        size = ctypes.c_size_t()
        if (
            self.library.nvrtcGetProgramLogSize(ctypes.c_void_p(program), ctypes.byref(size)) != 0
            or size.value < 1
        ):
            return ""
        text = ctypes.create_string_buffer(size.value)
        status = self.library.nvrtcGetProgramLog(ctypes.c_void_p(program), text)
        # it can hold NUL characters
        return text.raw[:-1].decode("utf-8", "replace") if status == 0 else ""

    def _lowered_name(self, program: int, kernel: str) -> str:
        """The kernel's name in the cubin; empty if the compiler did not look it up.

        A source that ends inside a comment or an #if swallows the lines that NVRTC appends
        for names. The binding would then read the name at address zero.
        """
        name = ctypes.c_char_p()
        status = self.library.nvrtcGetLoweredName(
            ctypes.c_void_p(program), kernel.encode(), ctypes.byref(name)
        )
        return name.value.decode("utf-8", FOREIGN) if status == 0 and name.value else ""

    def options(self, unit: CompileUnit, arch: str) -> list[str]:
        """NVRTC's options for a unit."""
        macros = [f"-D{name}={value}" for name, value in unit.macros.items()]
        return [
            f"--gpu-architecture={_with_all_features(arch)}",
            *OPTIONS,
            *(f"-I{folder}" for folder in self.folders),
            *macros,
        ]

    def _built(self, unit: CompileUnit, functions: dict[str, str], code: bytes, log: str) -> Built:
        facts, spills = cubin.kernels(code), ptxas_log.reports(log)
        formats = machine_code.formats(code, functions.values())
        counts = instruction_counts.counted(code, functions.values(), unit.arch)
        resources, params = [], {}
        for kernel, function in functions.items():
            if function not in facts:
                return Built(
                    status="compile_error",
                    log=(
                        f"launch plan: error: {kernel} is not a __global__ function; the plan"
                        " launches kernels only"
                    ),
                )
            fact, report = facts[function], spills.get(function)
            params[kernel] = fact.params
            resources.append(
                KernelResources(
                    kernel=kernel,
                    arch=unit.arch,
                    registers=fact.registers,
                    static_shared_bytes=max(
                        0, fact.static_shared_bytes - cubin.reserved_shared_bytes(unit.arch)
                    ),
                    dynamic_shared_bytes=0,
                    local_bytes=_stack_bytes(fact, report),
                    spill_store_bytes=report.spill_store_bytes if report else 0,
                    spill_load_bytes=report.spill_load_bytes if report else 0,
                    cubin_bytes=len(code),
                    formats=formats[function],
                    machine_code=counts.get(function),
                )
            )
        return Built(
            status="ok",
            log=self._cleaned(log),
            functions=functions,
            resources=tuple(resources),
            params=params,
            formats={kernel: formats[function] for kernel, function in functions.items()},
            code_digest=cubin.code_digest(code),
        )

    def _failed(self, unit: CompileUnit, error: str, log: str) -> Built:
        if _OUT_OF_MEMORY.search(error) or _OUT_OF_MEMORY.search(log):
            return Built(status="out_of_memory", log=self._cleaned(log))
        if compiler_log.assembler_errors(log):
            log = compiler_log.traced(log, self._ptx(unit), unit.name)
        return Built(status="compile_error", log=self._cleaned(log) or error)

    def _ptx(self, unit: CompileUnit) -> str:
        """The PTX that was passed to the assembler; empty if NVRTC does not return it."""
        program = self.nvrtc.createProgram(unit.code, unit.name)
        try:
            for kernel in unit.kernels:
                self.nvrtc.addNameExpression(program, kernel)
            self.nvrtc.compileProgram(
                program, self.options(unit, unit.arch.replace("sm_", "compute_"))
            )
            return self.nvrtc.getPTX(program)
        except self.nvrtc.NVRTCError:
            return ""
        finally:
            self.nvrtc.destroyProgram(program)

    def _cleaned(self, log: str) -> str:
        return compiler_log.cleaned(log, [str(SHIM), *map(str, self.folders)])


def _with_all_features(arch: str) -> str:
    """`arch` with the features that no other device has (wgmma, setmaxnreg): the suffix a.

    Such code runs on this device alone, and it is compiled for the device at hand.
    """
    number = re.search(r"\d+\Z", arch)
    return f"{arch}a" if number and int(number[0]) >= 90 else arch


def _stack_bytes(fact: cubin.KernelFacts, report: AssemblerReport | None) -> int:
    """The stack of a thread: the cubin's figure leaves out what functions that call themselves
    take, so that their frames are in the log alone.
    """
    frame = report.callee_stack_bytes if report else 0
    return fact.local_bytes if frame <= fact.local_bytes else frame * RECURSIVE_CALLS


def _missing_kernels(unit: CompileUnit, kernels: list[str], log: str) -> str:
    where = f"{unit.name}({unit.code.count(chr(10)) + 1})"
    return (
        f"{where}: error: found no {', '.join(kernels)} up to here; is a comment, a string or an"
        f" #if left open?\n{log}".strip()
    )
