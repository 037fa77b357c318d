"""The file system that clang sees: the source, our headers, nothing else."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path

HEADERS = Path(__file__).parent / "include"
INCLUDE = "/cuda"  # where our headers seem to lie
PRELUDE = f"{INCLUDE}/cuda_runtime.h"
SOURCE = "/source.cu"


@functools.cache
def headers() -> tuple[str, ...]:
    """The names by which headers are included, e.g. "cooperative_groups/reduce.h"."""
    return tuple(
        sorted(
            path.relative_to(HEADERS).as_posix() for path in HEADERS.rglob("*") if path.is_file()
        )
    )


def write(folder: Path, contents: Mapping[str, bytes]) -> Path:
    """The description of the file system for `-ivfsoverlay`: our headers and `contents`, written to
    `folder`.

    "redirect-only" takes the real file system away: what is not listed does not exist for #include,
    #embed and __has_include alike.
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
