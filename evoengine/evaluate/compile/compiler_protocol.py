"""The messages between parent and compiler process: one JSON document a line."""

from __future__ import annotations

from evoengine.evaluate.compile.compile_unit import Built, CompileUnit, Toolchain
from evoengine.records import Frozen

# the largest seen has a few megabytes; an initialised array can be of any size
MAX_CODE_BYTES = 64 * 1024 * 1024
MAX_LINE_BYTES = 2 * MAX_CODE_BYTES  # in base64, with the rest of the answer


class Hello(Frozen):
    """Child to parent, as the first message."""

    toolchain: Toolchain


class CompileRequest(Frozen):
    """Parent to child."""

    id: int
    unit: CompileUnit


class CompileAnswer(Frozen):
    """Child to parent: the request's id, and either what was built or a fault of ours."""

    id: int
    built: Built | None = None
    code: str = ""  # base64 of a cubin, or of PTX
    fault: str = ""  # a traceback: the machine failed, whatever the source
