"""Where CUDA's device headers are: in wheels, in NVRTC itself, or in a toolkit.

Headers and compiler should be of one release. So the first choice is one complete set of
the compiler's version, wherever it is; only where there is none are sets combined, and
the result says so.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

# One of each part that is packaged alone: runtime, crt, cooperative groups, libcu++.
REQUIRED = (
    "cuda_fp16.h",
    "cuda_bf16.h",
    "cuda_fp8.h",
    "mma.h",
    "crt/mma.h",
    "cuda_pipeline.h",
    "cooperative_groups.h",
    "cuda/std/cstdint",
    "nv/target",
)
OPTIONAL = ("cuda_fp6.h", "cuda_fp4.h", "cuda/barrier", "cuda/ptx", "cuda.h")

Version = tuple[int, int]
_VERSION = re.compile(r"^#define\s+(?:CUDA_VERSION|CUDART_VERSION)\s+(\d+)", re.MULTILINE)
_SHORT_READ = 64 * 1024  # the version is in the first third of the file


@dataclass(frozen=True)
class HeaderSet:
    """Folders to search in this order, and what is in them."""

    folders: tuple[Path, ...]
    found: dict[str, Path]
    missing: tuple[str, ...]
    version: Version | None
    source: str  # in words

    @property
    def is_complete(self) -> bool:
        """Whether every required header is there."""
        return not self.missing


def find_headers(
    nvrtc: Version,
    bundle: Callable[[], Path | None] = lambda: None,
    path: list[str] = sys.path,
    environ: Mapping[str, str] = os.environ,
) -> HeaderSet:
    """The headers for a compiler of version `nvrtc`; `bundle` unpacks those inside the compiler."""
    sets = [*_wheels(path), *_toolkits(environ)]
    exact = [item for item in sets if item.is_complete and item.version == nvrtc]
    if exact:
        return exact[0]
    unpacked = bundle()
    if unpacked is not None:
        bundled = _set("carried by NVRTC", _with_cccl(unpacked))
        if bundled.is_complete:
            return bundled
        sets.append(bundled)
    return _nearest(nvrtc, sets)


def _nearest(nvrtc: Version, sets: list[HeaderSet]) -> HeaderSet:
    """The best set without an exact match: of the same major version, complete before exact,
    combined where none is complete.
    """
    fitting = [
        item
        for item in sets
        if item.found and (item.version is None or item.version[0] == nvrtc[0])
    ]
    ranked = sorted(
        fitting,
        key=lambda item: (
            not item.is_complete,
            item.version != nvrtc,
            abs((item.version or (0, 0))[1] - nvrtc[1]),
        ),
    )
    if not ranked:
        return HeaderSet((), {}, REQUIRED, None, "none found")
    first = ranked[0]
    if first.is_complete:
        return first
    for other in ranked[1:]:
        combined = _set(
            f"{first.source}, completed from {other.source}", [*first.folders, *other.folders]
        )
        if len(combined.missing) < len(first.missing):
            first = combined
    return first


def _wheels(path: list[str]) -> list[HeaderSet]:
    """The layouts of NVIDIA's wheels: cu13 shares one folder, cu12 has one for each part."""
    sets = []
    for place in dict.fromkeys(Path(entry) for entry in path if entry):
        root = place / "nvidia"
        if not root.is_dir():
            continue
        sets.append(_set(f"wheels in {root / 'cu13'}", _with_cccl(root / "cu13" / "include")))
        parts = [root / part / "include" for part in ("cuda_runtime", "cuda_nvcc", "cuda_cccl")]
        sets.append(
            _set(f"wheels in {root}", [folder for part in parts for folder in _with_cccl(part)])
        )
    return [item for item in sets if item.folders]


def _toolkits(environ: Mapping[str, str]) -> list[HeaderSet]:
    named = [
        environ.get("CUDA_HOME"),
        environ.get("CUDA_PATH"),
        "/usr/local/cuda",
        *sorted(map(str, Path("/usr/local").glob("cuda-*")), reverse=True),
    ]
    roots = dict.fromkeys(Path(name).resolve() for name in named if name)
    sets = [_set(f"toolkit in {root}", _with_cccl(root / "include")) for root in roots]
    return [item for item in sets if item.folders]


def _with_cccl(folder: Path) -> list[Path]:
    return [item for item in (folder, folder / "cccl") if item.is_dir()]


def _set(source: str, folders: list[Path]) -> HeaderSet:
    found = {}
    for header in (*REQUIRED, *OPTIONAL):
        place = next((folder / header for folder in folders if (folder / header).is_file()), None)
        if place:
            found[header] = place
    return HeaderSet(
        tuple(folders),
        found,
        tuple(header for header in REQUIRED if header not in found),
        _version(folders),
        source,
    )


def _version(folders: list[Path]) -> Version | None:
    for folder in folders:
        for name in ("cuda_runtime_api.h", "cuda.h"):
            if (folder / name).is_file():
                with (folder / name).open(encoding="utf-8", errors="replace") as file:
                    match = _VERSION.search(file.read(_SHORT_READ))
                if match:
                    return int(match[1]) // 1000, int(match[1]) % 1000 // 10
    return None


def unpack_bundled(library: str, folder: Path) -> Path | None:
    """The folder with the headers inside NVRTC >= 13.3, unpacked once; None where it has none or
    cannot write.
    """
    install = getattr(ctypes.CDLL(library), "nvrtcInstallBundledHeaders", None)
    if install is None:
        return None
    install.argtypes = (ctypes.c_char_p, ctypes.c_uint, ctypes.POINTER(ctypes.c_char_p))
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    status = install(str(folder).encode(), 0, None)
    if status != 0:
        return None
    return next(
        (item for item in (folder / "include", folder) if (item / "cuda_fp16.h").is_file()), None
    )
