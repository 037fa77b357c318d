"""Which runners a grader has, as its parent hands them over and ends them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evoengine.evaluate.device.worker_protocol import RUNNER_ENDED, Runners
from evoengine.evaluate.worker.cuda.harness.virtual_memory import PAGE_BYTES, AddressRange
from evoengine.evaluate.worker.cuda.pair_client import PairClient
from evoengine.evaluate.worker.cuda.runner_client import RunnerGone
from evoengine.evaluate.worker.cuda.runner_table import RunnerTable
from evoengine.evaluate.worker.cuda.slots import SlotPool
from tests.evaluate.worker.cuda.host_device import install
from tests.evaluate.worker.cuda.test_pair_client import Connections


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> Iterator[Connections]:
    install(monkeypatch)
    connections = Connections()
    yield connections
    connections.close()


@pytest.fixture
def table(connections: Connections) -> Iterator[RunnerTable]:
    table = RunnerTable(connections.grader)
    yield table
    for pair in table._pairs.values():
        pair.close()


def send(connections: Connections, count: int) -> None:
    """The connections of so many pairs."""
    for _ in range(count):
        connections.send(True, True)


def works(pair: PairClient) -> bool:
    """Whether both runners answer."""
    assert pair.hidden is not None
    return pair.shown.unload() > 0 and pair.hidden.unload() > 0


def test_new_pairs_have_the_numbers_that_the_parent_gives_them_and_keep_them(
    connections: Connections, table: RunnerTable
) -> None:
    send(connections, 2)
    table.update(Runners(used=(7, 3), new=(7, 3)))
    first, second = table.pair(7), table.pair(3)
    assert first is not second and works(first) and works(second)
    send(connections, 1)
    table.update(Runners(used=(3, 9), new=(9,)))
    assert table.pair(7) is first and table.pair(3) is second and works(table.pair(9))


def test_a_pair_that_is_gone_is_closed_and_forgotten(
    connections: Connections, table: RunnerTable
) -> None:
    send(connections, 2)
    table.update(Runners(used=(1,), new=(1, 2)))
    gone = table.pair(1)
    table.update(Runners(used=(2,), gone=(1,)))
    assert gone.shown._connection.fileno() == -1 and works(table.pair(2))
    with pytest.raises(KeyError):
        table.pair(1)


@pytest.mark.parametrize("failing", [1, 2])
def test_a_pair_that_does_not_start_leaves_no_connection_for_the_next_request(
    connections: Connections, table: RunnerTable, failing: int
) -> None:
    for number in (1, 2):
        connections.send(number != failing, True)
    with pytest.raises(RunnerGone, match=f"^{RUNNER_ENDED}$"):
        table.update(Runners(used=(1, 2), new=(1, 2)))
    send(connections, 1)
    table.update(Runners(used=(3,), new=(3,), gone=(1, 2)))  # of which one was never there
    assert works(table.pair(3)) and list(table._pairs) == [3]


@pytest.mark.parametrize("hidden", [False, True])
def test_slots_are_unmapped_by_every_runner_that_knows_them_also_where_one_has_ended(
    connections: Connections, table: RunnerTable, hidden: bool
) -> None:
    send(connections, 3)
    table.update(Runners(used=(1,), new=(1, 2, 3)))
    slots = SlotPool(0, AddressRange(0), limit_bytes=0)
    known = [place.slot for place in slots.place([PAGE_BYTES])]
    runners = [
        runner
        for number in (1, 2, 3)
        if (runner := table.pair(number).hidden if hidden else table.pair(number).shown)
    ]
    for runner in runners:
        runner.map(known)
        assert runner._known == {known[0].number}
    runners[0]._connection.shutdown(2)  # as one that was killed while nothing ran
    gone = slots.shrink([])
    assert known[0].number in gone
    table.drop(not hidden, gone)
    assert all(runner._known for runner in runners), "numbers of the other kind's slots"
    table.drop(hidden, gone)
    assert [runner._known for runner in runners[1:]] == [set(), set()]
    assert runners[1].unload() > 0
