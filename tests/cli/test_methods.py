"""The method of a run: chosen, stored, shown, kept."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from evoengine.generate.method_registry import MODULES
from evoengine.paths import RunPaths
from evoengine.protocols import ProposalRow
from evoengine.store.run_folder import open_run
from tests.cli.conftest import Call
from tests.cli.test_prompt import SHAPE as ASKING
from tests.cli.test_prompt import sent

SHAPE = (*ASKING, "--tune-share", "0")


@pytest.mark.parametrize("method", MODULES)
def test_the_next_prompt_of_a_run_is_the_one_that_its_method_sends(
    asking: Call, task: Path, method: str
) -> None:
    for run, trials in (("short", 14), ("long", 15)):
        found = asking("run", task, "--run", run, "--trials", trials, "--method", method, *SHAPE)
        assert found.code == 0, found.err
    found = asking("prompt", "--run", "short")
    assert found.code == 0 and found.out == sent("long", 14)
    assert json.loads(asking("prompt", "--run", "short", "--json").out)["method"] == method
    assert f"{method}\n" in asking("show", "short").out.partition("method")[2]
    assert json.loads(asking("show", "short", "--json").out)["method"] == method


def test_prompts_of_best_of_n_show_nothing_that_the_run_found(asking: Call, task: Path) -> None:
    run = ("run", task, "--run", "one", "--trials", "14", "--method", "best_of_n", *SHAPE)
    assert asking(*run).code == 0
    with open_run(RunPaths(Path("runs/one")), read_only=True) as folder:
        rows = [folder.store.get(ProposalRow, trial) for trial in range(2, 14)]
    found = {row.proposal.label for row in rows if row}
    assert {row.proposal.operator for row in rows if row} == {"first"} and all(found)
    for trial in range(2, 14):
        prompt = sent("one", trial)
        assert "scale_a" in prompt or "scale_b" in prompt
        assert not [label for label in found if label in prompt]


def test_a_stored_run_without_a_method_is_full(asking: Call, task: Path) -> None:
    for run, trials in (("short", 14), ("long", 15)):
        assert asking("run", task, "--run", run, "--trials", trials, *SHAPE).code == 0
    with closing(sqlite3.connect("runs/short/run.db")) as database:
        (text,) = database.execute("SELECT body FROM run").fetchone()
        info = json.loads(text)
        del info["config"]["method"], info["config"]["tiers"]
        database.execute("UPDATE run SET body = ?", (json.dumps(info),))
        database.commit()
    assert asking("prompt", "--run", "short").out == sent("long", 14)
    assert json.loads(asking("show", "short", "--json").out)["method"] == "full"


def test_a_replay_has_the_method_of_the_run_that_it_replays(asking: Call, task: Path) -> None:
    one = ("run", task, "--run", "one", "--trials", "8", "--method", "free", *SHAPE)
    assert asking(*one).code == 0
    replayed = ("run", task, "--trials", "8", "--replay-from", "one")
    assert asking(*replayed, "--run", "two").code == 0
    assert json.loads(asking("show", "two", "--json").out)["method"] == "free"
    refused = asking(*replayed, "--run", "three", "--method", "full")
    assert refused.code == 2
    assert "--method full: the replayed run's prompts followed the method free" in refused.err


def test_a_prompt_of_a_task_follows_the_method(call: Call, task: Path) -> None:
    facts = {
        method: json.loads(call("prompt", task, "--method", method, "--json").out)
        for method in MODULES
    }
    assert {method: fact["operator"] for method, fact in facts.items()} == {
        "free": "mutate",
        "insight": "mutate",
        "full": "first",
        "best_of_n": "first",
        "islands": "first",
    }
    refused = call("prompt", task, "--method", "free", "--operator", "crossover")
    assert refused.code == 2 and "the method free has no crossover" in refused.err


def test_an_unknown_method_is_refused_with_the_known_ones(call: Call, task: Path) -> None:
    found = call("run", task, "--method", "island")
    assert found.code == 2 and "no method 'island'; did you mean 'islands'" in found.err


def test_only_the_tiers_that_are_named_are_asked_for(asking: Call, task: Path) -> None:
    run = ("run", task, "--run", "one", "--trials", "12", "--tier", "fp16", *SHAPE)
    assert asking(*run).code == 0
    assert all("precision: fp16`" in sent("one", trial) for trial in range(2, 12))


def test_show_has_the_shares_of_the_tiers_that_are_asked_for(asking: Call, task: Path) -> None:
    def shares(run: str, *tiers: str) -> dict[str, float]:
        given = ("run", task, "--run", run, "--trials", "3", *SHAPE)
        assert asking(*given, *(part for tier in tiers for part in ("--tier", tier))).code == 0
        found: dict[str, float] = json.loads(asking("show", run, "--json").out)["tier_shares"]
        return found

    assert shares("given", "fp16", "fp32=0.25") == {"fp16": 0.75, "fp32": 0.25}
    assert "tiers fp16 75 %, fp32 25 %" in " ".join(asking("show", "given").out.split())
    assert shares("one", "fp16") == {"fp16": 1}
    assert shares("default") == {"fp16": 0.5, "fp32": 0.5}  # both have a starting kernel
    assert asking("run", task, "--run", "tune", "--generator", "tune", "--trials", "3").code == 0
    assert json.loads(asking("show", "tune", "--json").out)["tier_shares"] == {}
