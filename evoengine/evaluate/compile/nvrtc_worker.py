"""A compiler process: python -m evoengine.evaluate.compile.nvrtc_worker

NVRTC with NVIDIA's headers, confined to them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from evoengine.digest import digest, digest_json
from evoengine.evaluate.compile.compile_unit import CompileUnit, Toolchain
from evoengine.evaluate.compile.compiler_loop import serve
from evoengine.evaluate.compile.headers import HeaderSet, find_headers, unpack_bundled
from evoengine.evaluate.compile.includes import SHIM
from evoengine.evaluate.compile.landlock import confine
from evoengine.evaluate.compile.nvrtc import OPTIONS, LoadedNvrtc, NvrtcCompiler, load
from evoengine.evaluate.compile.nvrtc_binding import NVRTCError
from evoengine.paths import cache_dir

_INSTALL = (
    "install the compiler and its headers: pip install 'evoengine[cuda13]' (driver 580 or later),"
    " 'evoengine[cuda12]', or without a GPU 'evoengine[emulator]'"
)
_WARM_UP = CompileUnit(code="__global__ void warm_up() {}", arch="sm_80", kernels=("warm_up",))


def _start() -> tuple[Toolchain, NvrtcCompiler | None]:
    try:
        loaded = load()
    except (OSError, NVRTCError) as error:
        return Toolchain(problem=f"no NVRTC: {error}; {_INSTALL}"), None
    version = f"{loaded.version[0]}.{loaded.version[1]}"
    headers = find_headers(
        loaded.version, lambda: unpack_bundled(loaded.library, cache_dir() / "headers" / version)
    )
    problem = (
        f"NVRTC {version} has no {', '.join(headers.missing)}; {_INSTALL}"
        if headers.missing
        else ""
    )
    compiler = NvrtcCompiler(loaded, headers.folders)
    confined = _confine(loaded, headers)
    # loads the rest of the compiler, so that no candidate waits these 0.2 s
    warm = compiler.compile(_WARM_UP)[0]
    if warm.status != "ok":
        problem = (
            problem or f"NVRTC {version} cannot compile an empty kernel: {warm.log}; {_INSTALL}"
        )
    toolchain = Toolchain(
        nvrtc=version,
        library=loaded.library,
        architectures=tuple(loaded.binding.getSupportedArchs()),
        folders=(str(SHIM), *map(str, headers.folders)),
        headers={name: str(path) for name, path in headers.found.items()},
        missing=headers.missing,
        source=headers.source,
        confined=confined,
        fingerprint=_fingerprint(loaded, headers),
        problem=problem,
    )
    return toolchain, None if problem else compiler


def _confine(loaded: LoadedNvrtc, headers: HeaderSet) -> bool:
    """Confines this process to headers and compiler; returns whether the kernel could.

    The working directory becomes /, which file names in machine code then begin with.
    """
    confined = confine([str(SHIM), *map(str, headers.folders), str(Path(loaded.library).parent)])
    os.chdir("/")
    return confined


def _fingerprint(loaded: LoadedNvrtc, headers: HeaderSet) -> str:
    """Changes with compiler, options and headers, wherever these lie."""
    files = [
        *sorted(path for path in SHIM.iterdir() if path.is_file()),
        *(path for _, path in sorted(headers.found.items())),
    ]
    size = Path(loaded.library).stat().st_size
    options = [option.replace(str(SHIM), "") for option in OPTIONS]
    return digest(
        digest_json([loaded.version, size, options, headers.version]),
        *(path.read_bytes() for path in files),
    )


if __name__ == "__main__":
    serve(_start)
    sys.exit(0)
