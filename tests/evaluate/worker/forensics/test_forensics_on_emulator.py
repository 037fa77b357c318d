"""Wrong kernels come back from the emulator with their diagnosis."""

from __future__ import annotations

from pathlib import Path

import pytest

from evoengine.records import Status, Verdict
from tests.evaluate.worker.emulated.judging import judged_on
from tests.evaluate.worker.forensics.mistakes import of_some
from tests.evaluate.worker.forensics.softmax_task import (
    HIDDEN_TAIL,
    PLANTED,
    UNWRITTEN_SCRATCH,
    kernel,
    write_task,
)

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Verdict]:
    sources = {name: planted[0] for name, planted in PLANTED.items()}
    sources |= {"hidden tail": HIDDEN_TAIL, "right": kernel(), "scratch": UNWRITTEN_SCRATCH}
    path: Path = write_task(tmp_path_factory.mktemp("weighted"))
    return dict(zip(sources, judged_on(path, *sources.values()), strict=True))


@of_some
@pytest.mark.parametrize("name", PLANTED)
def test_a_wrong_kernel_comes_back_with_its_diagnosis(found: dict[str, Verdict], name: str) -> None:
    verdict = found[name]
    assert verdict.status is Status.wrong_result
    assert verdict.forensics is not None
    first = verdict.forensics.diagnoses[0]
    assert first.kind.value == PLANTED[name][1], verdict.forensics
    assert PLANTED[name][2] in first.sentence
    assert verdict.forensics.problem == ""
    assert verdict.phases_s["forensics"] > 0


def test_of_a_hidden_case_only_a_fixed_phrase_leaves(found: dict[str, Verdict]) -> None:
    forensics = found["hidden tail"].forensics
    assert found["hidden tail"].reason == "is wrong in a hidden case"
    assert forensics is not None
    assert [item.sentence for item in forensics.diagnoses] == ["Elements are never written."]
    assert forensics.error_map is None
    assert not any(letter.isdigit() for letter in forensics.diagnoses[0].sentence)
    assert forensics.diagnoses[0].evidence == {}
    assert (forensics.case, forensics.output, forensics.problem) == ("a hidden case", "", "")


def test_scratch_that_is_read_and_never_written_is_named(found: dict[str, Verdict]) -> None:
    forensics = found["scratch"].forensics
    assert forensics is not None
    sentence = forensics.diagnoses[0].sentence
    assert "depend on what the buffers held before the launch" in sentence, forensics
    assert "at the last row (7) of every 8 along M" in sentence
    assert "namely scratch tops: elements of it are read that no launch has written" in sentence


def test_a_right_kernel_gets_none(found: dict[str, Verdict]) -> None:
    assert found["right"].status is Status.correct
    assert found["right"].forensics is None
    assert "forensics" not in found["right"].phases_s
