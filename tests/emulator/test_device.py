"""The emulator's interface: programs, variables, parameters, refused launches, cleanup."""

from __future__ import annotations

import faulthandler
import os
import resource
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evoengine.emulator.device import Emulator, LaunchReport, Program
from evoengine.emulator.emulator_errors import LaunchRefused, PtxError, Unsupported

HEAD = ".version 8.3\n.target sm_89\n.address_size 64\n"
REGISTERS = ".reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %d<9>; .reg .f32 %f<9>;"
COUNTER = f"""{HEAD}
.global .u32 counter = 5;
.global .align 8 .u64 pointer = counter;
.const .u32 step[3] = {{10, 20, 30}};
.visible .entry count(.param .u64 out) {{ {REGISTERS}
  ld.param.u64 %d1, [out]; ld.global.u64 %d2, [pointer]; ld.u32 %r1, [%d2]; ld.const.u32 %r2, [step+4];
  add.u32 %r1, %r1, %r2; st.global.u32 [counter], %r1; st.global.u32 [%d1], %r1; ret;
}}"""
MIXED = f"""{HEAD}
.visible .entry mixed(.param .u64 out, .param .u8 small, .param .f32 real,
  .param .u64 .ptr wide, .param .align 8 .b8 blob[12]) {{ {REGISTERS}
  ld.param.u64 %d1, [out]; ld.param.u8 %r1, [small]; ld.param.u32 %r2, [real]; ld.param.u32 %r3, [wide+4]; ld.param.u32 %r4, [blob+8];
  st.global.v4.u32 [%d1], {{%r1, %r2, %r3, %r4}}; ret;
}}"""
EMPTY = f"{HEAD}.visible .entry k() {{ ret; }}"


@pytest.fixture(scope="module")
def device() -> Iterator[Emulator]:
    device = Emulator("l4", threads=1)
    yield device
    device.close()


def launch(program: Program, symbol: str, *args: bytes, **more: Any) -> LaunchReport:
    return program.launch(symbol, **{"grid": (1, 1, 1), "block": (1, 1, 1), "args": args, **more})


def count(device: Emulator, program: Program) -> int:
    out = device.memory.allocate(4)
    launch(program, "count", out.to_bytes(8, "little"))
    found = int(device.memory.view(out, 4).view(np.uint32)[0])
    device.memory.free(out)
    return found


# ---------------------------------------------------------------- variables and parameters


def test_variables_keep_their_values_between_launches_until_they_are_reset(
    device: Emulator,
) -> None:
    program = device.load(COUNTER)
    assert [count(device, program), count(device, program)] == [25, 45]
    program.reset()
    assert count(device, program) == 25
    program.close()


def test_two_programs_of_one_text_have_variables_of_their_own(device: Emulator) -> None:
    first, second = device.load(COUNTER), device.load(COUNTER)
    assert [count(device, first), count(device, second), count(device, first)] == [25, 25, 45]
    first.close()
    second.close()


def test_parameters_are_laid_out_as_by_cuda_and_may_be_passed_wider(device: Emulator) -> None:
    program, out = device.load(MIXED), device.memory.allocate(16)
    args = [
        out.to_bytes(8, "little"),
        (0x1FF).to_bytes(8, "little"),
        struct.pack("<f", 1.5),
        struct.pack("<Q", 7 << 32),
        struct.pack("<3I", 1, 2, 3),
    ]
    launch(program, "mixed", *args)
    assert device.memory.view(out, 16).view(np.uint32).tolist() == [0xFF, 0x3FC00000, 7, 3]
    device.memory.free(out)
    program.close()


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ({"grid": (0, 1, 1)}, "grid.x must be 1 to 2147483647, got 0"),
        ({"grid": (1, 65536, 1)}, "grid.y must be 1 to 65535, got 65536"),
        ({"grid": (1 << 31, 1, 1)}, "grid.x must be 1 to 2147483647, got 2147483648"),
        ({"block": (1, 1, 65)}, "block.z must be 1 to 64, got 65"),
        ({"block": (1025, 1, 1)}, "block.x must be 1 to 1024, got 1025"),
        ({"block": (64, 32, 1)}, "a block has at most 1024 threads, got 2048 = 64 x 32 x 1"),
        ({"block": (32, 1)}, "block must have 3 dimensions"),
        ({"args": [b"1"]}, "k takes 0 parameters, the launch passes 1"),
        ({"shared_bytes": 1 << 20}, "1048576 bytes of shared memory, .* allows a block 101376"),
        ({"shared_bytes": -1}, "dynamic shared memory must be at least 0 bytes, got -1"),
        ({"blocks": [1]}, "block 1 was chosen from a grid of 1 blocks"),
    ],
)
def test_a_launch_that_cuda_would_refuse_is_refused(
    device: Emulator, more: dict[str, Any], match: str
) -> None:
    with pytest.raises(LaunchRefused, match=match):
        launch(device.load(EMPTY), "k", **more)


def test_an_unknown_kernel_is_refused_with_the_known_ones(device: Emulator) -> None:
    with pytest.raises(LaunchRefused, match="no kernel 'missing'; known kernels: count"):
        launch(device.load(COUNTER), "missing")
    with pytest.raises(LaunchRefused, match="no kernel 'f'; known kernels: none"):
        launch(device.load(f"{HEAD}.func f() {{ ret; }}"), "f")


def test_a_parameter_that_is_too_short_is_refused(device: Emulator) -> None:
    with pytest.raises(LaunchRefused, match="count: parameter 1 has 8 bytes, the launch passes 4"):
        launch(device.load(COUNTER), "count", bytes(4))


def test_more_threads_than_the_launch_bounds_are_refused(device: Emulator) -> None:
    program = device.load(f"{HEAD}.visible .entry k() .maxntid 64, 1, 1 {{ ret; }}")
    launch(program, "k", block=(64, 1, 1))
    with pytest.raises(
        LaunchRefused,
        match="by its launch bounds a block of this kernel has at most 64 threads, got 96",
    ):
        launch(program, "k", block=(96, 1, 1))


@pytest.mark.parametrize(
    ("declared", "used", "match"),
    [
        (
            ".shared .b8 x[49153];",
            "mov.u64 %d1, x;",
            "49168 bytes of static shared memory, CUDA allows 49152",
        ),
        (
            ".local .b8 x[1000000];",
            "mov.u64 %d1, x;",
            "1000000 bytes of local memory for a thread, CUDA allows 524288",
        ),
    ],
)
def test_more_memory_than_a_block_may_have_is_refused(
    device: Emulator, declared: str, used: str, match: str
) -> None:
    program = device.load(
        f"{HEAD}.visible .entry k() {{ {REGISTERS} {declared} {used} st.u32 [%d1], 1; ret; }}"
    )
    with pytest.raises(LaunchRefused, match=match):
        launch(program, "k")


def test_variables_that_no_device_holds_are_refused(device: Emulator) -> None:
    before = dict(device.memory.buffers)
    with pytest.raises(
        LaunchRefused, match="out of memory: global variables of 100000000000 bytes"
    ):
        device.load(f"{HEAD}.global .b8 huge[100000000000];")
    assert device.memory.buffers == before


def test_scratch_that_no_device_holds_is_refused(device: Emulator) -> None:
    with pytest.raises(LaunchRefused, match="out of memory: scratch of 107374182400 bytes"):
        device.memory.allocate(100 << 30, "scratch")


def test_a_function_that_calls_itself_is_refused(device: Emulator) -> None:
    program = device.load(
        f"{HEAD}.func f() {{ {REGISTERS} st.global.u32 [%d1], 1; call f, (); ret; }}\n.visible"
        " .entry k() { call f, (); ret; }"
    )
    with pytest.raises(Unsupported, match="recurs"):
        launch(program, "k")


@pytest.mark.parametrize("text", ["", "nonsense", "__global__ void k() {}"])
def test_invalid_ptx_is_refused_or_has_no_kernel(device: Emulator, text: str) -> None:
    try:
        program = device.load(text)
    except PtxError as error:
        assert "line" in str(error)
    else:
        with pytest.raises(LaunchRefused, match="known kernels: none"):
            launch(program, "k")


# ---------------------------------------------------------------- what is left behind


def test_closing_leaves_nothing() -> None:
    device = Emulator("l4", threads=2)
    before = _reservations()
    program = device.load(COUNTER)
    count(device, program)
    program.close()
    assert not device.memory.buffers
    program = device.load(COUNTER)
    device.close()
    program.close()  # in whatever order
    assert _reservations() == before - 1


def _reservations() -> int:
    """The number of mappings of at least 256 GiB in this process."""
    found = 0
    for line in Path("/proc/self/maps").read_text().splitlines():
        start, _, end = line.split()[0].partition("-")
        found += int(end, 16) - int(start, 16) >= 1 << 38
    return found


def test_the_memory_of_many_launches_does_not_grow() -> None:
    text = f"""{HEAD}.visible .entry k(.param .u64 out) {{ {REGISTERS} .local .align 4 .b8 frame[4096]; .shared .b8 tile[32768];
      ld.param.u64 %d1, [out]; mov.u64 %d2, frame; cvta.local.u64 %d2, %d2; st.u32 [%d2], 1;
      mov.u64 %d3, tile; bar.sync 0; st.global.u32 [%d1], 1; ret; }}"""
    device = Emulator("l4", threads=2)
    program, out = device.load(text), device.memory.allocate(4)

    def some(times: int) -> int:
        for _ in range(times):
            launch(program, "k", out.to_bytes(8, "little"), grid=(2, 1, 1), block=(1024, 1, 1))
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10

    before, buffers = some(5), len(device.memory.buffers)
    after = some(40)  # each has 8 MiB of frames
    assert after - before < 24 and len(device.memory.buffers) == buffers
    device.close()


def test_a_child_of_a_process_that_used_an_emulator_has_its_own(device: Emulator) -> None:
    program = device.load(COUNTER)
    assert count(device, program) == 25
    child = os.fork()
    if child == 0:
        code = 99
        try:
            faulthandler.disable()
            fresh = Emulator("l4", threads=2)
            code = count(fresh, fresh.load(COUNTER)) + count(device, program)
            fresh.close()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 25 + 45
    assert count(device, program) == 45  # the child's memory was a copy
    program.close()


def test_devices_with_and_without_vector_extensions_coexist(device: Emulator) -> None:
    plain = Emulator("l4", threads=1, without=("avx512", "avx10", "amx"))
    text = f"""{HEAD}.visible .entry k(.param .u64 out) {{ {REGISTERS}
      ld.param.u64 %d1, [out]; ex2.approx.f32 %f1, 0f40400000; st.global.f32 [%d1], %f1; ret; }}"""
    for one in (device, plain, device):
        program, out = one.load(text), one.memory.allocate(4)
        launch(program, "k", out.to_bytes(8, "little"))
        assert one.memory.view(out, 4).view(np.float32)[0] == 8.0
        program.close()
        one.memory.free(out)
    plain.close()


# ---------------------------------------------------------------- code made ahead


def test_code_is_compiled_in_the_background_and_its_errors_are_raised_at_the_launch(
    device: Emulator,
) -> None:
    program = device.load(COUNTER)
    program.start_compiling("count", (1, 1, 1), checked=False)
    program.start_compiling("missing", (1, 1, 1), checked=False)
    assert count(device, program) == 25
    with pytest.raises(LaunchRefused, match="no kernel 'missing'; known kernels: count"):
        launch(program, "missing")
    program.close()


def test_a_program_may_be_closed_while_its_code_is_compiled(device: Emulator) -> None:
    program, after = device.load(COUNTER), device.load(COUNTER)
    for threads in range(1, 64):
        program.start_compiling("count", (threads, 1, 1), checked=False)
    program.close()
    assert count(device, after) == 25
    after.close()
