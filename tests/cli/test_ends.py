"""The ends of a run on the command line: said, stored, shown, and gone on from."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from evoengine.store.sqlite_store import SqliteStore
from tests.cli.conftest import Call
from tests.generate.chat_server import chat_server, completion
from tests.scale_task import kernel, write_task

ROOT = Path(__file__).parents[2]


def shown(call: Call, run: str = "one") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(call("show", run, "--json").out)
    return found


def state(call: Call) -> str:
    return str(json.loads(call("runs", "--json").out)[0]["state"])


def words(text: str) -> str:
    return " ".join(text.split())


def test_a_plateau_ends_a_run_is_stored_and_shown_and_ends_a_resume_at_once(
    scripted: Call, task: Path
) -> None:
    options = ("--run", "one", "--trials", "400", "--in-flight", "2", "--plateau", "3")
    found = scripted("run", task, *options)
    rows = shown(scripted)
    assert found.code == 0 and rows["ended_by"] == "plateau" and rows["settled"] < 20
    assert re.match(r"no gain in (the last 4 trials|3 trials up to trial)", rows["ended"])
    assert f": {rows['ended']}; {rows['settled']} of 400 trials are settled" in words(found.err)
    assert f"of 400 settled; {rows['ended']}" in words(scripted("show", "one").out)
    assert state(scripted) == "complete"
    assert not any(elite["awaits_final"] for elite in rows["elites"])
    again = scripted("resume", "one")
    assert again.code == 0 and rows["ended"] in again.err
    assert shown(scripted) == rows


def test_a_larger_plateau_goes_on_and_is_recorded(scripted: Call, task: Path) -> None:
    options = ("--run", "one", "--trials", "16", "--in-flight", "2")
    scripted("run", task, *options, "--plateau", "3")
    before = shown(scripted)["settled"]
    found = scripted("resume", "one", "--plateau", "30")
    rows = shown(scripted)
    assert before < rows["settled"] == 16 and rows["ended_by"] == "trials"
    assert rows["changes"] == [f"from trial {before} on, --plateau 3 -> 30"]
    assert found.code == 0 and "the budget of trials is spent" in found.err
    scripted("run", task, "--run", "two", *options[2:])
    assert shown(scripted, "two")["trials"] == rows["trials"]


def test_other_changes_do_not_move_the_trial_at_which_a_plateau_ends_a_run(
    scripted: Call, task: Path
) -> None:
    scripted("run", task, "--run", "one", "--trials", "40", "--in-flight", "2", "--plateau", "3")
    before = shown(scripted)
    assert scripted("resume", "one", "--trials", "60").code == 0
    after = shown(scripted)
    assert (after["settled"], after["ended"]) == (before["settled"], before["ended"])


def test_a_run_that_is_killed_ends_by_its_plateau_as_one_that_is_not(
    scripted: Call, task: Path, tmp_path: Path
) -> None:
    options = ["--trials", "400", "--in-flight", "4", "--plateau", "6"]
    scripted("run", task, "--run", "whole", *options)
    command = [sys.executable, "-m", "tests.cli.scripted_main"]
    environ = dict(os.environ) | {"PYTHONPATH": str(ROOT), "SCRIPTED_DELAY_S": "0.1"}
    process = subprocess.Popen(
        [*command, "run", str(task), "--run", "cut", *options],
        cwd=tmp_path,
        env=environ,
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    while _settled(tmp_path / "runs" / "cut" / "run.db") < 4 and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert state(scripted) in ("stopped", "complete")
    assert shown(scripted, "cut")["ended_by"] is None
    assert scripted("resume", "cut").code == 0
    whole, cut = shown(scripted, "whole"), shown(scripted, "cut")
    for key in ("ended", "ended_by", "settled", "trials", "elites"):
        assert cut[key] == whole[key], key


def _settled(path: Path) -> int:
    """The number of stored first verdicts; 0 while there is no database."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            return int(
                database.execute("SELECT count(*) FROM verdicts WHERE round = 0").fetchone()[0]
            )
    except sqlite3.Error:
        return 0


def test_a_run_with_nothing_left_to_try_is_complete(scripted: Call, task: Path) -> None:
    found = scripted("run", task, "--run", "one", "--trials", "400")
    rows = shown(scripted)
    assert found.code == 0 and rows["ended_by"] == "exhausted" and rows["settled"] < 400
    assert rows["ended"] in found.err and state(scripted) == "complete"
    assert not any(elite["awaits_final"] for elite in rows["elites"])
    with closing(sqlite3.connect("runs/one/run.db")) as database:  # as if it had been killed
        for table in ("verdict_bodies", "verdicts"):
            database.execute(f"DELETE FROM {table} WHERE trial > 9 OR round = 2")  # noqa: S608 - our own names
        database.execute("DELETE FROM races WHERE trial > 9")
        database.execute("DELETE FROM ends")
        database.commit()
    assert (shown(scripted)["ended_by"], state(scripted)) == (None, "stopped")
    assert scripted("resume", "one").code == 0
    assert shown(scripted) == rows and state(scripted) == "complete"


def test_an_end_is_not_shown_once_the_run_has_gone_on(scripted: Call, task: Path) -> None:
    scripted("run", task, "--run", "one", "--trials", "6")
    assert shown(scripted)["ended_by"] == "trials"
    scripted("resume", "one", "--trials", "9")
    with closing(sqlite3.connect("runs/one/run.db")) as database:  # as if it had been killed
        database.execute("DELETE FROM ends WHERE number = 1")
        database.execute("DELETE FROM verdict_bodies WHERE trial = 8")
        database.execute("DELETE FROM verdicts WHERE trial = 8")
        database.commit()
    rows = shown(scripted)
    assert (rows["settled"], rows["ended"], rows["ended_by"]) == (8, "", None)
    assert state(scripted) == "stopped"


def test_a_time_limit_is_stored_as_a_stop_and_the_run_is_not_complete(
    scripted: Call, task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIPTED_DELAY_S", "0.2")
    from tests.cli.scripted_main import pretend

    pretend(monkeypatch.setattr)
    scripted("run", task, "--run", "one", "--trials", "400", "--time-limit", "2s")
    rows = shown(scripted)
    assert (rows["ended"], rows["ended_by"]) == ("the time limit of 2s is reached", "time")
    assert state(scripted) == "stopped"


# ---------------------------------------------------------------- the roofline


def test_a_task_without_work_has_no_roofline(scripted: Call, task: Path) -> None:
    found = scripted("run", task, "--run", "one", "--stop-at-roofline", "0.5")
    assert found.code == 2 and not Path("runs/one").exists()
    assert "--stop-at-roofline 0.5: task scale does not declare the work of a call" in found.err
    scripted("run", task, "--run", "one", "--trials", "4")
    found = scripted("resume", "one", "--stop-at-roofline", "0.5")
    assert found.code == 2 and "task scale does not declare the work" in found.err
    assert shown(scripted)["changes"] == []


@pytest.mark.parametrize("share", ["0", "1.5", "-1", "nan"])
def test_a_share_that_is_none_is_refused(scripted: Call, task: Path, share: str) -> None:
    found = scripted("run", task, "--stop-at-roofline", share)
    assert found.code == 2 and "expected a share above 0 and up to 1, got" in words(found.err)


@pytest.mark.parametrize("device", ["scripted", "emulated"])
def test_a_share_of_the_roofline_ends_a_run_and_a_larger_one_goes_on(
    request: pytest.FixtureRequest, task: Path, device: str
) -> None:
    call: Call = request.getfixturevalue(device)
    task.write_text(f"{task.read_text()}work: {{flops: N, unit: fp32}}\n")
    options = ("--run", "one", "--trials", "16", "--stop-at-roofline")
    found = call("run", task, *options, "0.2")
    rows = shown(call)
    assert found.code == 0 and rows["ended_by"] == "roofline" and rows["settled"] < 16
    assert re.search(
        r"trial \d+ of fp\d+ takes .* us, and the device allows no less than 4 us: 0\.\d\d of the"
        r" roofline \(--stop-at-roofline 0\.2\)",
        rows["ended"],
    )
    assert state(call) == "complete"
    assert call("resume", "one", "--stop-at-roofline", "1").code == 0
    assert (shown(call)["ended_by"], shown(call)["settled"]) == ("trials", 16)


# ---------------------------------------------------------------- the cap on tokens


def test_a_cap_on_tokens_ends_a_run_and_a_larger_one_goes_on(tmp_path: Path, call: Call) -> None:
    task = write_task(tmp_path / "tasks")
    code, err, sent = _served(tmp_path, "run", str(task), *_ASKING, "--token-cap", "60000")
    assert code == 0 and 1 <= sent < 16, err
    rows = shown(call)
    assert rows["ended_by"] == "tokens" and rows["settled"] == 2 + sent
    assert rows["ended"].startswith(f"cap of 60,000 tokens: {10_000 * sent:,} tokens spent, the")
    assert re.search(
        r" \(a prompt of [\d,]+ bytes, a reply of up to 1,000 tokens\)$", rows["ended"]
    )
    assert state(call) == "complete"
    assert re.search(r"to go on without a model: \S.* resume one .*--generator tune\n", err)
    before = sent
    code, err, sent = _served(tmp_path, "resume", "one", "--token-cap", "80000")
    assert code == 0 and 1 <= sent <= 2, err
    rows = shown(call)
    assert rows["ended"].startswith(
        f"cap of 80,000 tokens: {10_000 * (before + sent):,} tokens spent"
    )
    assert rows["changes"][0].endswith("--token-cap 60000 -> 80000")
    with SqliteStore(tmp_path / "runs" / "one" / "run.db", read_only=True) as store:
        assert store.spent().unanswered.requests == 0


def test_a_run_that_a_cap_ended_goes_on_without_a_model(tmp_path: Path, call: Call) -> None:
    task = write_task(tmp_path / "tasks")
    _, err, sent = _served(tmp_path, "run", str(task), *_ASKING, "--token-cap", "60000")
    before = shown(call)
    assert before["ended_by"] == "tokens", err
    code, err, sent = _served(tmp_path, "resume", "one", "--generator", "tune")
    after = shown(call)
    assert (code, sent, after["ended_by"], after["settled"]) == (0, 0, "trials", 16), err
    assert after["usage"] == before["usage"]
    assert {trial["operator"] for trial in after["trials"][before["settled"] :]} >= {"tune"}
    assert "to go on without a model" not in err


_ASKING = (
    *("--run", "one", "--trials", "16", "--in-flight", "3", "--model", "home-made"),
    *("--tune-share", "0"),  # every trial asks
)


def _served(folder: Path, *arguments: str) -> tuple[int, str, int]:
    """Exit code and messages of a command beside a model, and the number of requests it had."""
    usage = {"prompt_tokens": 9000, "completion_tokens": 1000, "total_tokens": 10000}

    async def run() -> tuple[int, str, int]:
        replies = [completion(f"```\n{kernel(f'k{n}')}```", usage=usage) for n in range(20)]
        async with chat_server(*replies) as server:
            environ = dict(os.environ) | {
                "OPENAI_API_KEY": "sk-none",
                "OPENAI_BASE_URL": server.url,
                "PYTHONPATH": str(ROOT),
            }
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tests.cli.scripted_main",
                *arguments,
                "--max-tokens",
                "1000",
                cwd=folder,
                env=environ,
                stderr=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
            )
            _, err = await asyncio.wait_for(process.communicate(), 120)
            return process.returncode or 0, err.decode(), len(server.requests)

    return asyncio.run(run())
