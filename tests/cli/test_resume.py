"""What a resume goes on from, what it may change, and runs of an earlier version."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from evoengine.config import RunConfig
from evoengine.protocols import ReplyRow
from evoengine.records import TIMING_VERSION, Unanswered
from evoengine.search.changes import current_info
from evoengine.search.starting_kernels import starting_kernels
from evoengine.store.sqlite_store import SqliteStore
from tests.cli.conftest import Call
from tests.generate.chat_server import Step, chat_server, completion, http
from tests.sampling import Entry, Sampling
from tests.scale_task import kernel, write_task

ROOT = Path(__file__).parents[2]
OF_0_1_0 = ROOT / "tests" / "store" / "assets" / "v1" / "killed_run.db"
KEY = "sk-secret-4711-do-not-show"


def lines_of_trials(text: str) -> list[int]:
    """The numbers of the trials that have a line."""
    return [int(number) - 1 for number in re.findall(r"^(?:\S+ )?\[(\d+)/", text, re.MULTILINE)]


# ---------------------------------------------------------------- what is settled


def test_after_a_resume_every_trial_that_was_open_has_a_line_and_no_other(
    scripted: Call, task: Path
) -> None:
    scripted("run", task, "--run", "one", "--trials", "12", "--in-flight", "8")
    with closing(sqlite3.connect("runs/one/run.db")) as database:
        for table in ("verdict_bodies", "verdicts"):
            database.execute(f"DELETE FROM {table} WHERE trial = 5")  # noqa: S608 - our own names
        database.commit()
    shown = json.loads(scripted("show", "one", "--json").out)
    assert shown["settled"] == 5
    resumed = scripted("resume", "one")
    assert "resumed after 5 trials" in resumed.err
    assert lines_of_trials(resumed.err) == list(range(5, 12))


def test_show_and_resume_count_the_same_trials_as_settled_wherever_a_run_was_cut(
    scripted: Call, task: Path, sampling: Sampling
) -> None:
    scripted("run", task, "--run", "whole", "--trials", "12", "--in-flight", "3")
    for cut in (entry.name for entry in sampling.draw("cuts", map(Entry, range(2, 12)), 4)):
        shutil.copytree("runs/whole", f"runs/cut{cut}")
        with closing(sqlite3.connect(f"runs/cut{cut}/run.db")) as database:
            for table in ("verdict_bodies", "verdicts"):
                database.execute(f"DELETE FROM {table} WHERE trial = {cut} OR trial > {cut + 1}")  # noqa: S608 - our own names
            database.execute(f"DELETE FROM proposals WHERE trial > {cut + 1}")  # noqa: S608
            database.commit()
        settled = json.loads(scripted("show", f"cut{cut}", "--json").out)["settled"]
        resumed = scripted("resume", f"cut{cut}")
        assert f"resumed after {settled} trials" in resumed.err
        assert lines_of_trials(resumed.err) == list(range(settled, 12))
        rows = [json.loads(scripted("show", name, "--json").out) for name in ("whole", f"cut{cut}")]
        assert rows[0]["trials"] == rows[1]["trials"] and rows[0]["elites"] == rows[1]["elites"]


# ---------------------------------------------------------------- what may change


@pytest.fixture
def stopped(scripted: Call, task: Path) -> Call:
    """The command line beside run `one`, which has settled 6 trials."""
    scripted("run", task, "--run", "one", "--trials", "6")
    return scripted


def test_a_resume_may_have_more_trials_and_the_run_keeps_a_record_of_it(stopped: Call) -> None:
    found = stopped("resume", "one", "--trials", "9")
    assert found.code == 0 and "note: changed from trial 6 on: --trials 6 -> 9" in found.err
    shown = json.loads(stopped("show", "one", "--json").out)
    assert (shown["settled"], shown["budget"]) == (9, 9)
    assert shown["changes"] == ["from trial 6 on, --trials 6 -> 9"]
    assert "trials: 9" in Path("runs/one/config.yaml").read_text()
    assert "from trial 6 on, --trials 6 -> 9" in stopped("show", "one").out


def test_a_changed_setting_holds_for_the_resumes_after_it(stopped: Call) -> None:
    stopped("resume", "one", "--trials", "8")
    assert "changed" not in stopped("resume", "one").err
    stopped("resume", "one", "--trials", "10")
    shown = json.loads(stopped("show", "one", "--json").out)
    assert (shown["settled"], len(shown["changes"])) == (10, 2)


def test_fewer_trials_than_are_proposed_are_refused(stopped: Call) -> None:
    found = stopped("resume", "one", "--trials", "5")
    assert (found.code, found.err.strip()) == (
        2,
        "evoengine: --trials 5: 6 trials are already proposed; expected at least 6",
    )


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--seed", "1"),
        ("--device", "cuda:1"),
        ("--kernel", "a.cu"),
        ("--check", "none"),
        ("--in-flight", "3"),
        ("--method", "free"),
        ("--tier", "fp16"),
        ("--lessons-from", "other"),
    ],
)
def test_what_a_resume_may_not_change_is_refused_with_the_reason(
    stopped: Call, option: str, value: str
) -> None:
    found = stopped("resume", "one", option, value)
    assert found.code == 2
    assert re.search(
        rf"a resume cannot change {option}: .*; leave it out, or start a new run with it", found.err
    )


def test_a_resume_may_have_another_generator(stopped: Call, task: Path) -> None:
    stopped("run", task, "--run", "other", "--trials", "8")
    found = stopped(
        "resume", "one", "--trials", "8", "--generator", "replay", "--replay-from", "other"
    )
    assert found.code == 0, found.err
    assert json.loads(stopped("show", "one", "--json").out)["generator"] == "replay"
    assert stopped("resume", "one", "--generator", "openai").code == 8, "there is no key"


def test_replay_needs_a_run_to_replay(stopped: Call) -> None:
    assert "--replay-from RUN" in stopped("resume", "one", "--generator", "replay").err


def test_a_run_begun_with_fewer_trials_than_kernels_keeps_its_numbers_when_it_has_more(
    scripted: Call, task: Path
) -> None:
    scripted("run", task, "--run", "one", "--trials", "1")
    scripted("resume", "one", "--trials", "4")
    trials = json.loads(scripted("show", "one", "--json").out)["trials"]
    assert [row["operator"] for row in trials] == ["seed", "tune", "tune", "tune"]
    with SqliteStore(Path("runs/one/run.db"), read_only=True) as store:
        info = current_info(store)
        assert info is not None
        assert [
            item.label for item in starting_kernels(store, RunConfig.model_validate(info.config))
        ] == ["scale_a"]


# ---------------------------------------------------------------- how long, how loud


def test_an_interrupt_while_the_device_comes_up_says_so(tmp_path: Path) -> None:
    task = write_task(tmp_path / "tasks")
    environ = dict(os.environ) | {"PYTHONPATH": str(ROOT), "SCRIPTED_START_S": "30"}
    command = [
        sys.executable,
        "-m",
        "tests.cli.scripted_main",
        "run",
        str(task),
        "--run",
        "one",
        "--time-limit",
        "1s",
    ]
    found = subprocess.run(
        command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60, check=False
    )
    assert found.returncode == 0
    assert (
        "ended: the time limit of 1s is reached before the first trial; nothing was stored"
        in found.stderr
    )
    assert "still starting" not in found.stderr


def test_a_time_limit_stops_a_run_that_can_be_resumed(
    scripted: Call, task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIPTED_DELAY_S", "0.2")
    from tests.cli.scripted_main import pretend

    pretend(monkeypatch.setattr)
    found = scripted("run", task, "--run", "one", "--trials", "400", "--time-limit", "1s")
    assert found.code == 0
    assert "the time limit of 1s is reached" in found.err and "resume with: " in found.err
    monkeypatch.setenv("SCRIPTED_DELAY_S", "0")
    pretend(monkeypatch.setattr)
    assert scripted("resume", "one", "--time-limit", "1m30s").code == 0


@pytest.mark.parametrize("text", ["0", "soon", "-5s", "2d", "1h 30m x", ""])
def test_a_time_limit_that_is_not_a_time_is_refused_with_what_is_expected(
    scripted: Call, task: Path, text: str
) -> None:
    found = scripted("run", task, "--time-limit", text)
    assert (
        found.code == 2
        and "expected a time such as 90s, 45m, 2h or 1h30m" in found.err
        and repr(text) in found.err
    )


def test_quiet_keeps_notes_and_the_result(scripted: Call, task: Path) -> None:
    found = scripted("run", task, "--run", "one", "--trials", "5", "--quiet")
    assert lines_of_trials(found.err) == [] and "note: no OPENAI_API_KEY" in found.err
    assert "speed-up" in found.out


# ---------------------------------------------------------------- a run of 0.1.0


@pytest.fixture
def run_of_0_1_0(tmp_path: Path) -> Path:
    """A run that 0.1.0 was killed in: 14 trials judged of 20, 12 replies paid; the server it asked
    is gone.
    """
    write_task(tmp_path / "tasks")
    folder = tmp_path / "runs" / "one"
    folder.mkdir(parents=True)
    shutil.copy(OF_0_1_0, folder / "run.db")
    with closing(sqlite3.connect(folder / "run.db")) as database:
        database.execute(
            "UPDATE run SET body = replace(body, '/tmp/fixture010', ?)", (str(tmp_path),)
        )
        database.commit()
    return folder


def test_a_run_of_0_1_0_is_shown_as_it_was(scripted: Call, run_of_0_1_0: Path) -> None:
    before = (run_of_0_1_0 / "run.db").read_bytes()
    shown = json.loads(scripted("show", "one", "--json").out)
    assert (shown["settled"], shown["usage"]["prompt_tokens"], shown["changes"]) == (14, 12096, [])
    assert Unanswered.model_validate(shown["unanswered"]) == Unanswered()
    assert (run_of_0_1_0 / "run.db").read_bytes() == before


def test_a_run_of_0_1_0_is_exported_and_not_resumed(
    scripted: Call, run_of_0_1_0: Path, tmp_path: Path
) -> None:
    """Its verdicts were made with another version of the timing; its kernels start a new run."""
    refused = scripted("resume", "one")
    assert refused.code == 2
    assert (
        "run one was judged by version 1 of the timing (evoengine 0.1.0), here is version"
        f" {TIMING_VERSION}: their verdicts cannot be compared, so the run can be shown and exported, but not resumed; start"
        " a new one with its best kernels: `evoengine export one`, then `evoengine run"
        f" {tmp_path}/tasks/scale.yaml --kernel " in refused.err
    )
    assert scripted("export", "one").code == 0
    refused = scripted("resume", "one")
    assert "`evoengine export one`" not in refused.err
    command = shlex.split(refused.err.split("`")[1])
    found = scripted(*command[1:], "--run", "two", "--trials", "6", "--generator", "tune")
    assert found.code == 0, found.err
    shown = json.loads(scripted("show", "two", "--json").out)
    assert (shown["settled"], shown["timing_version"]) == (6, TIMING_VERSION)
    assert json.loads(scripted("show", "one", "--json").out)["timing_version"] == 1
    assert scripted("resume", "two", "--trials", "8").code == 0


@pytest.fixture
def resumable_run_of_0_1_0(run_of_0_1_0: Path) -> Path:
    """The same run as if its verdicts were of today's timing: what was verified was promising. No
    race was run, so that the first trial that must run one is open.
    """
    SqliteStore(run_of_0_1_0 / "run.db").close()  # upgrades the schema
    with closing(sqlite3.connect(run_of_0_1_0 / "run.db")) as database:
        body = json.loads(database.execute("SELECT body FROM run").fetchone()[0])
        body["timing_version"] = TIMING_VERSION
        database.execute("UPDATE run SET body = ?", (json.dumps(body),))
        database.execute(
            "UPDATE verdicts SET promising = trial IN (SELECT trial FROM verdicts WHERE round = 1)"
            " WHERE round = 0"
        )
        database.commit()
    return run_of_0_1_0


async def _serve(
    script: list[Step], *arguments: str, cwd: Path, base_url: bool = True
) -> tuple[int, str, list[str]]:
    """Exit code and stderr of the command line beside a chat server, and the keys that the server
    was sent.
    """
    async with chat_server(*script) as server:
        with closing(sqlite3.connect(cwd / "runs" / "one" / "run.db")) as database:
            body = database.execute("SELECT body FROM run").fetchone()[0]
            address = json.loads(body)["config"]["model"]["base_url"]
            if not base_url:  # the stored address is the server's: only the run names it
                database.execute("UPDATE run SET body = replace(body, ?, ?)", (address, server.url))
                database.commit()
        environ = {
            name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")
        }
        environ |= {
            "OPENAI_API_KEY": KEY,
            "PYTHONPATH": str(ROOT),
            "EVOENGINE_CACHE_DIR": str(cwd / "cache"),
        }
        environ |= {"OPENAI_BASE_URL": server.url} if base_url else {}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.cli.scripted_main", *arguments, cwd=cwd, env=environ,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        _, err = await asyncio.wait_for(process.communicate(), 60)
        return process.returncode or 0, err.decode(), server.keys


def answers() -> Iterator[Step]:
    return iter([completion(f"```cuda\n{kernel(f'new_{number}')}```") for number in range(20)])


def test_a_run_with_rows_of_0_1_0_resumes_and_pays_for_nothing_twice(
    tmp_path: Path, resumable_run_of_0_1_0: Path, call: Call
) -> None:
    code, err, keys = asyncio.run(_serve(list(answers()), "resume", "one", cwd=tmp_path))
    assert code == 0, err
    assert "resumed after 2 trials" in err and lines_of_trials(err) == list(range(2, 20))
    assert keys == [KEY] * 6
    assert re.search(
        r"changed from trial 2 on: OPENAI_BASE_URL http://127.0.0.1:41249/v1 ->"
        r" http://127.0.0.1:\d+/v1",
        err,
    )
    shown = json.loads(call("show", "one", "--json").out)
    assert (shown["settled"], shown["usage"]["prompt_tokens"]) == (20, 12096 + 6 * 1000)
    assert KEY not in err
    assert not [
        path
        for path in resumable_run_of_0_1_0.rglob("*")
        if path.is_file() and KEY.encode() in path.read_bytes()
    ]


def test_an_address_that_only_the_run_names_is_used_without_the_key(
    tmp_path: Path, resumable_run_of_0_1_0: Path
) -> None:
    code, err, keys = asyncio.run(
        _serve(list(answers()), "resume", "one", cwd=tmp_path, base_url=False)
    )
    assert code == 0, err
    assert keys == ["no-key-needed"] * 6
    assert "OPENAI_BASE_URL names none here, so it is asked without a key" in err


# ---------------------------------------------------------------- requests under way when a run is
# stopped


def test_a_time_limit_ends_a_run_with_a_failing_endpoint_at_once_and_sends_nothing_more(
    tmp_path: Path, call: Call
) -> None:
    task = write_task(tmp_path / "tasks")

    async def limited_run() -> tuple[int, str, int]:
        async with chat_server(http(503, "overloaded", retry_after="45")) as server:
            environ = dict(os.environ) | {
                "OPENAI_API_KEY": KEY,
                "OPENAI_BASE_URL": server.url,
                "PYTHONPATH": str(ROOT),
            }
            command = [
                "run",
                str(task),
                "--run",
                "one",
                "--trials",
                "9",
                "--model",
                "gpt-4.1",
                "--time-limit",
                "3s",
            ]
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tests.cli.scripted_main",
                *command,
                cwd=tmp_path,
                env=environ,
                stderr=asyncio.subprocess.PIPE,
            )
            _, err = await asyncio.wait_for(process.communicate(), 30)
            return process.returncode or 0, err.decode(), len(server.requests)

    code, err, requests = asyncio.run(limited_run())
    assert code == 0 and "the time limit of 3s is reached" in err
    assert requests <= 7, "those in flight, each once"
    assert json.loads(call("show", "one", "--json").out)["unanswered"]["requests"] == 0


def test_a_reply_is_stored_even_if_no_message_can_be_written(tmp_path: Path, call: Call) -> None:
    """The reader of stderr goes away during an outage; the notice of its end cannot be printed."""
    task = write_task(tmp_path / "tasks")

    async def unwatched_run() -> int:
        async with chat_server(
            http(503, "x"), http(503, "x"), completion(f"```cuda\n{kernel('new')}```")
        ) as server:
            environ = dict(os.environ) | {
                "OPENAI_API_KEY": KEY,
                "OPENAI_BASE_URL": server.url,
                "PYTHONPATH": str(ROOT),
            }
            command = [
                "run",
                str(task),
                "--run",
                "one",
                "--trials",
                "3",
                "--in-flight",
                "1",
                "--model",
                "gpt-4.1",
            ]
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tests.cli.scripted_main",
                *command,
                cwd=tmp_path,
                env=environ,
                stderr=asyncio.subprocess.PIPE,
            )
            assert process.stderr is not None
            while b"all requests wait" not in await process.stderr.readline():
                pass
            process._transport.get_pipe_transport(2).close()  # type: ignore[attr-defined]
            await asyncio.wait_for(process.wait(), 60)
            return len(server.requests)

    assert asyncio.run(unwatched_run()) >= 3
    with SqliteStore(tmp_path / "runs" / "one" / "run.db", read_only=True) as store:
        assert store.get(ReplyRow, 2) is not None and store.spent().unanswered.requests == 0


def test_a_second_interrupt_discards_the_outstanding_replies(tmp_path: Path, call: Call) -> None:
    """The server never answers: only the second signal ends the run."""
    task = write_task(tmp_path / "tasks")

    async def interrupted_run() -> tuple[int, str]:
        sent = asyncio.Event()

        async def never(writer: asyncio.StreamWriter) -> None:
            sent.set()
            await asyncio.sleep(60)

        async with chat_server(never) as server:
            environ = dict(os.environ) | {
                "OPENAI_API_KEY": KEY,
                "OPENAI_BASE_URL": server.url,
                "PYTHONPATH": str(ROOT),
            }
            command = ["run", str(task), "--run", "one", "--trials", "9", "--model", "gpt-4.1"]
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tests.cli.scripted_main",
                *command,
                cwd=tmp_path,
                env=environ,
                stderr=asyncio.subprocess.PIPE,
            )
            assert process.stderr is not None
            seen = ""
            async with asyncio.timeout(60):
                await sent.wait()
                for words in (
                    "stopping after the outstanding replies",
                    "discarding the outstanding replies",
                ):
                    process.send_signal(signal.SIGINT)
                    while words not in seen:
                        seen += (await process.stderr.readline()).decode()
                seen += (await process.stderr.read()).decode()
                return await process.wait(), seen

    code, seen = asyncio.run(interrupted_run())
    assert code == 130 and "resume with: " in seen
    assert json.loads(call("show", "one", "--json").out)["unanswered"]["requests"] > 0


def test_a_request_under_way_when_the_run_is_killed_counts_as_possibly_paid(
    tmp_path: Path, call: Call
) -> None:
    """The server never answers; the process is killed with its requests under way."""
    task = write_task(tmp_path / "tasks")

    async def killed_run() -> int:
        three = asyncio.Event()

        async def never(writer: asyncio.StreamWriter) -> None:
            if len(server.requests) == 3:
                three.set()
            await asyncio.sleep(60)

        async with chat_server(never) as server:
            environ = dict(os.environ) | {
                "OPENAI_API_KEY": KEY,
                "OPENAI_BASE_URL": server.url,
                "PYTHONPATH": str(ROOT),
            }
            command = [
                "run",
                str(task),
                "--run",
                "one",
                "--trials",
                "9",
                "--in-flight",
                "3",
                "--tune-share",
                "0",
                "--model",
                "gpt-4.1",
                "--cost-cap",
                "5",
            ]
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tests.cli.scripted_main",
                *command,
                cwd=tmp_path,
                env=environ,
                stderr=asyncio.subprocess.PIPE,
            )
            async with asyncio.timeout(60):
                await three.wait()
            process.send_signal(signal.SIGKILL)
            await process.wait()
            return len(server.requests)

    sent = asyncio.run(killed_run())
    with SqliteStore(tmp_path / "runs" / "one" / "run.db", read_only=True) as store:
        lost = store.spent().unanswered
    assert lost.requests == sent == 3
    assert 0.1 < lost.most_usd < 1.0
    assert lost.most_tokens > 3 * 16384 and lost.uncounted == 0, "prompts, and replies at most"
    shown = json.loads(call("show", "one", "--json").out)
    assert Unanswered.model_validate(shown["unanswered"]) == lost
    assert re.search(
        r"3 requests .*may have been paid for", " ".join(call("show", "one").out.split())
    )
    code, err, _ = asyncio.run(_serve(list(answers()), "resume", "one", cwd=tmp_path))
    assert code == 0, err
    assert (
        "3 requests of earlier processes were never answered and may have been paid for, for up"
        " to $" in err
    )
