"""A run that is replayed from the rows of an earlier one."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from evoengine.generate.replay import ReplayGenerator
from evoengine.protocols import Exhausted, ProposalRow, ReplyRow, Row
from evoengine.records import Proposal, Reply, Usage
from evoengine.store.memory_store import MemoryStore
from tests.generate.memory_replies import MemoryReplies
from tests.generate.row_sums_task import kernel, request


class Recorded(MemoryStore):
    """The store of an earlier run, which nothing may be appended to."""

    def __init__(self, *rows: Row) -> None:
        super().__init__()
        super().append(*rows)

    def append(self, *rows: Row) -> None:
        raise AssertionError("a recorded run is not written to")


def reply(text: str) -> Reply:
    return Reply(
        model="m",
        prompt="the prompt",
        text=text,
        usage=Usage(prompt_tokens=10, completion_tokens=20, cost_usd=1.5),
    )


def propose(
    task_path: Path, store: Recorded, trial: int, replies: MemoryReplies | None = None
) -> Proposal:
    return asyncio.run(
        ReplayGenerator(store).propose(request(task_path, trial=trial), replies or MemoryReplies())
    )


def test_stored_replies_are_read_again_and_handed_on_free_of_charge(task_path: Path) -> None:
    stored = Proposal(
        operator="crossover", parents=(1, 2), source="what an older reader made of it"
    )
    store = Recorded(ReplyRow(7, 0, reply(f"```\n{kernel('again')}```")), ProposalRow(7, stored))
    replies = MemoryReplies()
    proposal = propose(task_path, store, 7, replies)
    assert (proposal.operator, proposal.parents, proposal.source) == (
        "crossover",
        (1, 2),
        kernel("again"),
    )
    assert replies.stored[0].text == f"```\n{kernel('again')}```"
    assert replies.stored[0].usage == Usage()


def test_the_repair_turn_is_replayed_only_where_it_is_needed(task_path: Path) -> None:
    store = Recorded(
        ReplyRow(7, 0, reply("no kernel")), ReplyRow(7, 1, reply(f"```\n{kernel('repaired')}```"))
    )
    replies = MemoryReplies()
    proposal = propose(task_path, store, 7, replies)
    assert (proposal.operator, proposal.label, list(replies.stored)) == (
        "repair",
        "repaired",
        [0, 1],
    )


def test_a_trial_whose_repair_was_never_answered_keeps_its_problem(task_path: Path) -> None:
    proposal = propose(task_path, Recorded(ReplyRow(7, 0, reply("no kernel"))), 7)
    assert proposal.source is None
    assert "holds no code block" in proposal.problem


def test_a_trial_without_replies_is_given_back_as_it_was(task_path: Path) -> None:
    stored = Proposal(
        operator="tune", parents=(0,), source=kernel(), tunables={"THREADS": 256}, label="tuned"
    )
    assert propose(task_path, Recorded(ProposalRow(3, stored)), 3) == stored


def test_beyond_the_recorded_trials_it_is_exhausted(task_path: Path) -> None:
    with pytest.raises(Exhausted, match="holds nothing for trial 4: all of it has been replayed"):
        propose(task_path, Recorded(), 4)


def test_nothing_of_the_network_is_imported_before_a_model_is_asked() -> None:
    code = (
        "import sys, evoengine.generate.replay, evoengine.generate.llm; sys.exit('openai' in"
        " sys.modules or 'httpx' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
