"""A compiler process: python -m evoengine.evaluate.compile.worker

Reads requests from its standard input, a JSON document a line, and answers on what was
its standard output; both are put aside first, so nothing that the compiler prints can
mix with the answers. It ends with its parent.
"""

from __future__ import annotations

import base64
import os
import resource
import sys
import traceback
from pathlib import Path
from typing import IO

from evoengine.digest import digest, digest_json
from evoengine.evaluate.compile.confine import confine
from evoengine.evaluate.compile.headers import HeaderSet, find_headers, unpack_bundled
from evoengine.evaluate.compile.includes import SHIM
from evoengine.evaluate.compile.nvrtc import OPTIONS, Compiler, Loaded, load
from evoengine.evaluate.compile.unit import Built, CompileUnit, Toolchain
from evoengine.evaluate.compile.wire import Answer, Hello, Request
from evoengine.evaluate.lifeline import die_with_parent
from evoengine.paths import cache_dir

_INSTALL = "install the compiler and its headers: pip install 'evoengine[cuda13]' (driver 580 or later) or 'evoengine[cuda12]'"
_WARM_UP = CompileUnit(code="__global__ void warm_up() {}", arch="sm_80", kernels=("warm_up",))


def main() -> None:
    """Serves until the parent closes the pipe."""
    die_with_parent()
    requests, answers = _own_pipes()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash of the compiler should not fill the disk
    try:
        toolchain, compiler = _start()
    except Exception:  # noqa: BLE001 - top of a worker: the parent tells the user
        toolchain, compiler = Toolchain(problem=traceback.format_exc()), None
    _send(answers, Hello(toolchain=toolchain))
    for line in requests:
        if compiler is None:
            break
        request = Request.model_validate_json(line)
        _send(answers, _answer(compiler, request))


def _own_pipes() -> tuple[IO[bytes], IO[bytes]]:
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    return requests, answers


def _send(answers: IO[bytes], document: Hello | Answer) -> None:
    answers.write(document.model_dump_json().encode() + b"\n")
    answers.flush()


def _answer(compiler: Compiler, request: Request) -> Answer:
    limit = request.unit.memory_bytes
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
        try:
            built, machine_code = compiler.compile(request.unit)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    except MemoryError:
        built, machine_code = Built(status="out_of_memory"), b""
    except UnicodeEncodeError as error:
        built, machine_code = Built(status="compile_error", log=f"{request.unit.name}: error: the source is not text: {error}"), b""
    except Exception:  # noqa: BLE001 - top of a worker: a fault of ours, raised in the parent
        return Answer(id=request.id, fault=traceback.format_exc())
    return Answer(id=request.id, built=built, cubin=base64.b64encode(machine_code).decode())


def _start() -> tuple[Toolchain, Compiler | None]:
    try:
        loaded = load()
    except (ImportError, OSError, RuntimeError) as error:
        return Toolchain(problem=f"no NVRTC: {error}; {_INSTALL}"), None
    version = f"{loaded.version[0]}.{loaded.version[1]}"
    headers = find_headers(loaded.version, lambda: unpack_bundled(loaded.library, cache_dir() / "headers" / version))
    problem = f"NVRTC {version} has no {', '.join(headers.missing)}; {_INSTALL}" if headers.missing else ""
    compiler = Compiler(loaded, headers.folders)
    confined = _leave_the_machine(loaded, headers)
    warm = compiler.compile(_WARM_UP)[0]  # loads the compiler's other half, 0.2 s that no candidate pays
    if warm.status != "ok":
        problem = problem or f"NVRTC {version} cannot compile an empty kernel: {warm.log}; {_INSTALL}"
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


def _leave_the_machine(loaded: Loaded, headers: HeaderSet) -> bool:
    """Nothing but headers and the compiler can be opened from now on; file names in machine code begin with /."""
    confined = confine([str(SHIM), *map(str, headers.folders), str(Path(loaded.library).parent)])
    os.chdir("/")
    return confined


def _fingerprint(loaded: Loaded, headers: HeaderSet) -> str:
    """Changes with compiler, options and headers, wherever these lie."""
    files = [*sorted(path for path in SHIM.iterdir() if path.is_file()), *(path for _, path in sorted(headers.found.items()))]
    size = Path(loaded.library).stat().st_size
    options = [option.replace(str(SHIM), "") for option in OPTIONS]
    return digest(digest_json([loaded.version, size, options, headers.version]), *(path.read_bytes() for path in files))


if __name__ == "__main__":
    main()
    sys.exit(0)
