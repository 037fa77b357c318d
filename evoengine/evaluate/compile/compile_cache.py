"""Compiled code kept between runs: one JSON entry and one cubin or PTX file for each unit.

An entry holds the digest of its code and of itself; one that does not match is ignored. Only
results that follow from the source are kept: not a timeout, not a lack of memory.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pydantic import ValidationError

from evoengine import atomic_files
from evoengine.digest import digest, digest_json
from evoengine.evaluate.compile.compile_unit import Built, CompileResult, CompileUnit
from evoengine.records import Frozen

FORMAT = 5  # a new one when the meaning of an entry changes
_KEPT = ("ok", "refused", "compile_error", "unsupported")


class _Entry(Frozen):
    key: str
    built: Built
    code_digest: str
    digest: str  # of the three above


def key_of(unit: CompileUnit, fingerprint: str) -> str:
    """The key of `unit` compiled by the toolchain of this fingerprint; limits do not count."""
    content = unit.model_dump(mode="json", exclude={"timeout_s", "memory_bytes"})
    return digest(
        str(FORMAT), fingerprint, digest_json(content), digest_json(list(unit.macros.items()))
    )


class CompileCache:
    """Entries below a folder. A folder that cannot be written is warned about once and then only
    read.
    """

    def __init__(self, folder: Path, warn: Callable[[str], None], suffix: str = ".cubin") -> None:
        self.folder = folder
        self._suffix = suffix
        self.warn = warn
        self._writable = True

    def find(self, key: str) -> CompileResult | None:
        """The stored result with the path of its code; None where none is whole."""
        entry_path, code_path = self._paths(key)
        try:
            entry = _Entry.model_validate_json(entry_path.read_bytes())
            code = code_path.read_bytes() if entry.built.status == "ok" else b""
        except (OSError, ValidationError):
            return None
        if (
            entry.key != key
            or entry.code_digest != digest(code)
            or entry.digest != _seal(key, entry.built, code)
        ):
            return None
        return CompileResult(
            **dict(entry.built), code_path=str(code_path) if code else "", cached=True
        )

    def keep(self, key: str, built: Built, code: bytes) -> str | None:
        """The path of the code, once both files are on the disk; None where nothing was kept."""
        if not self._writable or built.status not in _KEPT:
            return None
        entry_path, code_path = self._paths(key)
        entry = _Entry(
            key=key, built=built, code_digest=digest(code), digest=_seal(key, built, code)
        )
        try:
            if code:
                atomic_files.write_bytes(code_path, code)
            atomic_files.write_text(entry_path, entry.model_dump_json())
        except OSError as error:
            self._writable = False
            self.warn(
                f"the compile cache {self.folder} cannot be written ({error}); every kernel"
                " is compiled again in every run; set EVOENGINE_CACHE_DIR to a writable folder"
            )
            return None
        return str(code_path) if code else ""

    def _paths(self, key: str) -> tuple[Path, Path]:
        folder = self.folder / key[:2]
        return folder / f"{key}.json", folder / f"{key}{self._suffix}"


def _seal(key: str, built: Built, code: bytes) -> str:
    return digest(key, built.model_dump_json(), code)
