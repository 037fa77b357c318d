"""The walk over the planted bugs counts right, and no kernel ends it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import bugs as walking
from benchmarks.bugs import ENGINE_BROKE, BugWalk, Judgement, main, sentences_of, totals
from benchmarks.planted_bugs import BUGS, HonestNumbers, PlantedBug
from evoengine.records import Status, Verdict

BUG = PlantedBug(
    task="layernorm",
    file="seeds/layernorm.cu",
    replace=("+ b.value[j];", "+ 0.0f;"),
    cause="the bias is missing",
    says=(r"\bbias\b.*missing",),
)
HONEST = HonestNumbers(task="layernorm", file="seeds/layernorm.cu", style="plain")
NAMES_IT = "The Bias is missing"


def judgement(
    entry: PlantedBug | HonestNumbers, status: Status, *sentences: str, reason: str = "a reason"
) -> Judgement:
    expected = Status.correct if entry is HONEST else Status.wrong_result
    return Judgement("name", entry, status.value, reason, sentences, expected)


@pytest.mark.parametrize(
    ("sentences", "is_named"),
    [
        ((), False),
        ((NAMES_IT,), True),
        (("the scale is wrong", NAMES_IT), True),
        (("the scale is wrong", "the sign is wrong", NAMES_IT), False),
    ],
)
def test_a_cause_is_named_by_one_of_the_first_two_findings(
    sentences: tuple[str, ...], is_named: bool
) -> None:
    found = judgement(BUG, Status.wrong_result, *sentences)
    assert found.is_named is is_named
    assert not found.problem


def test_a_status_that_the_manifest_does_not_list_is_a_problem() -> None:
    found = judgement(BUG, Status.correct)
    assert found.problem == "expected wrong_result, got correct: a reason"


def test_an_honest_kernel_with_a_finding_is_a_problem() -> None:
    assert judgement(HONEST, Status.correct, NAMES_IT).problem == f"a finding: {NAMES_IT}"
    assert not judgement(HONEST, Status.correct).problem


def test_a_bug_on_a_gpu_is_a_problem_only_where_it_is_correct() -> None:
    assert not Judgement("name", BUG, "crash", "a reason", (), None).problem
    assert Judgement("name", BUG, "correct", "a reason", (), None).problem


def test_totals_count_causes_findings_and_problems() -> None:
    found = [
        judgement(BUG, Status.wrong_result, NAMES_IT),
        judgement(BUG, Status.wrong_result, "the sign is wrong", reason="the bias is missing"),
        judgement(BUG, Status.correct),
        judgement(HONEST, Status.correct, NAMES_IT),
    ]
    assert totals(found) == (
        "named in the first 2 findings: 1 of 3 (or in the verdict's reason: 2)\n"
        "repaired by one change: 0 of 3, 0 of them in the planted lines\n"
        "honest with findings: 1 of 1\n"
        "not as the manifest says: 2 of 4"
    )


def test_totals_count_repairs_and_those_in_the_planted_lines() -> None:
    here = Judgement("a", BUG, "wrong_result", "", (), None, repair_line=3, is_at_place=True)
    there = Judgement("b", BUG, "wrong_result", "", (), None, repair_line=9)
    assert "repaired by one change: 2 of 2, 1 of them in the planted lines" in totals([here, there])
    assert here.row()["repaired"] == "at its place"
    assert there.row()["repaired"] == "elsewhere, line 9"


def test_planted_lines_are_those_of_the_replacement() -> None:
    lines = (BUGS.parent.parent / BUG.file).read_text().splitlines()
    (line,) = BUG.planted_lines()
    assert "+ b.value[j];" in lines[line - 1]


def test_sentences_are_read_from_findings_in_their_order() -> None:
    found = (SimpleNamespace(sentence="first"), SimpleNamespace(sentence="second"))
    forensics = SimpleNamespace(diagnoses=found)
    assert sentences_of(SimpleNamespace(forensics=forensics)) == ("first", "second")
    assert sentences_of(SimpleNamespace(forensics=None)) == ()


def test_an_exception_of_the_engine_is_a_problem_and_ends_its_executor(monkeypatch) -> None:
    class BreakingExecutor:
        closed = False

        async def start(self) -> None:
            pass

        async def evaluate(self, candidate, progress, verify=False) -> Verdict:
            raise RuntimeError("surrogates not allowed")

        async def close(self) -> None:
            self.closed = True

    executor = BreakingExecutor()
    monkeypatch.setattr(walking, "make_executor", lambda *_, **__: executor)
    found = asyncio.run(BugWalk("layernorm", "emulated", BUGS).judge("name", BUG))
    assert found.status == ENGINE_BROKE
    assert "surrogates not allowed" in found.problem
    assert executor.closed


@pytest.mark.timeout(300)
def test_the_walk_prints_a_table_and_writes_it(tmp_path: Path, capsys) -> None:
    file = tmp_path / "rows.json"
    names = ["layernorm_sign", "layernorm_fast_root"]
    assert main(["--device", "emulated", "--json", str(file), "--only", *names]) == 0
    output = capsys.readouterr().out
    assert "| layernorm_sign " in output
    assert output.endswith("not as the manifest says: 0 of 2\n")
    rows = {row["name"]: row for row in json.loads(file.read_text())["rows"]}
    assert rows["layernorm_sign"]["status"] == Status.wrong_result
    assert rows["layernorm_fast_root"]["status"] == Status.correct


def test_a_corpus_in_another_folder_is_walked(tmp_path: Path, capsys) -> None:
    (tmp_path / "own.cu").write_text((BUGS.parent.parent / "seeds/layernorm.cu").read_text())
    (tmp_path / "manifest.yaml").write_text(
        "bugs: {none: {task: layernorm, file: own.cu, cause: it has none, says: [none]}}\nhonest: {}"
    )
    assert main(["--corpus", str(tmp_path)]) == 1
    assert "expected wrong_result, got correct" in capsys.readouterr().err


def test_a_name_without_an_entry_is_an_error() -> None:
    with pytest.raises(SystemExit, match=r"no entry of the names \['nil'\]"):
        main(["--only", "nil"])
