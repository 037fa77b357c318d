"""The C runtime (run/native/*.c and check/*.c): compiled for this host, cached on disk, loaded into
this process.

Each C file becomes one object file. A cache entry is named by a digest of everything that its
content depends on, and holds its own checksum; a damaged entry is compiled again.
"""

from __future__ import annotations

import ctypes.util
import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import llvmlite.binding as llvm

from evoengine.emulator.emulator_errors import CompilerMissing, EmulatorError
from evoengine.emulator.front import clang_process
from evoengine.emulator.front.clang import find_clang

EMULATOR = Path(__file__).resolve().parent.parent
FOLDERS = (EMULATOR / "run" / "native", EMULATOR / "check")

# Freestanding: a host needs no libc headers. 512-bit vectors are preferred because a warp of 32-bit
# values is two of them, and some CPUs' tuning would split them. A product and a sum are fused only
# where the C code says fma, so that results are the same on every host. -fno-strict-aliasing:
# registers are read as the type that the instruction names.
FLAGS = (
    *("-O2", "-std=c17", "-ffreestanding", "-nostdsysteminc", "-nobuiltininc", "-w"),
    *("-mrelocation-model", "pic", "-pic-level", "2", "-ffp-contract=off", "-relaxed-aliasing"),
    *("-mprefer-vector-width=512", "-vectorize-loops", "-vectorize-slp", "-x", "c"),
)
# the latter are called by LLVM itself: compiler.c
EXPORTED = re.compile(r"\b(ev_\w+|__(?:trunc|extend)\w+)\s*\(")


class NativeBuildFailed(EmulatorError):  # noqa: N818 - as its siblings
    """The C runtime does not compile on this host: an error of this package or of the compiler,
    never of a kernel.
    """


@dataclass(frozen=True)
class CodeTarget:
    """A compilation target: LLVM triple, CPU name and CPU features ("+avx2,-avx512f")."""

    triple: str
    cpu: str
    features: str

    def flags(self) -> list[str]:
        chosen = [
            flag for name in self.features.split(",") if name for flag in ("-target-feature", name)
        ]
        return ["-triple", self.triple, "-target-cpu", self.cpu, *chosen]


class NativeRuntime:
    """The C runtime in this process; `symbols` maps the name of every ev_ function to its
    address.
    """

    def __init__(self, objects: Sequence[bytes], names: Sequence[str], host: CodeTarget) -> None:
        _load_libm()
        target = llvm.Target.from_triple(host.triple).create_target_machine(
            cpu=host.cpu, features=host.features, opt=2, jit=True
        )
        # JITLink: MCJIT places each section where there is room, and aborts the process where two
        # sections of one object lie more than 2 GiB apart
        self._linker = llvm.create_lljit_compiler(target, use_jit_link=True)
        library = llvm.JITLibraryBuilder().add_current_process()
        for data in objects:
            library.add_object_img(data)
        for name in names:
            library.export_symbol(name)
        try:
            # owns the code
            self._linked = library.link(self._linker, "runtime")
        except RuntimeError as error:
            raise NativeBuildFailed(
                f"the C runtime does not link; what it calls, or a header of it declares, is"
                f" defined in no C file: {error}"
            ) from error
        self.symbols: Mapping[str, int] = {name: self._linked[name] for name in names}

    def address(self, name: str) -> int:
        """The address of function `name`; raises KeyError for an unknown one."""
        if name not in self.symbols:
            raise KeyError(
                f"the C runtime has no function {name}; run/native/lanes.h lists what it has"
            )
        return self.symbols[name]


def load_runtime(cpu: str, features: str, cache: Path, triple: str | None = None) -> NativeRuntime:
    """The runtime for `cpu` with `features` (LLVM's names, "+avx2,-avx512f"), compiled unless it is
    in the folder `cache`.

    Raises CompilerMissing if there is no clang, NativeBuildFailed if it refuses the sources.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    host = CodeTarget(triple or llvm.get_default_triple(), cpu, features)
    build = _Build(host, cache)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        names = pool.submit(build.names)
        objects = list(pool.map(build.compiled, _files("*.c")))
    return NativeRuntime(objects, names.result(), host)


class _Build:
    """Compiles the object files for one target, or reads them from the cache."""

    def __init__(self, host: CodeTarget, cache: Path) -> None:
        self._host = host
        self._cache = cache
        self._clang = find_clang()
        self._headers = [path.read_bytes() for path in _files("*.h")]

    def compiled(self, source: Path) -> bytes:
        """The object file of one C file."""
        content = [str(source.relative_to(EMULATOR)).encode(), source.read_bytes(), *self._headers]
        return self._cached(
            "o", content, lambda: self._run(["-emit-obj", *self._host.flags(), *FLAGS, str(source)])
        )

    def names(self) -> list[str]:
        """The names of all ev_ functions that the headers declare; preprocessed, since macros
        declare most of them.
        """
        text = self._cached("names", self._headers, self._declared_names)
        return text.decode().split()

    def _declared_names(self) -> bytes:
        headers = [str(path) for path in _files("*.h")]
        texts = [
            self._run(["-E", *self._host.flags(), *FLAGS, header]).decode() for header in headers
        ]
        return "\n".join(
            sorted({name for text in texts for name in EXPORTED.findall(text)})
        ).encode()

    def _cached(self, suffix: str, content: Sequence[bytes], make: Callable[[], bytes]) -> bytes:
        flags = "\0".join([*self._host.flags(), *FLAGS, *self._clang.command, self._clang.version])
        path = self._cache / f"native-{_digest(flags.encode(), *content)}.{suffix}"
        found = _read_checked(path)
        if found is None:
            found = make()
            _write_checked(path, found)
        return found

    def _run(self, arguments: Sequence[str]) -> bytes:
        """The output of clang -cc1; its messages become the error."""
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder) / "output"
            command = [*self._clang.command, "-cc1", *arguments, "-o", str(output)]
            try:
                alone = clang_process.environment(Path(folder))
                done = subprocess.run(  # noqa: S603 - our own sources, no shell
                    command, capture_output=True, text=True, check=False, env=alone
                )
            except OSError as error:
                raise CompilerMissing(
                    f"{self._clang.command[0]} does not start: {error}"
                ) from error
            if done.returncode or not output.is_file():
                raise NativeBuildFailed(
                    f"{arguments[-1]}: clang ended with {done.returncode}:"
                    f" {done.stderr.strip()[-2000:]}"
                )
            return output.read_bytes()


def _files(pattern: str) -> list[Path]:
    return sorted(path for folder in FOLDERS for path in folder.glob(pattern))


def _digest(*parts: bytes) -> str:
    state = hashlib.sha256()
    for part in parts:
        state.update(len(part).to_bytes(8, "little") + part)
    return state.hexdigest()[:32]


def _read_checked(path: Path) -> bytes | None:
    """The content of `path` after its checksum; None if the file is missing or damaged."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    checksum, content = data[:32], data[32:]
    return content if hashlib.sha256(content).digest() == checksum else None


def _write_checked(path: Path, content: bytes) -> None:
    """Writes atomically: another process sees the whole file or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".native-", delete=False) as part:
        part.write(hashlib.sha256(content).digest() + content)
    Path(part.name).replace(path)


def _load_libm() -> None:
    """Makes libm's functions available to the JIT; often the interpreter has loaded libm
    already.
    """
    if not llvm.address_of_symbol("expf"):
        llvm.load_library_permanently(ctypes.util.find_library("m") or "libm.so.6")
