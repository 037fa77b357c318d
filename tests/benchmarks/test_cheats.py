"""The walk over the corpora counts right, and no candidate ends it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from benchmarks import cheats as walking
from benchmarks import corpora
from benchmarks.cheats import BROKEN, Subject, Walk, counts, main
from benchmarks.corpora import CHEATS, Cheat, Honest
from evoengine.evaluate.device_choice import DeviceChoice
from evoengine.records import Status, Verdict
from evoengine.statistics import exact

ACCEPTED = "known_sizes_layernorm.cu"
CORRECT = Verdict(status=Status.correct, reason="correct on every case", score=exact(1.0))


class ScriptedExecutor:
    """protocols.Executor: one verdict for all, or an exception."""

    def __init__(self, first: Verdict | Exception, verified: Verdict = CORRECT) -> None:
        self.first = first
        self.verified = verified
        self.closed = False

    async def start(self) -> None:
        pass

    async def evaluate(self, candidate, progress, verify=False, **_) -> Verdict:
        if isinstance(self.first, Exception):
            raise self.first
        return self.verified if verify else self.first

    async def close(self) -> None:
        self.closed = True


def row_of(executor: ScriptedExecutor, entry: Cheat | Honest):
    walk = Walk("layernorm", DeviceChoice(0), executor)
    return asyncio.run(walk.row(Subject("cheats", ACCEPTED, CHEATS / ACCEPTED, entry)))


def cheat(**changes) -> Cheat:
    entry = corpora.cheats()[ACCEPTED]
    return entry.model_copy(update={"twin": "seeds/layernorm.cu", **changes})


def test_an_exception_of_the_engine_is_a_row_and_ends_its_executor() -> None:
    executor = ScriptedExecutor(RuntimeError("surrogates not allowed"))
    row = row_of(executor, cheat())
    assert (row["status"], row["problem"]) == (BROKEN, "RuntimeError: surrogates not allowed")
    assert executor.closed


def test_a_correct_cheat_is_verified_before_it_counts_as_accepted() -> None:
    assert row_of(ScriptedExecutor(CORRECT), cheat())["problem"] == "correct"
    wrong = Verdict(status=Status.wrong_result, reason="one element")
    row = row_of(ScriptedExecutor(CORRECT, wrong), cheat())
    assert (row["status"], row["problem"]) == (Status.unstable, "")


def test_an_honest_kernel_counts_as_refused_unless_its_verdict_is_correct() -> None:
    honest = Honest(task="layernorm", style="a style")
    assert not row_of(ScriptedExecutor(CORRECT), honest)["problem"]
    row = row_of(ScriptedExecutor(Verdict(status=Status.cheat, reason="a guard")), honest)
    assert row["problem"] == "cheat: a guard"


def test_a_status_that_the_manifest_does_not_list_is_counted() -> None:
    row = row_of(ScriptedExecutor(Verdict(status=Status.compile_error, reason="line 1")), cheat())
    assert (row["problem"], row["unlisted"]) == ("", "yes")
    assert counts("cheats", [row]).startswith("cheats accepted: 0 of 1 (1 refused with a status")


@pytest.mark.timeout(300)
def test_the_walk_prints_rows_and_counts_and_writes_them(tmp_path: Path, capsys) -> None:
    file = tmp_path / "rows.json"
    names = ["known_sizes_layernorm", "name_kills_parent_layernorm"]
    options = ["--corpus", "cheats", "--device", "emulator", "--json", str(file)]
    assert main([*options, "--only", *names]) == 0
    output = capsys.readouterr().out
    assert output.endswith("cheats accepted: 0 of 2\n")
    rows = json.loads(file.read_text())["rows"]
    assert {row["status"] for row in rows} == {"wrong_result", "rejected"}


def test_the_walk_ends_with_status_1_where_a_cheat_is_accepted(monkeypatch, capsys) -> None:
    monkeypatch.setattr(walking, "make_executor", lambda *_: ScriptedExecutor(CORRECT))
    assert main(["--corpus", "cheats", "--device", "emulator", "--only", ACCEPTED]) == 1
    assert "cheats accepted: 1 of 1" in capsys.readouterr().out


def test_a_name_that_no_file_has_is_an_error() -> None:
    with pytest.raises(SystemExit, match=r"no file of the corpora has one of the names \['nil'\]"):
        main(["--corpus", "cheats", "--device", "emulator", "--only", "nil"])
