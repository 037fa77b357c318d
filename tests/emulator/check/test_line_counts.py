"""What L1 looks up: lines of global and of local memory, and requests for what a warp has not
loaded before.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from evoengine.emulator.check.findings import Access, Check, Space
from tests.emulator.check.checker_driver import CheckerDriver, on_machine, row

LINE_BYTES, WORD_BYTES = 128, 4
NOTHING = Check(0)  # accesses are counted, nothing is looked for
BUFFER_BYTES = 1 << 16
FRAME_BYTES = 512


@pytest.fixture
def machine() -> Iterator[CheckerDriver]:
    yield from on_machine(
        blocks=4, threads=64, shared=1024, local=FRAME_BYTES, checks=NOTHING, sites=64
    )


@pytest.mark.parametrize(
    ("addresses", "nbytes", "lines"),
    [
        (row(0), 4, 1),
        (row(4), 4, 2),  # the last lane is in the next line
        (row(0)[::-1], 4, 1),
        ([64] * 32, 4, 1),
        (row(0, 2), 2, 1),
        (row(0, 16), 16, 4),
        (row(0, 64), 4, 16),
        (row(0, 128), 4, 32),
        (row(0, 256), 16, 32),
        ([128 * (lane % 3) for lane in range(32)], 4, 3),
        ([4 * lane + 4096 * (lane % 2) for lane in range(32)], 4, 2),
    ],
)
def test_a_request_of_global_memory_looks_up_each_of_its_lines_once(
    machine: CheckerDriver, addresses: list[int], nbytes: int, lines: int
) -> None:
    x = machine.launch.buffer(BUFFER_BYTES)
    places = [x + address for address in addresses]
    machine.load(0, places, bytes=nbytes, site=1)
    machine.store(0, places, bytes=nbytes, site=2)
    machine.global_atomic(0, places, bytes=nbytes, site=3)
    counts, sites = machine.counts(), machine.site_counts()
    assert (counts.global_load_lines, counts.global_store_lines) == (lines, 2 * lines)
    assert [sites[site].lines for site in (1, 2, 3)] == [lines] * 3


@pytest.mark.parametrize("seed", range(20))
def test_lines_of_random_lanes_are_those_of_their_bytes(machine: CheckerDriver, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311
    x, nbytes = machine.launch.buffer(BUFFER_BYTES), rng.choice((1, 2, 4, 8, 16))
    lanes = sorted(rng.sample(range(32), rng.randint(1, 32)))
    span = rng.choice((256, 2048, BUFFER_BYTES))
    places = [x + rng.randrange(span // nbytes) * nbytes for _ in lanes]
    machine.load(0, places, bytes=nbytes, mask=sum(1 << lane for lane in lanes), site=5)
    expected = {place // LINE_BYTES for place in places}  # aligned: no access crosses a line
    assert machine.site_counts()[5].lines == len(expected)
    assert machine.counts().global_load_lines == len(expected)


def test_copies_go_around_l1_and_shared_memory_has_no_lines(machine: CheckerDriver) -> None:
    x = machine.launch.buffer(BUFFER_BYTES)
    machine.copy(0, row(0, 16), row(x, 16))
    machine.read(0, row(0), site=1)
    assert machine.counts().global_load_lines == 0
    assert machine.site_counts()[1].lines == 0


@pytest.mark.parametrize(
    ("offsets", "nbytes", "lines"),
    [
        ([8] * 32, 4, 1),  # the words of all threads with one offset are one line
        ([8] * 32, 1, 1),
        ([8] * 32, 8, 2),
        ([16] * 32, 16, 4),
        (row(0), 4, 32),
        (row(0, 1), 1, 8),  # four bytes are one word
        (row(0, 16), 16, 32 * 4),
        ([4 * (lane % 3) for lane in range(32)], 4, 3),
        ([8 * (lane % 5) for lane in range(32)], 8, 5 * 2),
    ],
)
def test_a_request_of_local_memory_looks_up_a_line_for_each_word(
    machine: CheckerDriver, offsets: list[int], nbytes: int, lines: int
) -> None:
    for kind, site in ((Access.WRITE, 1), (Access.READ, 2)):
        machine.access(Space.LOCAL, kind, 0, offsets, bytes=nbytes, site=site)
    assert machine.counts().local_lines == 2 * lines
    sites = machine.site_counts()
    assert [(sites[site].lines, sites[site].units) for site in (1, 2)] == [(lines, 0)] * 2


@pytest.mark.parametrize("seed", range(20))
def test_lines_of_random_local_accesses_are_their_distinct_words(
    machine: CheckerDriver, seed: int
) -> None:
    rng = random.Random(seed)  # noqa: S311
    nbytes = rng.choice((1, 2, 4, 8, 16))
    lanes = sorted(rng.sample(range(32), rng.randint(1, 32)))
    offsets = [rng.randrange(FRAME_BYTES // nbytes) * nbytes for _ in lanes]
    mask = sum(1 << lane for lane in lanes)
    machine.access(Space.LOCAL, Access.WRITE, 0, offsets, bytes=nbytes, mask=mask)
    words = {(offset + byte) // WORD_BYTES for offset in offsets for byte in range(nbytes)}
    assert machine.counts().local_lines == len(words)


def test_a_load_is_fresh_where_nothing_of_its_block_has_loaded_a_sector_before(
    machine: CheckerDriver,
) -> None:
    x = machine.launch.buffer(BUFFER_BYTES)
    for start in (0, 0, 32, 64, 32):  # all lines new, the same, one new sector of four, and so on
        machine.load(0, row(x + start), site=9)
    machine.load(1, row(x), site=8)  # another warp asks at the same time and waits, too
    machine.block(1)
    machine.load(0, row(x), site=7)
    assert [machine.site_counts()[site].fresh for site in (9, 8, 7)] == [3, 1, 1]


def test_a_load_finds_what_another_warp_has_loaded_long_before(machine: CheckerDriver) -> None:
    x = machine.launch.buffer(BUFFER_BYTES)
    rows = [x + 128 * i for i in range(12)]
    for at in rows:
        machine.load(0, row(at), site=9)
    for at in reversed(rows):  # side by side with the other: both find what is left
        machine.load(1, row(at), site=9)
    assert machine.site_counts()[9].fresh == 16


def test_after_a_barrier_a_warp_finds_what_all_have_loaded_before_it(
    machine: CheckerDriver,
) -> None:
    x = machine.launch.buffer(BUFFER_BYTES)
    machine.load(0, row(x), site=9)
    machine.barrier()
    machine.load(1, row(x), site=8)
    assert [machine.site_counts()[site].fresh for site in (9, 8)] == [1, 0]


def test_stores_and_copies_are_never_fresh(machine: CheckerDriver) -> None:
    x = machine.launch.buffer(BUFFER_BYTES)
    machine.store(0, row(x), site=1)
    machine.copy(0, row(0, 16), row(x + 4096, 16), site=2)
    machine.load(0, row(x), site=3)
    assert [machine.site_counts()[site].fresh for site in (1, 2, 3)] == [0, 0, 1]


def test_what_is_fresh_is_not_counted_where_accesses_are_checked() -> None:
    for machine in on_machine(threads=32):
        x = machine.launch.buffer(BUFFER_BYTES)
        machine.load(0, row(x), site=9)
        assert machine.site_counts()[9].fresh == 0
        assert machine.site_counts()[9].lines == 1


def test_sectors_that_a_warp_loads_again_count_by_how_many_others_it_has_loaded(
    machine: CheckerDriver,
) -> None:
    x = machine.launch.buffer(BUFFER_BYTES)
    machine.load(0, row(x), site=9)
    machine.block(1)
    for _ in range(2):
        machine.load(0, row(x), site=9)  # what the other block has loaded, too
        for i in range(1, 21):  # four sectors each
            machine.load(0, row(x + 128 * i), site=9)
    machine.load(0, row(x + 128 * 20), site=9)  # near
    machine.load(1, row(x + 128), site=9)  # of another warp
    counts = machine.counts()
    assert (counts.reloads, counts.reload_span, counts.reload_blocks) == (80, 80 * 80, 1)
    machine.block(2)
    machine.load(0, row(x), site=9)
    assert machine.counts().reloads == 80
