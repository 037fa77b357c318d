"""What NVIDIA's compiler does to code, in the counts of kernels that clang compiled and the emulator
ran.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy
import pytest

from evoengine.emulator.check.findings import Check
from evoengine.emulator.device import Checks, Emulator, LaunchReport
from evoengine.emulator.front.clang import compile_cuda
from evoengine.emulator.timing_model.counts import Counts
from evoengine.emulator.timing_model.launch_counts import _warp_skew, counts_from_reports

NUMBERS = 8192


def counted(body: str, *, grid: int = 1, sample: int | None = None, block: int = 64) -> Counts:
    """The counts of a kernel over x[8192], all of which are 3, and out[8192]; `sample`: the blocks
    that are checked, all of them without.
    """
    source = (
        f"__global__ void k(const int* __restrict__ x, int* __restrict__ out, int n) {{{body}}}"
    )
    compiled = compile_cuda(source, name="k.cu", macros={}, arch="sm_89", kernels=["k"])
    emulator = Emulator(target="h200", threads=2)
    try:
        x = emulator.memory.allocate(4 * NUMBERS, name="x")
        out = emulator.memory.allocate(4 * NUMBERS, name="out")
        emulator.memory.view(x, 4 * NUMBERS).view(numpy.int32)[:] = 3
        emulator.memory.view(out, 4 * NUMBERS)[:] = 0
        args = [x.to_bytes(8, "little"), out.to_bytes(8, "little"), NUMBERS.to_bytes(4, "little")]
        program, name = emulator.load(compiled.ptx), compiled.functions["k"]
        shape = {"grid": (grid, 1, 1), "block": (block, 1, 1), "args": args}
        fast = program.launch(name, **shape)
        emulator.memory.view(out, 4 * NUMBERS)[:] = 0  # a queue in it is full again
        blocks = list(range(sample)) if sample else None
        checked = program.launch(name, **shape, checks=Checks(Check(0)), blocks=blocks)
        return counts_from_reports(fast, checked)
    finally:
        emulator.close()


def waits(body: str) -> float:
    """Waits for L2 in each iteration of the one loop, which runs 128 times."""
    return counted(body).delays["l2"] / 2 / 128  # two warps


@pytest.mark.parametrize(
    ("step", "unrolled"), [("64", True), ("int(blockDim.x)", True), ("blockDim.x", False)]
)
def test_a_loop_whose_counter_may_wrap_is_not_unrolled(step: str, unrolled: bool) -> None:
    loop = f"for (int i = threadIdx.x; i < n; i += {step}) out[i] = x[i] + 1;"
    assert waits(loop) == pytest.approx(0.25 if unrolled else 1)


@pytest.mark.parametrize(("pragma", "together"), [("1", 1), ("2", 2), ("4", 4), ("8", 8)])
def test_a_loop_is_unrolled_as_often_as_its_pragma_says(pragma: str, together: int) -> None:
    """A kernel of one warp, whose loop runs 128 times: loads of so many rounds are one wait."""
    found = counted(
        f"int sum = 0;\n#pragma unroll {pragma}\n"
        "for (int i = 0; i < n; i += 64) sum += x[i + threadIdx.x]; out[threadIdx.x] = sum;"
    )
    assert found.delays["l2"] / 2 == pytest.approx(128 / together)


def test_an_index_that_an_offset_is_added_to_is_no_counter_that_may_wrap() -> None:
    index = counted("for (int i = threadIdx.x; i < n; i += 64) out[i] = x[blockDim.x + i / 2];")
    loads = index.delays.get("l1", 0.0) + index.delays["l2"]
    assert loads / 2 / 128 == pytest.approx(0.25)


def rows(pitch: int) -> Counts:
    """The counts of a block that stores four words of each row and loads them again; all that is
    known of the address of a row of `pitch` words is its greatest power of two.
    """
    return counted(
        f"__shared__ int tile[64][{pitch}];"
        "for (int k = 0; k < 4; ++k) tile[threadIdx.x][k] = x[k] + threadIdx.x;"
        "__syncthreads(); int sum = 0;"
        "for (int k = 0; k < 4; ++k) sum += tile[63 - threadIdx.x][k]; out[threadIdx.x] = sum;"
    )


def test_scalars_of_shared_memory_are_joined_where_their_address_is_aligned() -> None:
    loads = {pitch: rows(pitch).instructions["lsu"] / 2 for pitch in (8, 6, 5)}  # of two warps
    assert (loads[6] - loads[8], loads[5] - loads[8]) == (2 - 1, 4 - 1)


def test_joined_loads_take_the_wavefronts_of_a_wide_one() -> None:
    """Rows of 8 words meet in every fourth bank: 8 wavefronts for each of four scalars to store
    and, joined, 8 to load.
    """
    assert rows(8).shared_wavefronts / 2 == pytest.approx(4 * 8 + 8)


def test_halves_that_are_stored_one_after_the_other_are_one_store() -> None:
    stores = "".join(f"tile[threadIdx.x * 8 + {i}] = x[{i}];" for i in range(8))
    code = (
        "__shared__ __align__(16) short tile[{}]; {} __syncthreads();"
        "out[threadIdx.x] = tile[n & 63];"
    )
    together = counted(code.format(512, stores))
    apart = counted(code.format(640, stores.replace("* 8", "* 9")))
    assert apart.instructions["lsu"] - together.instructions["lsu"] == 7 * 2  # of two warps
    assert together.shared_wavefronts < apart.shared_wavefronts


def test_a_store_in_between_keeps_loads_of_shared_memory_apart() -> None:
    fill = "__shared__ int tile[64][4]; tile[threadIdx.x][0] = n; tile[threadIdx.x][1] = x[0];"
    apart, together = (
        counted(
            fill + f"__syncthreads(); const int a = tile[5][0]; {one} const int b = tile[5][1];"
            f"{other} out[threadIdx.x] = a + b;"
        )
        for one, other in (("tile[x[0]][1] = a;", ""), ("", "tile[x[0]][1] = a;"))
    )
    assert apart.instructions["lsu"] - together.instructions["lsu"] == 2


def test_nothing_waits_for_an_atomic_whose_result_is_unread() -> None:
    red, atom = (counted(f"{use} atomicAdd(out + threadIdx.x, n);") for use in ("", "out[4096] = "))
    assert "l2" not in red.delays and atom.delays["l2"] > 0


@pytest.mark.parametrize("sample", [None, 8])
@pytest.mark.parametrize(
    ("target", "times"),
    [
        ("0", 64 * 2),  # one lane of a warp does it for all
        ("threadIdx.x % 2", 64 * 2 * 16),
        ("threadIdx.x", 64 * 4),
        ("threadIdx.x % 8", 64 * 2 * 4),  # lanes of one sector wait for those of their own address
        ("threadIdx.x % 16", 64 * 2 * 4),  # and for the other sectors of their line
        ("threadIdx.x / 8", 64 * 2 * 8),
        ("threadIdx.x % 8 * 32", 64 * 2 * 4),
        ("blockIdx.x * 64 + threadIdx.x", 4),
    ],
)
def test_atomics_on_the_line_that_has_the_most_are_counted_over_all_blocks(
    target: str, times: int, sample: int | None
) -> None:
    found = counted(f"atomicAdd(out + ({target}), x[threadIdx.x]);", grid=64, sample=sample)
    assert found.same_line == times


def test_blocks_that_empty_a_queue_count_its_tickets_once() -> None:
    queue = """
        __shared__ int ticket;
        while (true) {
            if (threadIdx.x == 0) ticket = atomicAdd(out, 1);
            __syncthreads();
            if (ticket >= 1000) return;
            __syncthreads();
        }"""
    assert counted(queue, grid=64).same_line == 1000 + 64
    # two of the blocks alone, scaled by the tickets that the whole grid took
    assert counted(queue, grid=64, sample=2).same_line == pytest.approx(1000 + 64)


def test_rounds_of_waiting_for_other_blocks_are_no_work_and_no_contention() -> None:
    """Each block waits, at an atomic, until the one before it has been; host threads run two."""
    turns = """
        if (threadIdx.x == 0) {
            while (atomicAdd(out, 0) != int(blockIdx.x)) {}
            for (int i = 0; i < 500; ++i) out[64 + i % 7] += x[i];
            __threadfence();
            atomicAdd(out, 1);
        }"""
    found = counted(turns, grid=16)
    assert found.most_issued == 0  # unknown
    # the poll of a block, one or two more if it had to wait, and its own turn: not its thousands
    assert 2 * 16 <= round(found.same_line, 6) <= 4 * 16


@pytest.mark.parametrize("sample", [None, 8])
@pytest.mark.parametrize(
    ("before", "hops"),
    [
        ("", 63),
        ("atomicExch(out + 1 + ticket, 1);", 1),  # as in a decoupled look-back
    ],
)
def test_blocks_that_wait_for_the_one_before_are_a_chain(
    before: str, hops: int, sample: int | None
) -> None:
    chain = f"""
        if (threadIdx.x == 0) {{
            const int ticket = atomicAdd(out, 1);
            {before}
            if (ticket)
                while (*(volatile int*)(out + ticket) == 0) {{}}
            atomicExch(out + 1 + ticket, 2);
        }}"""
    assert counted(chain, grid=64, sample=sample).hops == hops


def test_blocks_that_raise_one_place_by_compare_and_swap_are_no_chain() -> None:
    raised = """
        int seen = *(volatile int*)out;
        while (int(blockIdx.x) > seen) {
            const int found = atomicCAS(out, seen, int(blockIdx.x));
            if (found == seen) break;
            seen = found;
        }"""
    assert counted(raised, grid=64).hops == 0


def test_how_long_a_few_blocks_waited_is_no_work_of_their_busiest_warp() -> None:
    """Blocks are told apart by warps up to a number, and those may have waited the longest."""
    work = numpy.full((2, 8), 100, dtype=numpy.uint64)
    work[0, 0], work[1, 0] = 9000, 110
    nodes = [SimpleNamespace(instructions=[None] * 10)]
    report = SimpleNamespace(
        warp_work=work,
        blocks_run=256,
        lowered=SimpleNamespace(cfg=SimpleNamespace(nodes=nodes)),
    )
    found = _warp_skew(cast(LaunchReport, report), [1000.0], [100.0])
    assert found == pytest.approx(110 / (810 / 8))


SWAPS = """
    int *place = out + threadIdx.x % 2, seen = *place;
    while ({go_on}) {{
        const int found = atomicCAS(place, seen, {value});
        if (found == seen) break;
        seen = found;
    }}"""


@pytest.mark.parametrize("sample", [None, 8])
def test_lanes_that_swap_until_they_have_added_all_try_again(sample: int | None) -> None:
    found = counted(SWAPS.format(go_on="true", value="seen + 1"), grid=64, sample=sample)
    assert found.visits == 64 * 32  # half of the lanes of 64 blocks
    assert found.line_visits == found.visits  # one sector, in which both addresses share a pass
    assert found.go_on == 1


def test_of_lanes_that_raise_a_maximum_a_share_tries_again() -> None:
    value = "x[(threadIdx.x * 37 + blockIdx.x * 61) % 64 + 64]"
    found = counted(SWAPS.format(go_on=f"{value} > seen", value=value), grid=64)
    assert found.visits == 64 * 32
    assert 0 < found.go_on < 0.9


def test_lanes_that_look_before_they_raise_a_maximum_try_once() -> None:
    found = counted("if (int(x[threadIdx.x]) > *out) atomicMax(out, int(x[threadIdx.x]));", grid=64)
    assert found.visits == 64 * 64 and found.go_on == 0


def test_without_a_look_before_an_atomic_nothing_tries_again() -> None:
    found = counted("atomicAdd(out, 1);", grid=64)
    assert (found.visits, found.line_visits, found.go_on) == (0, 0, 0)
