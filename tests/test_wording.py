"""Messages and pages are in plain English.

Every value of a task file and of a header is replaced by wrong ones: no complaint is in the words of
a library. And phrases that read like a translation do not come back: a reader has to guess at
"nobody tells their registers" (say "their register counts are unknown"), "nothing is known against
it" ("it may be correct"), "X stands in Y" ("X is in Y") or "unless said otherwise" ("by default").
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from evoengine.candidate import kernel_file
from evoengine.cli.main import app
from evoengine.errors import CandidateError
from evoengine.task import yaml_source
from evoengine.task.load import validated
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
ROOT = Path(__file__).resolve().parent.parent
ODD = re.compile(
    r"\b(nobody|whoever|somebody|told)\b|nothing is known against|not looked for|made of CPU"
    r"|\bstands? (twice|in)\b|unless said otherwise",
    re.IGNORECASE,
)
HEADER = re.search(r"evoengine\n(.*?)\*/", kernel("scale_a"), re.DOTALL)[1]


def complaint(text: str, is_header: bool) -> str:
    try:
        if is_header:
            kernel_file.parse(f"/* evoengine\n{text}*/\n")
        else:
            validated(yaml_source.load(text, "t.yaml"))
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
def test_the_error_of_a_missing_key_says_that_it_is_required(key: str) -> None:
    lines = TASK.splitlines(keepends=True)
    start = next(number for number, line in enumerate(lines) if line.startswith(f"{key}:"))
    end = next(
        number
        for number in range(start + 1, len(lines) + 1)
        if number == len(lines) or not lines[number].startswith(" ")
    )
    assert (
        complaint("".join(lines[:start] + lines[end:]), is_header=False)
        == f"t.yaml:1:1: {key}: this key is required"
    )


def messages() -> Iterator[tuple[str, str]]:
    """Place and text of every string in the package that is not a docstring, and of the help."""
    for path in sorted((ROOT / "evoengine").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if id(node) in docstrings or not isinstance(node, ast.Constant):
                continue
            if isinstance(node.value, str):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value
    for command in app.registered_commands:
        yield f"--help of {command.callback.__name__}", command.callback.__doc__


def pages() -> Iterator[tuple[str, str]]:
    """Place and text of every line of the pages for users and of the prompts."""
    for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "prompts").iterdir()):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            yield f"{path.relative_to(ROOT)}:{number}", line


@pytest.mark.parametrize("texts", [messages, pages])
def test_no_message_and_no_page_has_a_phrase_that_readers_stumble_over(texts) -> None:
    found = list(texts())
    assert len(found) > 100  # else there is little to look at
    assert not [(place, text) for place, text in found if ODD.search(text)]
