"""The loop of a compiler process, for any compiler.

It reads requests from its standard input, one JSON document a line, and answers on its standard
output. Both are moved to other descriptors first, so that nothing that the compiler prints can mix
with the answers. It ends with its parent.
"""

from __future__ import annotations

import base64
import os
import resource
import traceback
from collections.abc import Callable
from typing import IO, Protocol

from evoengine.evaluate.compile import compiler_log
from evoengine.evaluate.compile.compile_unit import Built, CompileUnit, Toolchain
from evoengine.evaluate.compile.compiler_protocol import (
    MAX_CODE_BYTES,
    CompileAnswer,
    CompileRequest,
    Hello,
)
from evoengine.evaluate.parent_death import die_with_parent
from evoengine.evaluate.process_isolation import isolate


class Compiler(Protocol):
    """Compiles units in a compiler process."""

    def compile(self, unit: CompileUnit) -> tuple[Built, bytes]:
        """The result for `unit`, and its code."""
        ...


def serve(start: Callable[[], tuple[Toolchain, Compiler | None]]) -> None:
    """Serves until the parent closes the pipe; `start` starts the compiler."""
    die_with_parent()
    isolate()
    requests, answers = _own_pipes()
    # a crash of the compiler should not fill the disk
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        toolchain, compiler = start()
    except Exception:  # noqa: BLE001 - top of a worker: the parent tells the user
        toolchain, compiler = Toolchain(problem=traceback.format_exc()), None
    _send(answers, Hello(toolchain=toolchain))
    for line in requests:
        if compiler is None:
            break
        request = CompileRequest.model_validate_json(line)
        _send(answers, _answer(compiler, request))


def _own_pipes() -> tuple[IO[bytes], IO[bytes]]:
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    return requests, answers


def _send(answers: IO[bytes], document: Hello | CompileAnswer) -> None:
    answers.write(document.model_dump_json().encode() + b"\n")
    answers.flush()


def _answer(compiler: Compiler, request: CompileRequest) -> CompileAnswer:
    limit = request.unit.memory_bytes
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
        try:
            built, code = compiler.compile(request.unit)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    except MemoryError:
        built, code = Built(status="out_of_memory"), b""
    except UnicodeEncodeError as error:
        built, code = (
            Built(
                status="compile_error",
                log=f"{request.unit.name}: error: the source is not text: {error}",
            ),
            b"",
        )
    except OSError:  # a full disk, no more processes: the next source would fare no better
        return CompileAnswer(id=request.id, fault=traceback.format_exc())
    except Exception as error:  # noqa: BLE001 - top of a worker: it compiled since it started, so this source is the cause
        built, code = Built(status="failed", log=_failed(request.unit, error)), b""
    if len(code) > MAX_CODE_BYTES:
        log = (
            f"{request.unit.name}: error: it compiles to {len(code)} bytes of machine code, allowed"
            f" are {MAX_CODE_BYTES}"
        )
        built, code = Built(status="compile_error", log=log), b""
    return CompileAnswer(id=request.id, built=built, code=base64.b64encode(code).decode())


def _failed(unit: CompileUnit, error: Exception) -> str:
    what = compiler_log.cleaned(f"{type(error).__name__}: {error}", [])
    return (
        f"{unit.name}: error: the compiler process failed on this source ({what});"
        " write it differently"
    )
