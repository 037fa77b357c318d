"""The part of NVRTC's C interface that compiles kernels: NVIDIA's library alone, without CuPy and
without a driver.
"""

# ruff: noqa: N802 - the functions have NVRTC's own names, without their prefix

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

_WHEELS = {13: "nvidia/cu13/lib", 12: "nvidia/cuda_nvrtc/lib"}
_TOOLKIT_FOLDERS = ("lib64", "lib")


class NVRTCError(RuntimeError):
    """A call that failed, by NVRTC's name for it, e.g. NVRTC_ERROR_COMPILATION."""


class Binding:
    """The functions of one libnvrtc. A program is a handle from `createProgram`."""

    NVRTCError = NVRTCError

    def __init__(self, path: str) -> None:
        """Raises OSError where the library cannot be loaded."""
        beside = Path(path).parent.glob("libnvrtc-builtins.so.*") if "/" in path else ()
        for builtins in sorted(beside):
            # NVRTC asks the linker for it by name, and the linker does not look into wheels
            ctypes.CDLL(str(builtins))
        self._library = ctypes.CDLL(path)
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p

    def getVersion(self) -> tuple[int, int]:
        """Major and minor version."""
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        return major.value, minor.value

    def getSupportedArchs(self) -> list[int]:
        """The architectures that it compiles for, e.g. 90 for sm_90."""
        count = ctypes.c_int()
        self._call("nvrtcGetNumSupportedArchs", ctypes.byref(count))
        found = (ctypes.c_int * count.value)()
        self._call("nvrtcGetSupportedArchs", found)
        return list(found)

    def createProgram(self, source: str, name: str) -> int:
        """A program that holds `source`."""
        program = ctypes.c_void_p()
        self._call(
            "nvrtcCreateProgram",
            ctypes.byref(program),
            source.encode(),
            name.encode(),
            0,
            None,
            None,
        )
        assert program.value is not None
        return program.value

    def destroyProgram(self, program: int) -> None:
        """Frees what the program holds."""
        self._call("nvrtcDestroyProgram", ctypes.byref(ctypes.c_void_p(program)))

    def addNameExpression(self, program: int, expression: str) -> None:
        """Makes NVRTC keep the lowered name of `expression`."""
        self._call("nvrtcAddNameExpression", ctypes.c_void_p(program), expression.encode())

    def compileProgram(self, program: int, options: Sequence[str]) -> None:
        """Compiles; raises NVRTCError, and the program's log says why."""
        texts = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        self._call("nvrtcCompileProgram", ctypes.c_void_p(program), len(options), texts)

    def getLoweredName(self, program: int, expression: str) -> str:
        """The name of `expression` in the machine code."""
        name = ctypes.c_char_p()
        self._call(
            "nvrtcGetLoweredName", ctypes.c_void_p(program), expression.encode(), ctypes.byref(name)
        )
        return (name.value or b"").decode("utf-8", "replace")

    def getProgramLog(self, program: int) -> str:
        """The compiler's log; it quotes the source, whose strings need not be UTF-8."""
        return self._bytes(program, "ProgramLog").rstrip(b"\0").decode("utf-8", "replace")

    def getCUBIN(self, program: int) -> bytes:
        """The machine code."""
        return self._bytes(program, "CUBIN")

    def getPTX(self, program: int) -> str:
        """The PTX."""
        return self._bytes(program, "PTX").rstrip(b"\0").decode("utf-8", "replace")

    def _bytes(self, program: int, what: str) -> bytes:
        size, handle = ctypes.c_size_t(), ctypes.c_void_p(program)
        self._call(f"nvrtcGet{what}Size", handle, ctypes.byref(size))
        found = ctypes.create_string_buffer(size.value)
        self._call(f"nvrtcGet{what}", handle, found)
        return found.raw

    def _call(self, function: str, *arguments: object) -> None:
        status = getattr(self._library, function)(*arguments)
        if status:
            raise NVRTCError(f"{self._library.nvrtcGetErrorString(status).decode()} ({status})")


def load_nvrtc(
    path: Sequence[str] = tuple(sys.path), environ: Mapping[str, str] = os.environ
) -> Binding:
    """The NVRTC of this environment: from NVIDIA's wheels, from a toolkit, or from the linker, in
    this order; the newer before the older.

    The first one found is taken, whether it can be loaded or not; raises OSError.
    """
    for file in _files(path, environ):
        return Binding(str(file))
    names = [f"libnvrtc.so.{major}" for major in _majors()]
    for name in names:
        try:
            return Binding(name)
        except OSError:
            continue
    raise OSError(
        f"no {' or '.join(names)} in NVIDIA's wheels, in a toolkit (CUDA_HOME), or where the linker"
        " looks"
    )


def _files(path: Sequence[str], environ: Mapping[str, str]) -> Iterator[Path]:
    toolkits = [environ.get("CUDA_HOME"), environ.get("CUDA_PATH"), "/usr/local/cuda"]
    for major in _majors():
        folders = [Path(entry, _WHEELS[major]) for entry in path if entry]
        folders += [Path(root, folder) for root in toolkits if root for folder in _TOOLKIT_FOLDERS]
        yield from (
            file for folder in folders if (file := folder / f"libnvrtc.so.{major}").is_file()
        )


def _majors() -> tuple[int, ...]:
    """The newer one first, except beside a CuPy for CUDA 12: the driver there may not take newer
    code.
    """
    try:
        importlib.metadata.version("cupy-cuda12x")
    except importlib.metadata.PackageNotFoundError:
        return 13, 12
    return 12, 13
