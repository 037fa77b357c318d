"""The loop of a runner: requests of the grader in, answers out.

What a candidate prints goes to standard output, which the parent reads.
"""

from __future__ import annotations

import ctypes
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

import cupy

from evoengine.evaluate.worker.candidate_failures import Crashed
from evoengine.evaluate.worker.cuda.harness.gpu_token import GpuToken
from evoengine.evaluate.worker.cuda.harness.runner_messages import (
    MAX_DESCRIPTORS,
    RUNNER_REQUEST,
    AnyRequest,
    DropSlots,
    Fault,
    Load,
    MapSlots,
    Profile,
    Profiled,
    Replay,
    Replayed,
    Result,
    Served,
    Unload,
)
from evoengine.evaluate.worker.cuda.harness.virtual_memory import VirtualMemoryError
from evoengine.evaluate.worker.cuda.runner.cuda_errors import CUDA_ERRORS, translate
from evoengine.evaluate.worker.cuda.runner.replayer import Replayer

# The least that devices allow or round up to: no kernel that is let through uses the heap.
HEAP_BYTES = 1024**2
PRINTF_BYTES = 64 * 1024  # the buffer of device printf between two synchronisations
CHUNK_BYTES = 1 << 20


def serve(connection: socket.socket, ordinal: int) -> None:
    """Serves one grader until it closes `connection`."""
    with suppress(ConnectionError):  # the grader may close it before an answer is sent
        _Runner(connection, ordinal).serve()


class _Runner:
    def __init__(self, connection: socket.socket, ordinal: int) -> None:
        self._connection = connection
        self._silent = False
        self._libc = ctypes.CDLL(None)
        self._nothing = os.open(os.devnull, os.O_WRONLY)
        token = GpuToken(ordinal)
        with token.starting():
            cupy.cuda.Device(ordinal).use()
            self._limit_memory()
            self._replayer = Replayer(ordinal)
            with token.shared():
                self._replayer.warm_up()
            cupy.cuda.Device().synchronize()
        self._answer(Served)

    def serve(self) -> None:
        for line, descriptors in _lines(self._connection):
            request = RUNNER_REQUEST.validate_json(line)
            answer = self._answer(partial(self._handle, request, descriptors))
            if isinstance(answer, Replayed | Profiled):
                # while the grader compares, which takes as long
                self._answer(self._reload)

    def _answer(self, serve: Callable[[], Result]) -> Result | Fault:
        """Sends what `serve` returns, or what failed; ends the process if it is broken."""
        answer: Result | Fault
        try:
            answer = serve()
        except CUDA_ERRORS as error:
            failure = translate(error)
            broken = isinstance(failure, Crashed) or not _context_works()
            answer = Fault(reason=str(failure), broken=broken)
        except VirtualMemoryError as error:
            answer = Fault(reason=str(error), broken=True)
        self._connection.sendall(answer.model_dump_json().encode() + b"\n")
        if isinstance(answer, Fault) and answer.broken:
            os._exit(0)  # a broken context can hang in its destructors
        return answer

    def _reload(self) -> Served:
        self._replayer.reload()
        return Served()

    def _handle(self, request: AnyRequest, descriptors: list[int]) -> Result:
        match request:
            case MapSlots():
                self._replayer.map(request.numbers, request.sizes, descriptors)
                for descriptor in descriptors:
                    os.close(descriptor)
            case DropSlots():
                self._replayer.drop(request.numbers)
            case Load():
                self._silent = request.silent
                self._replayer.load(request)
            case Replay():
                with self._output():
                    return self._replayer.replay(request)
            case Profile():
                with self._output():
                    return self._replayer.profile(request)
            case Unload():
                return Served(free_bytes=self._replayer.unload())
        return Served()

    @contextmanager
    def _output(self) -> Iterator[None]:
        """Writes out what the candidate prints, or drops it where its case is hidden."""
        kept = os.dup(1) if self._silent else None
        if kept is not None:
            os.dup2(self._nothing, 1)
        try:
            yield
        finally:
            self._libc.fflush(None)
            if kept is not None:
                os.dup2(kept, 1)
                os.close(kept)

    def _limit_memory(self) -> None:
        runtime = cupy.cuda.runtime
        runtime.deviceSetLimit(runtime.cudaLimitPrintfFifoSize, PRINTF_BYTES)
        runtime.deviceSetLimit(runtime.cudaLimitMallocHeapSize, HEAP_BYTES)


def _context_works() -> bool:
    """Whether the device still does what it is asked to."""
    try:
        cupy.cuda.Device().synchronize()
        return int(cupy.cuda.runtime.memGetInfo()[1]) > 0
    except CUDA_ERRORS:
        return False


def _lines(connection: socket.socket) -> Iterator[tuple[bytes, list[int]]]:
    """The lines that arrive, each with the descriptors that came with it."""
    data, descriptors = b"", list[int]()
    while True:
        chunk, found, _, _ = socket.recv_fds(connection, CHUNK_BYTES, MAX_DESCRIPTORS)
        if not chunk:
            return
        data, descriptors = data + chunk, descriptors + list(found)
        while b"\n" in data:
            line, _, data = data.partition(b"\n")
            given, descriptors = descriptors, []
            yield line, given
