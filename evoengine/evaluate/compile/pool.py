"""A pool of compiler processes with a cache in front of it.

Whatever a source does to its compiler is a result. A process that was killed, for its time, its
memory or because its compilation was cancelled, is replaced by a new one.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from evoengine import atomic_files
from evoengine.errors import ToolchainError, WorkerError
from evoengine.evaluate.compile.cache_lock import CacheLock
from evoengine.evaluate.compile.compile_cache import CompileCache, key_of
from evoengine.evaluate.compile.compile_unit import Built, CompileResult, CompileUnit, Toolchain
from evoengine.evaluate.compile.compiler_process import CLANG, NVRTC, CompilerProcess, Killed
from evoengine.evaluate.compile.includes import IncludeRefused, check_includes
from evoengine.paths import cache_dir

__all__ = ["CLANG", "NVRTC", "CompilePool", "CompileResult", "CompileUnit", "toolchain"]

# NVRTC gives back most of what a compilation took (0.3 GiB remain after libcu++); far more than
# that is a leak.
_RETIRE_AFTER_BYTES = 1024 * 1024 * 1024


def _ignore_warning(_: str) -> None:
    """Drops the warning."""


class CompilePool:
    """At most `workers` compilations at once; each process serves until it has to be killed."""

    def __init__(
        self,
        workers: int,
        folder: Path | None = None,
        warn: Callable[[str], None] = _ignore_warning,
        module: str = NVRTC,
    ) -> None:
        """`module` is NVRTC, which makes cubins, or CLANG, which makes PTX for the emulator."""
        if workers < 1:
            raise ValueError(f"workers must be >= 1, got {workers}")
        self._workers = workers
        self._module = module
        self._suffix = ".ptx" if module == CLANG else ".cubin"
        self.cache = CompileCache(
            folder
            if folder is not None
            else cache_dir() / ("ptx" if module == CLANG else "cubins"),
            warn,
            self._suffix,
        )
        self._shared_folder = cache_dir() if folder is None else None
        self._cache_lock: CacheLock | None = None
        self.toolchain = Toolchain()
        self._idle: list[CompilerProcess] = []
        self._all: set[CompilerProcess] = set()
        self._slots = asyncio.Semaphore(workers)
        self._starting = asyncio.Lock()
        self._uncached_folder: tempfile.TemporaryDirectory[str] | None = None
        self._uncached_count = 0
        self._closed = False

    async def start(self) -> str:
        """The compiler's version, once a process is ready; raises ToolchainError if none works."""
        async with self._starting:
            if self._shared_folder is not None and self._cache_lock is None:
                self._cache_lock = await asyncio.to_thread(CacheLock.shared, self._shared_folder)
            if not self.toolchain.fingerprint:
                async with self._process() as process:
                    self.toolchain = process.toolchain
        return self.toolchain.version

    async def warm(self) -> None:
        """Starts a process for every worker, so that no candidate waits for one; raises
        ToolchainError.
        """
        await self.start()
        missing = self._workers - len(self._all)
        for process in await asyncio.gather(
            *(CompilerProcess.start(self._module) for _ in range(missing))
        ):
            self._all.add(process)
            self._idle.append(process)

    async def compile(self, unit: CompileUnit, keep: bool = True) -> CompileResult:
        """The result for `unit`; only faults of the machine are exceptions. Cancelling it stops the
        compilation. Without `keep` its code stays out of the cache, until this pool is closed.
        """
        started = time.monotonic()
        try:
            check_includes(unit.code, unit.name)
        except IncludeRefused as refused:
            return CompileResult(status="refused", log=str(refused))
        await self.start()
        stored = self.cache.find(key_of(unit, self.toolchain.fingerprint))
        if stored is not None:
            return stored.model_copy(update={"seconds": time.monotonic() - started})
        built, code, fingerprint = await self._build(unit)
        path = self.cache.keep(key_of(unit, fingerprint), built, code) if keep else None
        if code and path is None:
            path = self._store_uncached(code)
        return CompileResult(
            **dict(built), code_path=path or "", seconds=time.monotonic() - started
        )

    def discard(self, result: CompileResult) -> None:
        """Removes code that is not in the cache and is not needed any more."""
        path = Path(result.code_path)
        if self._uncached_folder is not None and path.parent == Path(self._uncached_folder.name):
            path.unlink(missing_ok=True)

    async def close(self) -> None:
        """Ends every process and removes code that is not in the cache; safe at any time and more
        than once.
        """
        self._closed = True
        await asyncio.gather(*(process.end() for process in self._all))
        self._all.clear()
        self._idle.clear()
        if self._cache_lock is not None:
            self._cache_lock.release()
        if self._uncached_folder is not None:
            self._uncached_folder.cleanup()
            self._uncached_folder = None

    async def _build(self, unit: CompileUnit) -> tuple[Built, bytes, str]:
        """Compiles `unit`; retries once if the process was killed from outside, because that says
        nothing about the source.
        """
        try:
            return await self._build_once(unit)
        except Killed:
            self._refuse_when_closed()
        try:
            return await self._build_once(unit)
        except Killed as killed:
            raise WorkerError(
                f"{killed}; this happened twice: check whether the machine is short of memory"
            ) from None

    async def _build_once(self, unit: CompileUnit) -> tuple[Built, bytes, str]:
        async with self._process() as process:
            built, code = await process.compile(unit)
            return built, code, process.toolchain.fingerprint

    @contextlib.asynccontextmanager
    async def _process(self) -> AsyncIterator[CompilerProcess]:
        """A process for one compilation, an idle one or a new one."""
        async with self._slots:
            process = await self._take()
            try:
                yield process
            finally:
                if process.alive and process.grown_bytes < _RETIRE_AFTER_BYTES and not self._closed:
                    self._idle.append(process)
                else:
                    process.kill()

    async def _take(self) -> CompilerProcess:
        self._refuse_when_closed()
        await self._remove_dead()
        while self._idle:
            process = self._idle.pop()
            if process.alive:
                return process
        process = await CompilerProcess.start(self._module)
        self._all.add(process)
        if process.toolchain.problem:
            process.kill()
            raise ToolchainError(process.toolchain.problem)
        if self._closed:
            await process.end()
        self._refuse_when_closed()
        return process

    async def _remove_dead(self) -> None:
        for process in [item for item in self._all if not item.alive]:
            await process.end()
            self._all.discard(process)

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise WorkerError("the compile pool was closed")

    def _store_uncached(self, code: bytes) -> str:
        """A path in a temporary folder of this pool, for code that the cache could not store."""
        if self._uncached_folder is None:
            self._uncached_folder = tempfile.TemporaryDirectory(prefix="evoengine-code-")
        self._uncached_count += 1
        path = Path(self._uncached_folder.name) / f"{self._uncached_count}{self._suffix}"
        atomic_files.write_bytes(path, code)
        return str(path)


async def toolchain(module: str = NVRTC) -> Toolchain:
    """The toolchain that a compiler process finds on this machine."""
    process = await CompilerProcess.start(module)
    await process.end()
    return process.toolchain
