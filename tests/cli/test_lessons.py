"""Lessons on the command line: shown, carried to another run, and kept without the earlier one."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli import conftest
from tests.cli.conftest import Call
from tests.cli.test_prompt import SHAPE as ASKING
from tests.cli.test_prompt import sent

SHAPE = (*ASKING, "--tune-share", "0")
HEADING = "From earlier runs, of another task or device"


@pytest.fixture
def teaching(asking: Call, monkeypatch: pytest.MonkeyPatch) -> Call:
    """A model whose replies have a lesson each."""
    plain = conftest.kernel
    monkeypatch.setattr(
        conftest,
        "kernel",
        lambda name: f"{plain(name)}```\n\n## Thoughts\n\n- faster\nLesson: change {name}\n```",
    )
    return asking


def lessons_of(call: Call, run: str) -> list[dict[str, object]]:
    found = call("show", run, "--lessons", "--json")
    assert found.code == 0, found.err
    return list(json.loads(found.out))


def test_show_lists_the_lessons_of_a_run(teaching: Call, task: Path) -> None:
    assert "no lessons yet" in (
        teaching("run", task, "--run", "none", "--trials", "2", *SHAPE).out
        + teaching("show", "none", "--lessons").out
    )
    assert teaching("run", task, "--run", "one", "--trials", "20", *SHAPE).code == 0
    found = lessons_of(teaching, "one")
    assert [lesson["number"] for lesson in found] == list(range(1, 19))
    assert all(str(lesson["claim"]).startswith("change k") for lesson in found)
    refused = teaching("show", "one", "--lessons", "--trial", "3")
    assert refused.code == 2 and "leave --trial out" in refused.err
    table = teaching("show", "one", "--lessons").out
    assert all(str(lesson["claim"]).split()[1] in table for lesson in found)


def test_lessons_of_an_earlier_run_are_in_prompts_and_need_that_run_no_more(
    teaching: Call, task: Path
) -> None:
    assert teaching("run", task, "--run", "one", "--trials", "20", *SHAPE).code == 0
    new = ("run", task, "--lessons-from", "one", "--prompt-tokens", "9000", *SHAPE)
    assert teaching(*new, "--run", "two", "--trials", "4").code == 0
    carried = [lesson for lesson in lessons_of(teaching, "two") if lesson["run"] == "one"]
    assert carried and all(lesson["sign"] for lesson in carried)
    assert HEADING in sent("two", 2) and f"L1 (task {task.stem}, " in sent("two", 2)
    shutil.rmtree("runs/one")
    assert teaching("resume", "two", "--trials", "6").code == 0
    assert HEADING in sent("two", 5) and str(carried[0]["claim"]) in sent("two", 5)


def test_a_replay_has_the_numbers_of_the_run_it_replays(teaching: Call, task: Path) -> None:
    assert teaching("run", task, "--run", "one", "--trials", "20", *SHAPE).code == 0
    new = ("run", task, "--lessons-from", "one", *SHAPE, "--trials", "6", "--run", "two")
    assert teaching(*new).code == 0
    replay = ("run", task, "--replay-from", "two", "--trials", "6", "--in-flight", "2")
    assert teaching(*replay, "--run", "three").code == 0
    assert lessons_of(teaching, "three") == lessons_of(teaching, "two")


@pytest.mark.parametrize(
    ("part", "name"), [("config", "settings"), ("task", "task"), ("environment", "device")]
)
def test_a_run_whose_settings_this_version_does_not_know_is_refused_in_one_line(
    teaching: Call, task: Path, part: str, name: str
) -> None:
    assert teaching("run", task, "--run", "one", "--trials", "4", *SHAPE).code == 0
    assert (
        teaching("run", task, "--replay-from", "one", "--run", "replay", "--trials", "3").code == 0
    )
    with closing(sqlite3.connect("runs/one/run.db")) as database, database:
        [(info,)] = database.execute("SELECT body FROM run").fetchall()
        later = json.loads(info)
        later[part]["warp_drive"] = 9
        database.execute("UPDATE run SET body = ?", (json.dumps(later),))
    commands = [
        ("show", "one"),
        ("show", "one", "--json"),
        ("show", "one", "--trial", "2"),
        ("show", "one", "--lessons"),
        ("export", "one"),
        ("prompt", "--run", "one"),
        ("resume", "one", "--trials", "6"),
        ("run", task, "--run", "two", "--lessons-from", "one", *SHAPE),
        ("run", task, "--run", "two", "--replay-from", "one"),
        ("resume", "replay", "--trials", "5"),
    ]
    for arguments in commands:
        found = teaching(*arguments)
        assert found.code == 7, (arguments, found.err)
        assert (
            f"this version of evoengine cannot read the {name} of the run: warp_drive: Extra"
            in found.err
        ), arguments
        assert len(found.err.strip().splitlines()) == 1, found.err
    assert not Path("runs/two").exists()
    listed = teaching("runs")
    assert listed.code == 0 and "warp_drive" in listed.out + listed.err


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("effect", {"value": 0.0, "low": -1.0, "high": 1.0}, "expected an effect above 0, got 0.0"),
        ("effect", {"value": -2.0, "low": -3.0, "high": 1.0}, "expected an effect above 0, got -2"),
        ("number", 7, "expected lesson 1, got number 7"),
    ],
)
def test_a_carried_lesson_that_cannot_be_ranked_is_refused_in_one_line(
    teaching: Call, task: Path, key: str, value: object, why: str
) -> None:
    assert teaching("run", task, "--run", "one", "--trials", "20", *SHAPE).code == 0
    new = ("run", task, "--lessons-from", "one", *SHAPE, "--trials", "6", "--run", "two")
    assert teaching(*new).code == 0
    with closing(sqlite3.connect("runs/two/run.db")) as database, database:
        [(info,)] = database.execute("SELECT body FROM run").fetchall()
        damaged = json.loads(info)
        damaged["config"]["lessons"][0][key] = value
        database.execute("UPDATE run SET body = ?", (json.dumps(damaged),))
    for arguments in (
        ("show", "two", "--lessons"),
        ("prompt", "--run", "two"),
        ("resume", "two", "--trials", "8"),
        ("run", task, "--run", "three", "--lessons-from", "two", *SHAPE),
    ):
        found = teaching(*arguments)
        assert found.code == 7, found.err
        assert why in found.err


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--method", "free"), "prompts of the method free show no lessons"),
        (("--generator", "tune"), "the generator tune sends no prompts"),
        ((), "it has no lesson with a sure effect"),
    ],
)
def test_lessons_that_no_prompt_would_show_are_refused(
    asking: Call, task: Path, options: tuple[str, ...], why: str
) -> None:
    assert asking("run", task, "--run", "one", "--trials", "4", *SHAPE).code == 0
    found = asking("run", task, "--run", "two", "--lessons-from", "one", *options)
    assert found.code == 2 and why in found.err
    assert not Path("runs/two").exists()
