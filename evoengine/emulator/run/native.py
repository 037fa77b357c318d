"""The C runtime of run/native/*.c and check/*.c: built for this host, kept on disk, loaded into
this process.

Each C file becomes one object file. A cache entry is named by a digest of everything that decides
its content, and holds its own checksum: one that is damaged is built again.
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

# Freestanding: a host needs no libc headers. 512-bit vectors are asked for because a warp is two of
# them, and some CPUs' tuning would split them. A product and a sum are joined only where the C code
# says fma: results then are the same on every host. -fno-strict-aliasing: registers are read as
# whatever type the instruction names.
FLAGS = (
    *("-O2", "-std=c17", "-ffreestanding", "-nostdsysteminc", "-nobuiltininc", "-w"),
    *("-mrelocation-model", "pic", "-pic-level", "2", "-ffp-contract=off", "-relaxed-aliasing"),
    *("-mprefer-vector-width=512", "-vectorize-loops", "-vectorize-slp", "-x", "c"),
)
# the latter: LLVM's own calls, compiler.c
EXPORTED = re.compile(r"\b(ev_\w+|__(?:trunc|extend)\w+)\s*\(")


class NativeBuildFailed(EmulatorError):  # noqa: N818 - as its siblings
    """The C runtime does not compile on this host: a fault of this package or of the compiler,
    never of a kernel.
    """


@dataclass(frozen=True)
class Host:
    """What code is made for: an LLVM triple, a CPU's name and its features ("+avx2,-avx512f")."""

    triple: str
    cpu: str
    features: str

    def flags(self) -> list[str]:
        chosen = [
            flag for name in self.features.split(",") if name for flag in ("-target-feature", name)
        ]
        return ["-triple", self.triple, "-target-cpu", self.cpu, *chosen]


class Native:
    """The C runtime in this process; `symbols`: name -> address of every ev_ function."""

    def __init__(self, objects: Sequence[bytes], names: Sequence[str], host: Host) -> None:
        _load_libm()
        target = llvm.Target.from_triple(host.triple).create_target_machine(
            cpu=host.cpu, features=host.features, opt=2, jit=True
        )
        # owns the code: lives as long as we do
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
        for data in objects:
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(data))
        self._engine.finalize_object()
        self.symbols: Mapping[str, int] = {
            name: self._engine.get_function_address(name) for name in names
        }
        missing = [name for name, address in self.symbols.items() if not address]
        # checked here because MCJIT says nothing, and leaves every call out of that object at
        # address 0
        if missing:
            raise NativeBuildFailed(
                f"declared in a header of the runtime, but in no C file: {', '.join(missing)}"
            )

    def address(self, name: str) -> int:
        """Where the function `name` lies; raises KeyError for one that the runtime has not."""
        if name not in self.symbols:
            raise KeyError(
                f"the C runtime has no function {name}; run/native/lanes.h lists what it has"
            )
        return self.symbols[name]


def load_native(cpu: str, features: str, cache: Path, triple: str | None = None) -> Native:
    """The runtime for `cpu` with `features` (LLVM's names, "+avx2,-avx512f"), built where `cache`
    has it not.

    Raises CompilerMissing where there is no clang, NativeBuildFailed where it refuses the sources.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    host = Host(triple or llvm.get_default_triple(), cpu, features)
    build = _Build(host, cache)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        names = pool.submit(build.names)
        objects = list(pool.map(build.compiled, _files("*.c")))
    return Native(objects, names.result(), host)


class _Build:
    """Makes one host's object files, or finds them in the cache."""

    def __init__(self, host: Host, cache: Path) -> None:
        self._host = host
        self._cache = cache
        self._clang = find_clang()
        self._headers = [path.read_bytes() for path in _files("*.h")]

    def compiled(self, source: Path) -> bytes:
        """The object file of one C file."""
        content = [str(source.relative_to(EMULATOR)).encode(), source.read_bytes(), *self._headers]
        return self._kept(
            "o", content, lambda: self._run(["-emit-obj", *self._host.flags(), *FLAGS, str(source)])
        )

    def names(self) -> list[str]:
        """Every ev_ function that the headers declare; by the preprocessor, since macros declare
        most of them.
        """
        text = self._kept("names", self._headers, self._declared)
        return text.decode().split()

    def _declared(self) -> bytes:
        headers = [str(path) for path in _files("*.h")]
        texts = [
            self._run(["-E", *self._host.flags(), *FLAGS, header]).decode() for header in headers
        ]
        return "\n".join(
            sorted({name for text in texts for name in EXPORTED.findall(text)})
        ).encode()

    def _kept(self, suffix: str, content: Sequence[bytes], make: Callable[[], bytes]) -> bytes:
        flags = "\0".join([*self._host.flags(), *FLAGS, *self._clang.command, self._clang.version])
        path = self._cache / f"native-{_digest(flags.encode(), *content)}.{suffix}"
        found = _read_checked(path)
        if found is None:
            found = make()
            _write_checked(path, found)
        return found

    def _run(self, arguments: Sequence[str]) -> bytes:
        """What clang -cc1 writes; its complaint becomes the error."""
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
    """What `path` holds behind its checksum; None where it is missing or not whole."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    checksum, content = data[:32], data[32:]
    return content if hashlib.sha256(content).digest() == checksum else None


def _write_checked(path: Path, content: bytes) -> None:
    """In one step: another process sees the whole file or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".native-", delete=False) as part:
        part.write(hashlib.sha256(content).digest() + content)
    Path(part.name).replace(path)


def _load_libm() -> None:
    """Makes expf and its family findable for the JIT; often the interpreter has libm loaded
    already.
    """
    if not llvm.address_of_symbol("expf"):
        llvm.load_library_permanently(ctypes.util.find_library("m") or "libm.so.6")
