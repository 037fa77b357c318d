"""The virtual file system that clang sees: the source and our headers only."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path

HEADERS = Path(__file__).parent / "include"
INCLUDE = "/cuda"  # where our headers appear
PRELUDE = f"{INCLUDE}/cuda_runtime.h"
SOURCE = "/source.cu"


@functools.cache
def headers() -> tuple[str, ...]:
    """The names by which our headers are included, e.g. "cooperative_groups/reduce.h"."""
    return tuple(
        sorted(
            path.relative_to(HEADERS).as_posix() for path in HEADERS.rglob("*") if path.is_file()
        )
    )


def write(folder: Path, contents: Mapping[str, bytes]) -> Path:
    """Writes the file system for `-ivfsoverlay` to `folder`: our headers and `contents` (name ->
    bytes); returns its path.

    "redirect-only" hides the real file system: files that are not listed do not exist for #include,
    #embed and __has_include.
    """
    files = {f"{INCLUDE}/{name}": HEADERS / name for name in headers()}
    for index, (name, content) in enumerate(contents.items()):
        files[name] = folder / f"file{index}"
        files[name].write_bytes(content)
    description = {
        "version": 0,
        "case-sensitive": True,
        "use-external-names": False,
        "redirecting-with": "redirect-only",
        "roots": [
            {"type": "file", "name": name, "external-contents": str(path)}
            for name, path in files.items()
        ],
    }
    path = folder / "overlay.json"
    path.write_text(json.dumps(description))
    return path
