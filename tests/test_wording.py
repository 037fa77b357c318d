"""Every value of a task file and of a header, replaced by wrong ones: the complaints are in the
words of this house.
"""

from __future__ import annotations

import re

import pytest

from evoengine.candidate import kernel_file
from evoengine.errors import CandidateError
from evoengine.task import yaml_source
from evoengine.task.schema import _validated
from evoengine.task.yaml_source import YamlError
from tests.scale_task import TASK, kernel

WRONG = (
    "[]", "{}", '""', "null", "true", "-1", "1.5", "1e99", "x y", "[1, [2]]", "{a: {b: c}}",
    '"((("', "[a, a]", "[1, 1]", "[-1]",
    '{value: "(", dtype: float32}', "{shape: [N], value: 1, dtype: float32}",
    "{atol: -1, rel_rmse: 1}", "{trials: 0}",
)  # fmt: skip
FOREIGN = re.compile(
    r"Value error|Assertion|Input should|Field required|Tuple|String should|valid"
    r" (dictionary|tuple|list)|instance of|got .*, got "
)
HEADER = re.search(r"evoengine\n(.*?)\*/", kernel("scale_a"), re.DOTALL)[1]


def complaint(text: str, is_header: bool) -> str:
    try:
        if is_header:
            kernel_file.parse(f"/* evoengine\n{text}*/\n")
        else:
            _validated(yaml_source.load(text, "t.yaml"))
    except (CandidateError, YamlError) as error:
        return str(error)
    return ""


@pytest.mark.parametrize("text", [TASK, HEADER], ids=["task", "header"])
def test_no_complaint_about_a_file_is_in_the_words_of_a_library(text: str) -> None:
    marks = yaml_source.load(text, "x").marks
    ends = {
        path: mark.end - (text[mark.end - 1 : mark.end] == "\n")
        for path, mark in marks.items()
        if path
    }
    found = [
        complaint(text[: marks[path].start] + wrong + text[end:], text is HEADER)
        for path, end in ends.items()
        for wrong in WRONG
    ]
    assert len([words for words in found if words]) > 300  # else there is little to look at
    assert not [words for words in found if FOREIGN.search(words)]


@pytest.mark.parametrize("key", ["name", "dims", "reference", "budget", "cases", "tiers"])
def test_a_missing_key_is_said_to_be_needed(key: str) -> None:
    lines = TASK.splitlines(keepends=True)
    start = next(number for number, line in enumerate(lines) if line.startswith(f"{key}:"))
    end = next(
        number
        for number in range(start + 1, len(lines) + 1)
        if number == len(lines) or not lines[number].startswith(" ")
    )
    assert (
        complaint("".join(lines[:start] + lines[end:]), is_header=False)
        == f"t.yaml:1:1: {key}: this key is needed, and it is not there"
    )
