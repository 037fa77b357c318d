"""Machine code kept between runs: one JSON entry and one cubin for each compiled unit.

An entry names the digest of its cubin and of itself; what does not agree is as if it were
not there. Only what follows from the source is kept: not a timeout, not a lack of memory.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pydantic import ValidationError

from evoengine import atomic
from evoengine.digest import digest, digest_json
from evoengine.evaluate.compile.unit import Built, CompileResult, CompileUnit
from evoengine.records import Frozen

FORMAT = 1  # a new one when the meaning of an entry changes
_KEPT = ("ok", "compile_error")


class _Entry(Frozen):
    key: str
    built: Built
    cubin_digest: str
    digest: str  # of the three above


def key_of(unit: CompileUnit, fingerprint: str) -> str:
    """The name of what `unit` compiles to with a toolchain; limits do not count."""
    content = unit.model_dump(mode="json", exclude={"timeout_s", "memory_bytes"})
    return digest(str(FORMAT), fingerprint, digest_json(content), digest_json(list(unit.macros.items())))


class CompileCache:
    """Entries below a folder. A folder that cannot be written is said once and then left alone."""

    def __init__(self, folder: Path, warn: Callable[[str], None]) -> None:
        self.folder = folder
        self.warn = warn
        self._writable = True

    def find(self, key: str) -> CompileResult | None:
        """The stored result with the path of its cubin; None where there is none or it was changed."""
        entry_path, cubin_path = self._paths(key)
        try:
            entry = _Entry.model_validate_json(entry_path.read_bytes())
            cubin = cubin_path.read_bytes() if entry.built.status == "ok" else b""
        except (OSError, ValidationError):
            return None
        if entry.key != key or entry.cubin_digest != digest(cubin) or entry.digest != _seal(key, entry.built, cubin):
            return None
        return CompileResult(**dict(entry.built), cubin_path=str(cubin_path) if cubin else "", cached=True)

    def keep(self, key: str, built: Built, cubin: bytes) -> str | None:
        """The path of the cubin, once the entry is whole on the disk; None where nothing was kept."""
        if not self._writable or built.status not in _KEPT:
            return None
        entry_path, cubin_path = self._paths(key)
        entry = _Entry(key=key, built=built, cubin_digest=digest(cubin), digest=_seal(key, built, cubin))
        try:
            if cubin:
                atomic.write_bytes(cubin_path, cubin)
            atomic.write_text(entry_path, entry.model_dump_json())
        except OSError as error:
            self._writable = False
            self.warn(
                f"the compile cache {self.folder} cannot be written ({error}); everything is compiled anew, "
                "set EVOENGINE_CACHE_DIR to a writable folder"
            )
            return None
        return str(cubin_path) if cubin else ""

    def _paths(self, key: str) -> tuple[Path, Path]:
        folder = self.folder / key[:2]
        return folder / f"{key}.json", folder / f"{key}.cubin"


def _seal(key: str, built: Built, cubin: bytes) -> str:
    return digest(key, built.model_dump_json(), cubin)
