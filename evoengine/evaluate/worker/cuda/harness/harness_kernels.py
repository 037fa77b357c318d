"""Launches our own kernels, kernels.cu, which CuPy compiles, by the driver's own call."""

from __future__ import annotations

from ctypes import c_int, c_uint, c_uint64
from importlib import resources

import cupy
from cupy_backends.cuda.api import driver

from evoengine.evaluate.worker.cuda.harness.launch_arguments import LaunchArguments

THREADS = 256
SCRUB_THREADS = 1024
# numbers of kernels.cu, function `element`
DTYPES = {
    name: number
    for number, name in enumerate(
        ("float16", "bfloat16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool")
    )
}
BLOCKS_PER_SLOT = 64  # so that a few large slots fill the device
BLOCKS_PER_COMPARISON = 256
LOCAL_SIZES = (1024, 4096, 8192, 16384)  # bytes of a thread's local memory that a scrub overwrites
RESIDENT_THREADS = 2048  # of a multiprocessor, at most
_NOWHERE = c_uint64(0)  # a null pointer


class HarnessKernels:
    """The kernels on the current device; every call is asynchronous, on `stream`."""

    def __init__(self, stream: cupy.cuda.Stream) -> None:
        source = resources.files(__package__).joinpath("kernels.cu").read_text(encoding="utf-8")
        self._module = cupy.RawModule(code=source, options=("-std=c++17",))
        self._stream = stream
        device = cupy.cuda.Device()
        attributes = device.attributes
        self._multiprocessors = int(attributes["MultiProcessorCount"])
        self._shared_bytes = int(attributes["MaxSharedMemoryPerBlockOptin"])
        # by name; CuPy's own launch takes 20 to 40 us of the host, the driver's a few
        self._functions = {
            name: int(self._module.get_function(name).kernel.ptr)
            for name in (
                "deal",
                "unmask",
                "audit",
                "compare",
                "touch",
                "read_often",
                "flush",
                "demote",
                "scrub",
                "scrub_registers",
                "stamp",
                "nothing",
                *map(_local_scrub, LOCAL_SIZES),
            )
        }
        # one block takes a whole multiprocessor
        self._module.get_function("scrub").max_dynamic_shared_size_bytes = self._shared_bytes
        # of launches that are always the same
        self._scrubbed = LaunchArguments(c_int(self._shared_bytes // 4), c_uint(0))
        self._scrubbed_registers = LaunchArguments(c_uint(0))
        self._scrubbed_local = LaunchArguments(c_uint(0), _NOWHERE)
        self._no_arguments = LaunchArguments()

    def deal(self, slots: int, count: int) -> None:
        """Writes `count` slots whole, buffers and guards; see Slot in kernels.cu.

        `slots` is the address of their table.
        """
        self._launch("deal", (BLOCKS_PER_SLOT, count), THREADS, LaunchArguments(c_uint64(slots)))

    def unmask(self, buffers: int, count: int) -> None:
        """Takes away what `deal` has masked `count` buffers with; see Masked in kernels.cu.

        `buffers` is the address of their table.
        """
        self._launch(
            "unmask", (BLOCKS_PER_SLOT, count), THREADS, LaunchArguments(c_uint64(buffers))
        )

    def audit(self, slots: int, count: int, flags: int) -> None:
        """Adds 1 to flags[i] (uint32, 0 before) if an input changed, 2 if its guards did."""
        arguments = LaunchArguments(c_uint64(slots), c_uint64(flags))
        self._launch("audit", (BLOCKS_PER_SLOT, count), THREADS, arguments)

    def compare(self, comparisons: int, count: int, figures: int) -> None:
        """Adds up the figures (0 before) of `count` comparisons; see Comparison and Figures in
        kernels.cu.
        """
        arguments = LaunchArguments(c_uint64(comparisons), c_uint64(figures))
        self._launch("compare", (BLOCKS_PER_COMPARISON, count), THREADS, arguments)

    def touch(self, spans: int, count: int) -> None:
        """Reads `count` spans, so that L2 holds them; see Span in kernels.cu.

        `spans` is the address of their table.
        """
        arguments = LaunchArguments(c_uint64(spans), _NOWHERE)
        self._launch("touch", (BLOCKS_PER_SLOT, count), THREADS, arguments)

    def read_often(self, address: int, size: int, times: int) -> None:
        """Reads `size` bytes from `address` on, `times` times, past L1."""
        arguments = LaunchArguments(c_uint64(address), c_uint64(size), c_int(times), _NOWHERE)
        self._launch("read_often", (self._multiprocessors * 8, 1), THREADS, arguments)

    def demote(self, spans: int, count: int) -> None:
        """Takes the protection of L2 hints from the lines of `count` spans."""
        self._launch("demote", (BLOCKS_PER_SLOT, count), THREADS, LaunchArguments(c_uint64(spans)))

    def flush(self, address: int, size: int) -> None:
        """Overwrites a buffer larger than L2, which evicts everything else."""
        grid = (self._multiprocessors * 8, 1)
        arguments = LaunchArguments(c_uint64(address), c_uint64(size), c_uint(0))
        self._launch("flush", grid, THREADS, arguments)

    def scrub(self, local_bytes: int) -> None:
        """Overwrites shared memory and registers of every multiprocessor, and local memory of every
        thread that can be resident: `local_bytes`, and at least what every thread has.
        """
        grid = (2 * self._multiprocessors, 1)
        self._launch("scrub", grid, SCRUB_THREADS, self._scrubbed, self._shared_bytes)
        self.scrub_registers()
        size = next((size for size in LOCAL_SIZES if size >= local_bytes), LOCAL_SIZES[-1])
        blocks = self._multiprocessors * RESIDENT_THREADS // THREADS
        self._launch(_local_scrub(size), (blocks, 1), THREADS, self._scrubbed_local)

    def scrub_registers(self) -> None:
        """Overwrites the registers of every multiprocessor, and 2 KiB of its shared memory."""
        grid = (2 * self._multiprocessors, 1)  # one block at a time has most registers of one
        self._launch("scrub_registers", grid, THREADS, self._scrubbed_registers, 2048)

    def nothing(self) -> None:
        """A launch that does nothing."""
        self._launch("nothing", (1, 1), 1, self._no_arguments)

    def stamp(self, address: int) -> None:
        """Writes the device's clock, in nanoseconds, as uint64 to `address`."""
        self._launch("stamp", (1, 1), 1, LaunchArguments(c_uint64(address)))

    def _launch(
        self,
        name: str,
        grid: tuple[int, int],
        threads: int,
        arguments: LaunchArguments,
        shared_bytes: int = 0,
    ) -> None:
        function, stream = self._functions[name], self._stream.ptr
        driver.launchKernel(
            function, *grid, 1, threads, 1, 1, shared_bytes, stream, arguments.address, 0
        )


def _local_scrub(size: int) -> str:
    """The name of the kernel that overwrites so many bytes of each thread's local memory."""
    return f"scrub_local_{size}"
