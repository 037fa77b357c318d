"""A device whose memory is the host's, for the grader's and the runner's own code on any machine.

The driver's virtual memory is memory files that are mapped at the addresses which the code under
test draws: descriptors are really passed, and two mappings of one slot really share its bytes. Our
kernels are a few lines of numpy; kernels.cu itself is tested on a GPU.
"""

# ruff: noqa: N802, N815 - the names are those of CUDA's calls

from __future__ import annotations

import ctypes
import mmap
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
import torch

from evoengine.evaluate.worker.cuda import dealing, examination, input_pool
from evoengine.evaluate.worker.cuda.gpu_harness import GpuHarness
from evoengine.evaluate.worker.cuda.harness import device_table, gpu_token, virtual_memory
from evoengine.evaluate.worker.cuda.harness.device_table import DeviceTable
from evoengine.evaluate.worker.cuda.harness.harness_kernels import DTYPES
from evoengine.evaluate.worker.cuda.harness.runner_messages import (
    Load,
    Profile,
    Profiled,
    Replay,
    Replayed,
)
from evoengine.evaluate.worker.cuda.harness.virtual_memory import PAGE_BYTES, AddressRange
from evoengine.evaluate.worker.cuda.output_comparison import _COMPARISON, _FIGURES
from evoengine.evaluate.worker.cuda.pair_client import PairClient
from evoengine.evaluate.worker.cuda.runner import replayer, runner_loop
from evoengine.evaluate.worker.cuda.runner.replayer import Replayer
from evoengine.evaluate.worker.cuda.runner_client import RunnerClient
from evoengine.evaluate.worker.cuda.slots import SlotPool
from evoengine.evaluate.worker.gate import Gate, errors_of
from evoengine.records import LaunchActivity

OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
ILLEGAL_ADDRESS = 700  # cudaErrorIllegalAddress
TOTAL_BYTES = 8 * 1024**3  # that the device claims to have
# Of addresses, a sixteenth of a GPU's: a process of tests has many, beside those of emulators.
RANGE_BYTES = 1024**4
_FIXED, _SHARED, _RESERVE = 0x10, 0x01, 0x4022  # flags of mmap(2); _RESERVE: without memory
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_FAILED = 2**64 - 1  # MAP_FAILED
_LIBC.mmap.argtypes = [
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_long,
]


class HostDriver:
    """The driver's virtual memory calls; a handle is the descriptor of a memory file."""

    def __init__(self, granularity: int = PAGE_BYTES, memory_bytes: int = TOTAL_BYTES) -> None:
        self.granularity = granularity
        self.memory_bytes = memory_bytes
        self.created: dict[int, int] = {}  # handle -> bytes, of memory that was not released
        self.mapped: dict[int, int] = {}  # address -> bytes
        self.reserved: dict[int, int] = {}  # address -> bytes

    def close(self) -> None:
        """Gives all addresses and memory back."""
        for address, size in self.reserved.items():
            _LIBC.munmap(ctypes.c_void_p(address), ctypes.c_size_t(size))
        for handle in self.created:
            os.close(handle)

    def cuMemGetAllocationGranularity(self, found: Any, _properties: Any, _flags: Any) -> int:
        found._obj.value = self.granularity
        return 0

    def cuMemAddressReserve(self, start: Any, size: Any, *_: Any) -> int:
        start._obj.value = _LIBC.mmap(None, size.value, 0, _RESERVE, -1, 0)
        if start._obj.value == _FAILED:
            return OUT_OF_MEMORY
        self.reserved[start._obj.value] = size.value
        return 0

    def cuMemCreate(self, handle: Any, size: Any, _properties: Any, _flags: Any) -> int:
        if sum(self.created.values()) + size.value > self.memory_bytes:
            return OUT_OF_MEMORY
        descriptor = os.memfd_create("device memory")
        os.ftruncate(descriptor, size.value)
        self.created[descriptor] = size.value
        handle._obj.value = descriptor
        return 0

    def cuMemImportFromShareableHandle(self, handle: Any, descriptor: Any, _kind: Any) -> int:
        handle._obj.value = os.dup(descriptor.value)
        self.created[handle._obj.value] = 0
        return 0

    def cuMemExportToShareableHandle(self, descriptor: Any, handle: Any, *_: Any) -> int:
        descriptor._obj.value = os.dup(handle.value)
        return 0

    def cuMemRelease(self, handle: Any) -> int:
        del self.created[handle.value]
        os.close(handle.value)
        return 0

    def cuMemMap(self, address: Any, size: Any, _offset: Any, handle: Any, _flags: Any) -> int:
        protection = mmap.PROT_READ | mmap.PROT_WRITE
        flags = _FIXED | _SHARED
        _LIBC.mmap(address.value, size.value, protection, flags, handle.value, 0)
        self.mapped[address.value] = size.value
        return 0

    def cuMemSetAccess(self, *_: Any) -> int:
        return 0

    def cuMemUnmap(self, address: Any, size: Any) -> int:
        assert self.mapped.pop(address.value) == size.value
        _LIBC.mmap(address.value, size.value, 0, _FIXED | _RESERVE, -1, 0)
        return 0


class HostRuntime:
    """The calls of CUDA's runtime that copy and wait."""

    memcpyHostToDevice = memcpyDeviceToHost = 0

    def __init__(self) -> None:
        self.allocated: dict[int, Any] = {}

    def malloc(self, size: int) -> int:
        memory = ctypes.create_string_buffer(size)
        self.allocated[ctypes.addressof(memory)] = memory
        return ctypes.addressof(memory)

    def free(self, address: int) -> None:
        del self.allocated[address]

    def memcpyAsync(self, to: int, source: int, size: int, _kind: int, _stream: int) -> None:
        ctypes.memmove(to, source, size)

    def memcpy(self, to: int, source: int, size: int, _kind: int) -> None:
        ctypes.memmove(to, source, size)

    def memsetAsync(self, address: int, value: int, size: int, _stream: int) -> None:
        ctypes.memset(address, value, size)

    def streamSynchronize(self, _stream: int) -> None: ...

    def deviceSynchronize(self) -> None: ...

    def deviceSetLimit(self, _limit: int, _size: int) -> None: ...

    def memGetInfo(self) -> tuple[int, int]:
        return TOTAL_BYTES, TOTAL_BYTES


def host_bytes(address: int, size: int) -> torch.Tensor:
    """A view of `size` bytes at an address: uint8 of shape (size,)."""
    return torch.from_numpy(_array(address, size, numpy.dtype(numpy.uint8)))


def _array(address: int, count: int, dtype: numpy.dtype[Any]) -> Any:
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return numpy.frombuffer(memory, dtype=dtype)


def mask_bytes(address: int, size: int, key: int) -> None:
    """Masks a buffer, or takes the mask away; nothing without a key."""
    if key:
        mask = numpy.random.default_rng(key).integers(0, 256, size, dtype=numpy.uint8)
        _array(address, size, numpy.dtype(numpy.uint8))[:] ^= mask


class HostKernels:
    """The kernels of kernels.cu that deal and compare, as kernels.cu describes them."""

    def deal(self, slots_address: int, count: int) -> None:
        for base, size, offset, length, *contents, key in self._rows(slots_address, count):
            before, own, after = self._parts(base, size, offset, length)
            source, guard, fill = contents
            before[:] = after[:] = guard
            own[:] = self._bytes(source, length) if source else fill
            mask_bytes(base + offset, length, key)

    def audit(self, slots_address: int, count: int, flags: int) -> None:
        found = _array(flags, count, numpy.dtype(numpy.uint32))
        for number, row in enumerate(self._rows(slots_address, count)):
            before, own, after = self._parts(*row[:4])
            source, guard = row[4:6]
            overwritten = bool(source) and not numpy.array_equal(own, self._bytes(source, len(own)))
            beyond = bool((before != guard).any() or (after != guard).any())
            found[number] |= overwritten + 2 * beyond

    def compare(self, comparisons: int, count: int, figures: int) -> None:
        names = {number: getattr(torch, name) for name, number in DTYPES.items()}
        rows, found = _array(comparisons, count, _COMPARISON), _array(figures, count, _FIGURES)
        for row, figure in zip(rows, found, strict=True):
            dtype, elements = names[int(row["dtype"])], int(row["elements"])
            shape = (-1, int(row["row"])) if row["row"] else (elements,)
            output = host_bytes(int(row["output"]), elements * dtype.itemsize).view(dtype)
            reference = host_bytes(int(row["reference"]), elements * 8).view(torch.float64)
            gate = Gate(float(row["atol"]), float(row["rtol"]), 0.0, 0.0)
            errors = errors_of(output.view(shape), reference.view(shape), gate)
            infinite = int(reference.isinf().sum())
            squares = float(reference.masked_fill(reference.isinf(), 0).square().sum())
            figure["max_abs"], figure["worst_row"] = errors.max_abs, errors.slice_rel_rmse
            figure["needed_atol"] = errors.needed_atol
            figure["error"] = errors.rel_rmse**2 * (squares or max(1, elements - infinite))
            figure["reference"], figure["infinite"] = squares, infinite
            figure["failing"], figure["nan"] = errors.failing, errors.nan_count

    def _rows(self, address: int, count: int) -> list[list[int]]:
        table = _array(address, 8 * count, numpy.dtype(numpy.uint64)).reshape(count, 8)
        return [[int(value) for value in row] for row in table]

    def _bytes(self, address: int, size: int) -> Any:
        return _array(address, size, numpy.dtype(numpy.uint8))

    def _parts(self, base: int, size: int, offset: int, length: int) -> tuple[Any, Any, Any]:
        """What lies before a buffer in its slot, the buffer, and what lies behind it."""
        slot, end = self._bytes(base, size), offset + length
        return slot[:offset], slot[offset:end], slot[end:]


class HostToken:
    """A token that says whether it is held."""

    def __init__(self) -> None:
        self.is_held = False
        self.turns = 0  # how often it was held so far
        self.started: int | None = 0  # what `starts` says
        self.is_wanted = False
        self.offers = 0

    def offer(self) -> None:
        assert self.is_held and self.is_wanted
        self.offers += 1

    @contextmanager
    def held(self) -> Iterator[None]:
        assert not self.is_held
        self.is_held = True
        self.turns += 1
        try:
            yield
        finally:
            self.is_held = False

    @contextmanager
    def shared(self) -> Iterator[None]:
        with self.held():
            yield

    @contextmanager
    def starting(self) -> Iterator[None]:
        yield

    taking_memory = starting

    def starts(self) -> int | None:
        return self.started


class HostHarness(GpuHarness):
    """All that the grader uses of the device, without times and caches."""

    def __init__(self, slots_bytes: int = 1 << 40) -> None:
        self.ordinal = 0
        self.token = HostToken()  # type: ignore[assignment]  # it is held in the same way
        self.stream = SimpleNamespace(ptr=0)  # type: ignore[assignment]  # no stream is needed
        self.l2_bytes = 50 * 1024**2
        self.resident_threads = 132 * 2048
        self.kernels = HostKernels()  # type: ignore[assignment]  # the same calls
        self.addresses = AddressRange(0, RANGE_BYTES)
        self.slots = SlotPool(0, self.addresses, slots_bytes)
        self.hidden_slots = SlotPool(0, self.addresses, slots_bytes)
        self.slot_table, self.flags = DeviceTable(0), DeviceTable(0)
        self.comparisons, self.figures = DeviceTable(0), DeviceTable(0)

    def own_bytes(self) -> int:
        return self.addresses.mapped_bytes


# Runs one call: the addresses of its buffers by name, and the number of the call in the replay.
Behaviour = Callable[[dict[str, int], int], None]


class HostReplayer(Replayer):
    """Replays Python functions; a plan's code path names its function."""

    behaviours: dict[str, Behaviour] = {}
    calls_of_replays: list[int] = []
    times: Callable[[int], Replayed] = staticmethod(  # of a replay with so many samples
        lambda samples: Replayed(
            event_us=(100.0,) * samples, stamp_us=(101.0,) * samples, host_us=120.0
        )
    )

    def __init__(self, ordinal: int) -> None:
        self._range = AddressRange(ordinal, RANGE_BYTES)
        self._slots = {}
        self._loaded: Load | None = None

    def warm_up(self) -> None:
        """Nothing: a function takes as long the first time."""

    def load(self, load: Load) -> None:
        self._loaded, self._buffers = load, load.buffers

    def reload(self) -> None:
        assert self._loaded is not None

    def unload(self) -> int:
        self._loaded = None
        return TOTAL_BYTES

    def replay(self, replay: Replay) -> Replayed:
        assert self._loaded is not None
        behaviour = HostReplayer.behaviours[self._loaded.code_path]
        for number, call in enumerate((*replay.warm_up, *replay.calls)):
            if number == len(replay.warm_up):
                for slot, offset, size, key in replay.reads:
                    mask_bytes(self._slots[slot][0] + offset, size, key)
            behaviour(self._pointers(call), number)
        HostReplayer.calls_of_replays.append(len(replay.calls))
        return HostReplayer.times(len(replay.calls) if replay.cold else 1)

    # what a profile records of each call
    recorded: tuple[LaunchActivity, ...] = ()
    profile_problem = ""

    def profile(self, request: Profile) -> Profiled:
        assert self._loaded is not None
        behaviour = HostReplayer.behaviours[self._loaded.code_path]
        for number, call in enumerate((*request.warm_up, *request.calls)):
            behaviour(self._pointers(call), number)
        HostReplayer.calls_of_replays.append(len(request.calls))
        if HostReplayer.profile_problem:
            return Profiled(problem=HostReplayer.profile_problem)
        return Profiled(calls=(HostReplayer.recorded,) * len(request.calls))


def install(monkeypatch: pytest.MonkeyPatch, driver: HostDriver | None = None) -> HostDriver:
    """Puts the host in place of the device for one test."""
    for earlier in _DRIVERS:
        earlier.close()
    driver = driver or HostDriver()
    _DRIVERS[:] = [driver]
    runtime = HostRuntime()
    monkeypatch.setattr(virtual_memory, "driver_library", lambda: driver)
    for module in (device_table, dealing, replayer):
        monkeypatch.setattr(module, "runtime", runtime)
    monkeypatch.setattr(examination, "device_bytes", host_bytes)
    monkeypatch.setattr(runner_loop, "Replayer", HostReplayer)
    device = SimpleNamespace(use=lambda: None, synchronize=lambda: None)
    cuda = SimpleNamespace(Device=lambda *_: device, runtime=_LimitedRuntime(runtime))
    monkeypatch.setattr(runner_loop, "cupy", SimpleNamespace(cuda=cuda))
    name = SimpleNamespace(deviceGetPCIBusId=lambda _: f"test-{os.getpid()}")
    monkeypatch.setattr(gpu_token, "cupy", SimpleNamespace(cuda=SimpleNamespace(runtime=name)))
    properties = SimpleNamespace(total_memory=TOTAL_BYTES)
    monkeypatch.setattr(input_pool.torch.cuda, "get_device_properties", lambda _: properties)
    monkeypatch.setattr(HostReplayer, "behaviours", {})
    monkeypatch.setattr(HostReplayer, "calls_of_replays", [])
    monkeypatch.setattr(HostReplayer, "recorded", ())
    monkeypatch.setattr(HostReplayer, "profile_problem", "")
    return driver


class EndedError(Exception):
    """Raised in place of os._exit, where the runner is a thread."""


@contextmanager
def connected_runner(monkeypatch: pytest.MonkeyPatch) -> Iterator[RunnerClient]:
    """A grader's client, at whose other end a runner's loop serves in a thread."""

    def ended(_: int) -> None:
        raise EndedError

    monkeypatch.setattr(runner_loop.os, "_exit", ended)
    ours, theirs = socket.socketpair()

    def serve() -> None:
        with theirs, suppress(EndedError):
            runner_loop.serve(theirs, 0)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    client = RunnerClient(ours)
    yield client
    client.close()
    thread.join(10)
    assert not thread.is_alive()


@contextmanager
def connected_pair(monkeypatch: pytest.MonkeyPatch) -> Iterator[PairClient]:
    """A grader's client of two runners, each in a thread."""
    with connected_runner(monkeypatch) as shown, connected_runner(monkeypatch) as hidden:
        yield PairClient(shown, hidden)


_DRIVERS: list[HostDriver] = []  # of the test before, whose addresses are still reserved


class _LimitedRuntime:
    """A runtime whose limits can be set."""

    cudaLimitPrintfFifoSize, cudaLimitMallocHeapSize = 1, 2

    def __init__(self, runtime: HostRuntime) -> None:
        self.deviceSetLimit = runtime.deviceSetLimit
        self.memGetInfo = runtime.memGetInfo
