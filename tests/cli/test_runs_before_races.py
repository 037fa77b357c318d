"""A measured run of timing version 2, in which scores decided over the places, not races."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from evoengine.paths import RunPaths
from evoengine.protocols import RaceRow
from evoengine.records import TIMING_VERSION
from evoengine.search.run_reader import RunReader
from tests.cli.conftest import Call

# Of schema 2, written by the version before races, whose `show` told what stands here.
SCORED = Path(__file__).parents[1] / "store" / "assets" / "v2" / "scored_run.db"
ELITES = [
    ("fp16", 1, 8, 1.3269482117390936),
    ("fp16", 2, 3, 1.3028776822665535),
    ("fp16", 3, 7, 1.1752172817187116),
    ("fp32", 1, 2, 1.6151085007354833),
    ("fp32", 2, 10, 1.0215656669097954),
    ("fp32", 3, 6, 0.8280144680335813),
]
COUNTS = {"correct": 13, "wrong_result": 1, "crash": 2}


@pytest.fixture
def scored_run(tmp_path: Path) -> Path:
    folder = tmp_path / "runs" / "one"
    folder.mkdir(parents=True)
    shutil.copy(SCORED, folder / "run.db")
    return folder


def test_its_elites_are_those_of_the_rule_that_it_was_searched_by(
    scripted: Call, scored_run: Path
) -> None:
    shown = json.loads(scripted("show", "one", "--json").out)
    assert (shown["timing_version"], shown["settled"], shown["counts"]) == (2, 16, COUNTS)
    assert [
        (row["tier"], row["place"], row["trial"], row["speedup"]["value"])
        for row in shown["elites"]
    ] == ELITES
    with RunReader(RunPaths(scored_run)) as reader:
        store = reader.folder.store
        assert all(store.get(RaceRow, trial) is None for trial, _ in store.trials())
        assert {summary.promising for _, summary in store.trials()} == {None}


def test_its_database_is_only_read(scripted: Call, scored_run: Path) -> None:
    before = (scored_run / "run.db").read_bytes()
    assert scripted("show", "one").code == scripted("export", "one").code == 0
    assert (scored_run / "run.db").read_bytes() == before == SCORED.read_bytes()


def test_its_elites_are_exported(scripted: Call, scored_run: Path) -> None:
    assert scripted("export", "one").code == 0
    folders = sorted(path.parent for path in scored_run.glob("elites/*/*/kernel.cu"))
    assert [(path.parent.name, int(path.name)) for path in folders] == [
        (tier, place) for tier, place, _, _ in ELITES
    ]


def test_its_next_prompt_is_of_all_its_trials(scripted: Call, scored_run: Path, task: Path) -> None:
    with closing(sqlite3.connect(scored_run / "run.db")) as database:
        moved = ("/tmp/fixture020", str(task.parent))  # where it was searched
        database.execute("UPDATE run SET body = replace(body, ?, ?)", moved)
        database.commit()
    found = scripted("prompt", "--run", "one", "--json")
    assert found.code == 0, found.err
    assert json.loads(found.out)["trial"] == 16
    assert "trials are settled" not in found.err, "none of them is open"


def test_it_is_not_resumed(scripted: Call, scored_run: Path) -> None:
    refused = scripted("resume", "one")
    assert refused.code == 2
    assert (
        f"by version 2 of the timing (evoengine 0.2.0.dev0), here is version {TIMING_VERSION}"
        in (refused.err)
    )
