"""Runs led by a model of this machine that tune between its replies, and replays of them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from evoengine.config import RunConfig
from evoengine.paths import RunPaths
from evoengine.protocols import ReplyRow
from evoengine.store.run_folder import open_run
from tests.cli.conftest import Call

LED = ("--generator", "openai", "--model", "scripted", "--price", "1/1", "--trials", "20")


def shown(call: Call, run: str) -> Any:
    found = call("show", run, "--json")
    assert found.code == 0, found.err
    return json.loads(found.out)


def decided(rows: Any) -> list[list[object]]:
    """What was proposed in each trial, and what came of it."""
    names = ("trial", "operator", "parents", "name", "tunables", "status", "place")
    return [[trial[name] for name in names] for trial in rows["trials"]]


def asked(run: str, trials: int = 20) -> list[int]:
    """The trials with a reply."""
    with open_run(RunPaths(Path("runs") / run), read_only=True) as folder:
        return [trial for trial in range(trials) if folder.store.get(ReplyRow, trial)]


def test_half_of_the_trials_after_the_starting_kernels_tune_and_are_counted_apart(
    asking: Call, task: Path
) -> None:
    assert asking("run", task, "--run", "one", *LED).code == 0
    rows = shown(asking, "one")
    tuned = [trial["trial"] for trial in rows["trials"] if trial["operator"] == "tune"]
    assert (rows["tuned"], rows["tune_share"]) == (9, 0.5)
    assert tuned == list(range(3, 20, 2)) and asked("one") == list(range(2, 20, 2))
    assert "tuned 9 of 20 trials" in " ".join(asking("show", "one").out.split())


def test_without_a_share_no_trial_tunes_and_nothing_is_said_of_it(asking: Call, task: Path) -> None:
    assert asking("run", task, "--run", "one", "--tune-share", "0", *LED).code == 0
    assert asked("one") == list(range(2, 20))
    assert shown(asking, "one")["tuned"] == 0
    assert "tuned" not in asking("show", "one").out
    assert "this run measures your first value of each" in asking("prompt", "--run", "one").out


@pytest.mark.parametrize("share", ["-0.1", "1.5", "nan", "half"])
def test_a_share_outside_0_to_1_is_refused(asking: Call, task: Path, share: str) -> None:
    found = asking("run", task, "--tune-share", share)
    assert found.code == 2 and "tune-share" in found.err and share in found.err


def test_the_tuner_alone_says_that_a_share_is_of_no_use(asking: Call, task: Path) -> None:
    found = asking("run", task, "--generator", "tune", "--tune-share", "0.2", "--trials", "4")
    assert "--tune-share has no effect: the built-in tuner tunes in every trial" in found.err


def test_a_stored_run_without_a_share_goes_on_without_tuning_unless_one_is_given(
    asking: Call, task: Path
) -> None:
    assert asking("run", task, "--run", "old", "--tune-share", "0", *LED).code == 0
    config = RunConfig(task="t", trials=1, generator="openai").model_dump(exclude={"tune_share"})
    assert RunConfig.model_validate(config).tune_share == 0
    with closing(sqlite3.connect("runs/old/run.db")) as connection, connection:
        [(text,)] = connection.execute("SELECT body FROM run")
        info = json.loads(text)
        del info["config"]["tune_share"]
        connection.execute("UPDATE run SET body = ?", (json.dumps(info),))
    assert asking("resume", "old", "--trials", "24").code == 0
    assert asked("old", 24) == list(range(2, 24))
    found = asking("resume", "old", "--trials", "32", "--tune-share", "0.5")
    assert found.code == 0 and "--tune-share 0 -> 0.5" in found.err
    assert asked("old", 32) == [*range(2, 24), 24, 26, 28, 30]


def test_a_replay_of_a_run_with_tuning_is_that_run_again(asking: Call, task: Path) -> None:
    assert asking("run", task, "--run", "one", *LED).code == 0
    assert asking("run", task, "--run", "two", "--replay-from", "one", "--trials", "20").code == 0
    one, two = shown(asking, "one"), shown(asking, "two")
    assert decided(one) == decided(two) and two["tuned"] == 9
    assert two["usage"]["cost_usd"] == 0


def test_a_replay_takes_the_share_of_its_run_and_is_as_before_without_one(
    asking: Call, task: Path
) -> None:
    assert asking("run", task, "--run", "one", "--tune-share", "0", *LED).code == 0
    assert asking("run", task, "--run", "two", "--replay-from", "one", "--trials", "20").code == 0
    assert decided(shown(asking, "one")) == decided(shown(asking, "two"))
    tuner = ("--generator", "tune", "--trials", "10")
    assert asking("run", task, "--run", "three", *tuner).code == 0
    assert (
        asking("run", task, "--run", "four", "--replay-from", "three", "--trials", "10").code == 0
    )
    assert decided(shown(asking, "three")) == decided(shown(asking, "four"))


def test_a_replay_that_tunes_more_uses_every_reply_in_its_order(asking: Call, task: Path) -> None:
    few = (*LED[:-1], "8")
    assert asking("run", task, "--run", "one", "--tune-share", "0", *few).code == 0
    more = ("--tune-share", "0.5", "--trials", "30")
    found = asking("run", task, "--run", "two", "--replay-from", "one", *more)
    assert "all 6 trials of the recorded run that asked have been replayed" in found.err
    one, two = shown(asking, "one")["trials"], shown(asking, "two")["trials"]
    replayed = [trial for trial in two[2:] if trial["operator"] != "tune"]
    assert [trial["name"] for trial in replayed] == [trial["name"] for trial in one[2:]]
    assert sum(trial["operator"] == "tune" for trial in two) == 6
    assert [trial["parents"] for trial in replayed[1:]] == [[]] * 5, "they are of another run"


def test_the_control_method_tunes_only_where_a_share_is_given(asking: Call, task: Path) -> None:
    control = (*LED, "--method", "best_of_n")
    assert asking("run", task, "--run", "one", *control).code == 0
    assert (shown(asking, "one")["tuned"], asked("one")) == (0, list(range(2, 20)))
    assert asking("run", task, "--run", "two", *control, "--tune-share", "0.5").code == 0
    assert shown(asking, "two")["tuned"] == 9
    task_prompt = asking("prompt", task, "--method", "best_of_n").out
    assert "this run measures your first value of each" in task_prompt
    for run in ("one", "two"):
        again = f"again_{run}"
        assert asking("run", task, "--run", again, "--replay-from", run, *LED[-2:]).code == 0
        assert shown(asking, again)["tuned"] == shown(asking, run)["tuned"]


def test_the_tuner_alone_says_which_options_are_for_a_model(
    asking: Call, task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    run = ("run", task, "--trials", "2")
    found = asking(*run, "--run", "one", "--method", "free", "--tier", "fp16", "--model", "mine")
    assert "--method, --tier, --model have no effect: the built-in tuner asks no model" in found.err
    assert "nor OPENAI_BASE_URL: --generator openai asks that without a key" in found.err
    monkeypatch.delenv("OPENAI_BASE_URL")
    found = asking(*run, "--run", "two")
    assert "no effect" not in found.err and "OPENAI_BASE_URL" not in found.err
    assert "no OPENAI_API_KEY: the built-in tuner searches" in found.err


def test_an_endpoint_without_a_key_is_asked_where_the_generator_is_named(
    asking: Call, task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    assert asking("run", task, "--run", "one", *LED).code == 0
    assert asked("one") == list(range(2, 20, 2))
