"""A run whose model writes nothing but hostile replies: command line, endpoint over HTTP,
generator, reader, engine and store are real.

A second test has real compilers and the emulator as well.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evoengine.emulator.emulator_errors import CompilerMissing
from evoengine.emulator.front.clang import find_clang
from evoengine.paths import RunPaths
from evoengine.protocols import ProposalRow, ReplyRow, VerdictRow
from evoengine.records import Reply, Status
from evoengine.store.run_folder import open_run
from tests.cli.conftest import Call
from tests.generate.chat_server import ChatServer, Step, chat_server, completion, error
from tests.search.hostile import JUDGED, REFUSED

RUN = RunPaths(Path("runs/one"))
KEY = "sk-of-nobody"
REJECTED = {what: (reply, words) for what, (reply, words) in REFUSED.items() if words}


@contextmanager
def answering(*script: Step) -> Iterator[ChatServer]:
    """A server that follows `script`, in a thread of its own: the command line has this one."""
    ready, stop = threading.Event(), asyncio.Event()
    servers: list[ChatServer] = []
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with chat_server(*script) as server:
            servers.append(server)
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    ready.wait()
    try:
        yield servers[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


@pytest.fixture(autouse=True)
def _endpoint_of_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def asking(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)


def reasons(trials: int) -> list[tuple[Status, str]]:
    """What became of the trials after the two starting kernels."""
    with open_run(RUN, read_only=True) as folder:
        rows = [folder.store.get(VerdictRow, trial) for trial in range(2, trials)]
    return [(row.verdict.status, row.verdict.reason) for row in rows if row]


@pytest.mark.sampled("what", one_in=6)
@pytest.mark.parametrize("what", REJECTED)
def test_a_refused_reply_is_a_rejected_trial_and_its_problem_goes_into_the_repair_prompt(
    what: str, scripted: Call, task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply, words = REJECTED[what]
    with answering(completion(reply)) as server:
        asking(server, monkeypatch)
        found = scripted("run", task, "--run", "one", "--trials", "3", "--generator", "openai")
    assert found.code == 0, found.err
    [(status, reason)] = reasons(3)
    assert status is Status.rejected and words in reason
    assert len(server.requests) == 2 and words in server.requests[1]["messages"][0]["content"]


def test_a_run_of_only_hostile_replies_ends_with_its_budget(
    scripted: Call, task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = [
        completion(reply) for reply in (*(reply for reply, _ in REFUSED.values()), *JUDGED.values())
    ]
    trials = 2 + len(script)
    with answering(*script) as server:
        asking(server, monkeypatch)
        asked = ("--trials", trials, "--generator", "openai", "--tune-share", "0")
        found = scripted("run", task, "--run", "one", *asked)
    assert found.code == 0, found.err
    assert len(reasons(trials)) == len(script) <= len(server.requests)
    replayed = scripted(
        "run", task, "--run", "two", "--trials", trials, "--replay-from", "runs/one"
    )
    assert replayed.code == 0, replayed.err
    assert scripted("show", "two", "--json").code == 0


@pytest.mark.sampled("what", one_in=6)
@pytest.mark.parametrize("what", REJECTED)
def test_a_run_that_such_a_reply_ended_continues_when_resumed(
    what: str, scripted: Call, task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replies are on disk before they are read, so whoever died of one met it again."""
    reply, words = REJECTED[what]
    with answering(error(401, "no"), completion(reply)) as server:
        asking(server, monkeypatch)
        assert (
            scripted("run", task, "--run", "one", "--trials", "3", "--generator", "openai").code
            == 8
        )
        with open_run(RUN) as folder:
            folder.store.append(ReplyRow(2, 0, Reply(model="scripted", prompt="?", text=reply)))
        found = scripted("resume", "one")
    assert found.code == 0, found.err
    [(status, reason)] = reasons(3)
    assert status is Status.rejected and words in reason


def test_what_an_endpoint_says_does_not_control_the_terminal(
    scripted: Call, task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering(error(403, "\x1b[2J no \x9b31m")) as server:
        asking(server, monkeypatch)
        found = scripted("run", task, "--run", "one", "--generator", "openai")
    assert found.code == 8 and "[2J no" in found.err
    assert not {"\x1b", "\x9b"} & set(found.err)


def test_hostile_replies_get_verdicts_from_real_compilers_and_the_emulator(
    call: Call, task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        find_clang()
    except CompilerMissing as missing:
        pytest.skip(str(missing))
    trials = 2 + len(JUDGED)
    with answering(*(completion(reply) for reply in JUDGED.values())) as server:
        asking(server, monkeypatch)
        found = call(
            "run",
            task,
            "--run",
            "one",
            "--trials",
            trials,
            "--generator",
            "openai",
            "--device",
            "emulator",
        )
    assert found.code == 0, found.err
    settled = reasons(trials)
    assert len(settled) == len(JUDGED)
    assert {Status.compile_error, Status.rejected, Status.crash} <= {
        status for status, _ in settled
    }, settled
    with open_run(RUN, read_only=True) as folder:
        proposals = [folder.store.get(ProposalRow, trial) for trial in range(2, trials)]
    assert (
        sum(row is not None and row.proposal.source is not None for row in proposals)
        > len(JUDGED) // 2
    )
    shown = call("show", "one", "--json")
    assert shown.code == 0 and len(json.loads(shown.out)["trials"]) == trials
