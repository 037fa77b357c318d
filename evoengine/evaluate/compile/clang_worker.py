"""A compiler process: python -m evoengine.evaluate.compile.clang_worker

clang with the emulator's own headers: PTX that the emulator runs. clang itself sees nothing
but the source and these headers; this process and the clangs that it starts are confined on
top of that.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from evoengine.digest import digest
from evoengine.emulator import front
from evoengine.emulator.emulator_errors import CompileFailed, CompilerMissing
from evoengine.emulator.front import clang
from evoengine.evaluate.compile import compiler_log, ptx_formats
from evoengine.evaluate.compile.compile_unit import Built, CompileUnit, Toolchain
from evoengine.evaluate.compile.compiler_loop import serve
from evoengine.evaluate.compile.landlock import confine

_FRONT = Path(front.__file__).parent
# Where a clang of the system and the loader keep their libraries; the wheel's clang needs none of
# them.
_SYSTEM = ("/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/proc")
# the pool's own limit must come first: it makes a timeout of it
_PATIENCE = 2.0
_PLACES = re.compile(r"^\s*(?:\.loc|\.file|//).*\n?", re.MULTILINE)


class ClangCompiler:
    """Compiles units to PTX."""

    def compile(self, unit: CompileUnit) -> tuple[Built, bytes]:
        """The result for `unit`, and its PTX; `unsupported` where our headers lack what it uses."""
        try:
            compiled = clang.compile_cuda(
                unit.code,
                name=unit.name,
                macros=unit.macros,
                arch=unit.arch,
                kernels=unit.kernels,
                timeout_s=_PATIENCE * unit.timeout_s,
            )
        except CompileFailed as error:
            return Built(
                status="unsupported" if error.lacking else "compile_error",
                log=compiler_log.cleaned(error.log, []),
            ), b""
        formats = ptx_formats.formats(compiled.ptx, compiled.functions.values())
        return Built(
            status="ok",
            functions=dict(compiled.functions),
            formats={kernel: formats[function] for kernel, function in compiled.functions.items()},
            code_digest=digest(_PLACES.sub("", compiled.ptx)),
        ), compiled.ptx.encode()


def _start() -> tuple[Toolchain, ClangCompiler | None]:
    try:
        found = clang.find_clang()
    except CompilerMissing as error:
        return Toolchain(problem=str(error)), None
    return Toolchain(
        clang=found.version, confined=_confine(found), fingerprint=_fingerprint(found)
    ), ClangCompiler()


def _confine(found: clang.Clang) -> bool:
    """Confines this process to Python, clang and a folder for its files; returns whether the kernel
    could.
    """
    folder = tempfile.mkdtemp(prefix="evoengine-clang-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    tempfile.tempdir = folder
    program = Path(found.command[0]).resolve()
    readable = {*sys.path, sys.prefix, sys.base_prefix, str(_FRONT.parent.parent)}
    runnable = {str(program.parent), *_SYSTEM}
    confined = confine(_existing(readable), _existing(runnable), [folder, os.devnull])
    os.chdir("/")
    return confined


def _existing(places: set[str]) -> list[str]:
    return sorted(place for place in places if place and Path(place).exists())


def _fingerprint(found: clang.Clang) -> str:
    """Changes with the compiler, its options and our headers."""
    files = sorted(path for path in _FRONT.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return digest(
        found.version,
        *(
            part
            for path in files
            for part in (path.relative_to(_FRONT).as_posix(), path.read_bytes())
        ),
    )


if __name__ == "__main__":
    serve(_start)
    sys.exit(0)
