"""Launches small PTX kernels on arrays.

In a body %rd0, %rd1... hold the addresses of the arrays, %t is threadIdx.x and %lane the lane;
%own0, %own1... are the addresses of a thread's 4-byte element of each array. Registers %p0-15,
%h0-63 (b16), %r0-127, %f0-31, %d0-15, %q0-31 (b64) are free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from evoengine.emulator.device import Checks, Emulator, LaunchReport

_HEAD = ".version 8.3\n.target sm_90\n.address_size 64\n"
_REGISTERS = """\
    .reg .pred %p<16>; .reg .b16 %h<64>; .reg .b32 %r<128>; .reg .f32 %f<32>; .reg .f64 %d<16>; .reg .b64 %q<32>;
    .reg .b64 %rd<8>; .reg .b64 %own<8>; .reg .b32 %t; .reg .b32 %lane; .reg .b64 %wide;
    mov.u32 %t, %tid.x; mov.u32 %lane, %laneid; mul.wide.u32 %wide, %t, 4;
"""


@dataclass(frozen=True)
class Ran:
    """The result of a launch."""

    arrays: list[np.ndarray]
    report: LaunchReport

    def kinds(self) -> list[str]:
        """The kinds of its findings, each once."""
        return sorted({finding.kind.name for finding in self.report.findings})


@cache
def emulator() -> Emulator:
    """One emulator for all tests, since each reserves 512 GiB of addresses; one host thread, so
    that blocks run in order.
    """
    return Emulator(target="l4", threads=1)


def kernel(body: str, arrays: int, declared: str = "", shared: int = 0) -> str:
    """The PTX of a kernel `k` with that many pointers."""
    parameters = ", ".join(f".param .u64 p{index}" for index in range(arrays))
    lines = [
        f"ld.param.u64 %rd{index}, [p{index}]; add.s64 %own{index}, %rd{index}, %wide;"
        for index in range(arrays)
    ]
    memory = f".shared .align 16 .b8 tile[{shared}];\n" if shared else ""
    return (
        f"{_HEAD}{declared}\n.visible .entry k({parameters})"
        f" {{\n{memory}{_REGISTERS}{' '.join(lines)}\n{body}\n ret;\n}}\n"
    )


def run(
    body: str,
    arrays: Sequence[np.ndarray],
    *,
    threads: int = 32,
    blocks: int = 1,
    shared: int = 0,
    declared: str = "",
    checks: Checks | None = None,
    fuel: int | None = None,
) -> Ran:
    """Launches `body` with `shared` bytes as `tile`; returns the arrays after it."""
    device = emulator()
    program = device.load(kernel(body, len(arrays), declared, shared))
    places = [
        device.memory.allocate(item.nbytes, name=f"array {index}")
        for index, item in enumerate(arrays)
    ]
    try:
        for place, item in zip(places, arrays, strict=True):
            device.memory.view(place, item.nbytes)[:] = (
                np.ascontiguousarray(item).reshape(-1).view(np.uint8)
            )
        args = [place.to_bytes(8, "little") for place in places]
        report = program.launch(
            "k", grid=(blocks, 1, 1), block=(threads, 1, 1), args=args, checks=checks, fuel=fuel
        )
        after = [
            device.memory.view(place, item.nbytes).copy().view(item.dtype).reshape(item.shape)
            for place, item in zip(places, arrays, strict=True)
        ]
        broken = [
            index for index, place in enumerate(places) if device.memory.red_zones_broken(place)
        ]
        assert not broken, f"written beside arrays {broken}"
        return Ran(after, report)
    finally:
        for place in places:
            device.memory.free(place)
        program.close()


def listed(letter: str, first: int, count: int) -> str:
    """{%r0, %r1, ...}"""
    return "{" + ", ".join(f"%{letter}{first + index}" for index in range(count)) + "}"


def load_registers(first: int, count: int, array: int) -> str:
    """Loads of %r registers from an array of [register, lane]."""
    return " ".join(
        f"ld.global.b32 %r{first + index}, [%own{array}+{128 * index}];" for index in range(count)
    )


def store_registers(first: int, count: int, array: int) -> str:
    """Stores of %r registers into an array of [register, lane]."""
    return " ".join(
        f"st.global.b32 [%own{array}+{128 * index}], %r{first + index};" for index in range(count)
    )
