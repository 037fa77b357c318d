"""Compiles CUDA C++ to PTX with clang and our own headers.

clang sees a virtual file system that contains only the source and `include/`, so a candidate can
neither read the machine's files nor find out which exist. It runs as a child process with limits on
time, memory and output.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evoengine.emulator.emulator_errors import CompileFailed, CompilerMissing
from evoengine.emulator.front import (
    clang_process,
    diagnosis,
    overlay,
    precompiled,
    translation_unit,
)

CLANG_VARIABLE = "EVOENGINE_CLANG"
MIN_CLANG_MAJOR = (
    18  # the first with PTX 8.3 and scoped atomics, which the headers use; tested with 22
)
INSTALL_HINT = "pip install 'evoengine[emulator]' (brings clang in the wheel ziglang)"
PTX = "+ptx83"  # e4m3 and e5m2 conversions of sm_89 need 8.1; clang 18 ends at 8.3
PTX_BLACKWELL = "+ptx86"  # the first with sm_100 and sm_120
# the seeds take 0.06 to 0.5 s; large unrolled kernels on a busy machine take longer
TIMEOUT_S = 60.0

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)
_ARCH = re.compile(r"sm_(\d+)[af]?\Z", re.ASCII)
_VERSION = re.compile(r"clang version (\d+)(?:\.\d+)*")
_PROBE = (
    '__attribute__((global)) void probe(float *x) { asm("ex2.approx.f32 %0, %0;" : "+f"(*x)); }'
)


@dataclass(frozen=True)
class Clang:
    """A clang that compiles CUDA for NVPTX; arguments are appended to `command`."""

    command: tuple[str, ...]
    version: str  # "22.1.8"


@dataclass(frozen=True)
class CompiledPtx:
    """PTX text, and the symbol of each requested kernel expression in it."""

    ptx: str
    functions: Mapping[str, str]


def find_clang() -> Clang:
    """The clang to use; raises CompilerMissing, which lists the candidates that were tried.

    The first of: the program that EVOENGINE_CLANG names (if set, nothing else is tried), the wheel
    ziglang, `clang` or `clang-NN` on PATH. It must be new enough and compile a test kernel.
    """
    return _find(os.environ.get(CLANG_VARIABLE, ""), os.environ.get("PATH", ""))


@functools.lru_cache(maxsize=8)
def _find(named: str, path: str) -> Clang:
    tried = []
    for what, command in _candidates(named, path):
        found = _usable(command) if command else "not found"
        if isinstance(found, Clang):
            return found
        tried.append(f"{what}: {found}")
    raise CompilerMissing(
        f"no clang that compiles CUDA; tried {'; '.join(tried)}. To get one: {INSTALL_HINT}"
    )


def _candidates(named: str, path: str) -> list[tuple[str, tuple[str, ...]]]:
    if named:
        program = shutil.which(named, path=path)
        return [(f"{CLANG_VARIABLE}={named}", (program,) if program else ())]
    places = [("the wheel ziglang", _wheel())]
    for name in ("clang", *(f"clang-{major}" for major in range(30, MIN_CLANG_MAJOR - 1, -1))):
        program = shutil.which(name, path=path)
        if program:
            places.append((name, (program,)))
    return (
        places
        if len(places) > 1
        else [*places, (f"clang or clang-{MIN_CLANG_MAJOR}.. on PATH", ())]
    )


def _wheel() -> tuple[str, ...]:
    """The compiler of the wheel ziglang, called directly: `python -m ziglang` would start another
    Python.
    """
    spec = importlib.util.find_spec("ziglang")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for program in ("zig", "zig.exe"):
            if (Path(folder) / program).is_file():
                return str(Path(folder) / program), "clang"
    return ()


def _usable(command: tuple[str, ...]) -> Clang | str:
    """The compiler, or the reason why it cannot be used."""
    try:
        with tempfile.TemporaryDirectory(prefix="evoengine-clang-") as folder:
            reported = clang_process.run([*command, "--version"], Path(folder), 30.0)
            version = _VERSION.search(reported.stdout)
            if not version:
                return "is not clang"
            if int(version[1]) < MIN_CLANG_MAJOR:
                return f"{version[0]}, but {MIN_CLANG_MAJOR} or later is needed"
            probe = Path(folder) / "probe.cu"
            probe.write_text(_PROBE)
            compiled = clang_process.run(
                [*command, *_target("sm_80"), "-S", "-o", "-", str(probe)], Path(folder), 30.0
            )
    except OSError as error:
        return f"does not start ({error.strerror})"
    if compiled.code != 0 or ".entry" not in compiled.stdout:
        return "does not compile for NVPTX"
    return Clang(command, version[0].removeprefix("clang version "))


def _target(arch: str) -> list[str]:
    found = _ARCH.match(arch)
    if not found:
        raise ValueError(f"arch: expected sm_NN, got {arch!r}")
    return [
        *("-cc1", "-triple", "nvptx64-nvidia-cuda", "-aux-triple", "x86_64-unknown-linux-gnu"),
        *("-target-cpu", arch, "-target-feature", PTX_BLACKWELL if int(found[1]) >= 100 else PTX),
        *("-x", "cuda", "-fcuda-is-device", "-std=c++17"),
    ]


# NVIDIA's compiler inlines every function unless it is told not to, and unrolls longer loops than
# LLVM does by default. What is not inlined takes arrays by address, and what is not unrolled
# indexes them with a variable: both leave in local memory what ptxas keeps in registers. LLVM's
# defaults are 225, of which NVPTX makes eleven times as much, and 150. Over tests/honest these
# leave an array in local memory where NVRTC does, but for one, and the code of loops that are
# unrolled is as long; with 300 four arrays stay, and 2700 makes code longer than NVRTC's.
_AS_NVCC = ("-mllvm", "-inline-threshold=10000", "-mllvm", "-unroll-threshold=1000")
_OPTIONS = (
    *_AS_NVCC,
    *("-O2", "-fno-jump-tables", "-nostdsysteminc", "-nobuiltininc", "-fdeclspec"),
    # As nvcc: a multiplication and an addition are fused, unless __fmul_rn forbids it.
    "-ffp-contract=fast-honor-pragmas",
    # As nvcc: what is stored as halves may be read back as a uint4.
    "-relaxed-aliasing",
    # `.loc` without the rest of DWARF: the candidate's source line of every instruction.
    *("-debug-info-kind=line-directives-only", "-dwarf-version=2", "-fdebug-compilation-dir=."),
    *("-internal-isystem", overlay.INCLUDE),
    *(
        "-w",
        "-ferror-limit",
        "20",
        "-ftemplate-backtrace-limit=3",
        "-fmessage-length=0",
        "-fno-caret-diagnostics",
        "-fshow-overloads=best",
    ),
)


def options(arch: str) -> list[str]:
    """clang's options for `arch`, except those for the file names; raises ValueError for an invalid
    arch.
    """
    return [*_target(arch), *_OPTIONS]


def compile_cuda(
    source: str,
    *,
    name: str,
    macros: Mapping[str, str | int],
    arch: str,
    kernels: Sequence[str],
    timeout_s: float = TIMEOUT_S,
) -> CompiledPtx:
    """Compiles `source` to PTX; `kernels` are names or name expressions such as "sdpa<D, causal>".

    Messages and `.loc` give the lines of `source`, which is called `name`; `macros` are defined
    before it; `arch` is e.g. "sm_89". Every kernel that is not a template is in the PTX, requested
    or not.

    Raises CompileFailed with the compiler's log, with `lacking` if something is missing from our
    headers; CompilerMissing; ValueError for an invalid name, macro, arch or kernel.
    """
    command = [*find_clang().command, *options(arch)]
    text = translation_unit.text(_checked(source, name), name, _checked_macros(macros), kernels)
    result = _run(
        command,
        text,
        precompiled.find(command, translation_unit.headers(source)),
        ("-S",),
        timeout_s,
    )
    if result.ended or result.stderr.startswith("LLVM ERROR: out of memory"):
        raise CompileFailed(
            f"{name}: the compiler was stopped:"
            f" {result.ended or f'it ran out of its {clang_process.MEMORY_BYTES >> 30} GB'}"
        )
    if result.code != 0:
        raise diagnosis.failure(
            result.stderr, name, source, kernels, functools.partial(names, arch)
        )
    return _linked(result.stdout, name, source, kernels)


@functools.cache
def names(arch: str) -> frozenset[str]:
    """All identifiers in our headers, for `arch`."""
    return frozenset(re.findall(r"[A-Za-z_]\w*", preprocessed(arch, overlay.headers(), "-dD")))


def preprocessed(arch: str, headers: Sequence[str], *more: str) -> str:
    """The preprocessed text of `headers` for `arch`, after the prelude; `more`: further
    preprocessor options.
    """
    command = [*find_clang().command, *options(arch)]
    return _run(
        command,
        "".join(f"#include <{header}>\n" for header in headers),
        None,
        ("-E", "-P", *more),
        TIMEOUT_S,
    ).stdout


def _run(
    command: Sequence[str],
    text: str,
    ready: precompiled.PrecompiledHeaders | None,
    action: Sequence[str],
    timeout_s: float,
) -> clang_process.ProcessResult:
    with tempfile.TemporaryDirectory(prefix="evoengine-clang-") as folder:
        files = overlay.write(
            Path(folder),
            {overlay.SOURCE: text.encode(), **(ready.files if ready else {})},
        )
        first = ready.options if ready else ("-include", overlay.PRELUDE)
        return clang_process.run(
            [*command, *first, "-ivfsoverlay", str(files), *action, "-o", "-", overlay.SOURCE],
            Path(folder),
            timeout_s,
        )


def _checked(source: str, name: str) -> str:
    if not name or re.search(r'["\\\x00-\x1f]', name):
        raise ValueError(
            "name: expected a file's name without quotes, backslashes and control characters, got"
            f" {name!r}"
        )
    if bad := re.search("[\0\ud800-\udfff]", source):
        line = source.count("\n", 0, bad.start()) + 1
        raise CompileFailed(f"{name}:{line}: error: character {bad[0]!r} is not allowed")
    return source


def _checked_macros(macros: Mapping[str, str | int]) -> Mapping[str, str | int]:
    for macro, value in macros.items():
        if not _IDENTIFIER.match(macro) or re.search(r"[\x00-\x1f\\]", str(value)):
            raise ValueError(
                f"macros: expected an identifier and a value on one line, got {macro!r}={value!r}"
            )
    return macros


def _linked(ptx: str, name: str, source: str, kernels: Sequence[str]) -> CompiledPtx:
    found, ptx = translation_unit.extracted(ptx, kernels)
    entries = translation_unit.entries(ptx)
    for kernel in kernels:
        if found.get(kernel) not in entries:
            raise CompileFailed(
                f"{name}: error: {kernel} is not a __global__ function"
                f"{diagnosis.known_kernels(source)}"
            )
    return CompiledPtx(ptx, found)
