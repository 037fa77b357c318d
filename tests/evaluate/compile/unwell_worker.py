"""A compiler process that fails in the way that its source names: python -m
tests.evaluate.compile.unwell_worker
"""

from __future__ import annotations

import errno
import os

from evoengine.evaluate.compile.compile_unit import Built, CompileUnit, Toolchain
from evoengine.evaluate.compile.compiler_loop import serve
from evoengine.evaluate.compile.compiler_protocol import MAX_CODE_BYTES


class Unwell:
    def compile(self, unit: CompileUnit) -> tuple[Built, bytes]:
        if unit.code == "gives up":
            os.write(2, b"internal error\xff: gave up")
            os._exit(3)
        if unit.code == "stumbles":
            raise ValueError("expected a cubin, got \udcff")
        if unit.code == "full disk":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return Built(status="ok"), bytes(MAX_CODE_BYTES + (unit.code == "too much"))


if __name__ == "__main__":
    serve(lambda: (Toolchain(nvrtc="1.0", fingerprint="unwell"), Unwell()))
