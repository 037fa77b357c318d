"""What machine code says in words, and how many blocks fit on an SM."""

from __future__ import annotations

import pytest

from evoengine.candidate.machine_facts import facts
from evoengine.candidate.residency import residency
from evoengine.records import KernelResources, MachineCode

CODE = MachineCode(
    instructions=400,
    kinds=(("tensor", 16), ("fma", 200), ("alu", 184)),
    loop_kinds=(("tensor", 16), ("fma", 100), ("alu", 120)),
    accesses=(("global load", 2, 6), ("local load", 4, 3), ("shared store", 16, 2)),
    loop_accesses=(("global load", 2, 6), ("global load", 16, 2), ("local load", 4, 1)),
    tensor_shapes=(("mma m16n8k16", 16),),
    loop_integer_divisions=2,
    loop_float_divisions=1,
    loop_barriers=3,
)


def kernel(
    arch: str, registers: int, shared: int, threads: int, code: MachineCode | None = None
) -> KernelResources:
    return KernelResources(
        kernel="k",
        arch=arch,
        registers=registers,
        static_shared_bytes=0,
        dynamic_shared_bytes=shared,
        local_bytes=0,
        spill_store_bytes=0,
        spill_load_bytes=0,
        block_threads=threads,
        machine_code=code,
    )


@pytest.mark.parametrize(
    ("arch", "registers", "shared", "threads", "blocks", "limiters"),
    [
        # as the occupancy calculator of the CUDA toolkit has it
        ("sm_90", 32, 0, 256, 8, ("registers", "warps")),
        ("sm_90", 64, 0, 256, 4, ("registers",)),
        ("sm_90", 33, 0, 256, 6, ("registers",)),
        ("sm_90", 168, 0, 384, 1, ("registers",)),
        ("sm_90", 32, 113 * 1024, 128, 2, ("shared memory",)),
        ("sm_90", 32, 227 * 1024, 128, 1, ("shared memory",)),
        ("sm_90a", 16, 0, 32, 32, ("blocks",)),
        ("sm_89", 40, 0, 256, 6, ("registers", "warps")),
        ("sm_75", 32, 32 * 1024, 128, 2, ("shared memory",)),
    ],
)
def test_blocks_of_an_sm_and_what_limits_them(
    arch: str, registers: int, shared: int, threads: int, blocks: int, limiters: tuple[str, ...]
) -> None:
    found = residency(kernel(arch, registers, shared, threads))
    assert found is not None
    assert (found.blocks, found.limiters) == (blocks, limiters)


def test_nothing_is_said_of_a_block_or_an_architecture_that_is_not_known() -> None:
    assert residency(kernel("sm_90", 32, 0, 0)) is None
    assert facts(kernel("sm_999", 32, 0, 128)) == ()


def test_the_words_name_occupancy_mix_widths_and_what_may_be_slow() -> None:
    assert facts(kernel("sm_90", 64, 0, 256, CODE)) == (
        "4 blocks of 256 threads fit on an SM: 32 of 64 warps (50%), limited by registers",
        "400 instructions, 236 in loops: 120 alu, 100 fma, 16 tensor; tensor instructions: 16 mma"
        " m16n8k16",
        "accesses in loops, bytes a thread: global load 6x2 + 2x16",
        "3 accesses to local memory (1 in loops): spilled registers, or arrays with indices that"
        " are not constant",
        "6 of 8 global loads in loops: 4 bytes a thread or fewer",
        "2 integer divisions in loops",
        "1 exact float division in loops",
        "3 block barriers in loops",
    )


def test_loops_that_are_not_known_are_not_called_absent() -> None:
    unknown = CODE.model_copy(update={"loops_known": False, "loop_kinds": ()})
    assert facts(kernel("sm_90", 64, 0, 256, unknown))[1].startswith("400 instructions: 200 fma")
    none = CODE.model_copy(update={"loop_kinds": ()})
    assert facts(kernel("sm_90", 64, 0, 256, none))[1].startswith("400 instructions, no loops: ")
