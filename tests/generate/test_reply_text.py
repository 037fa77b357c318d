"""The parser over a corpus of replies, in every form that models have been seen to use."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evoengine.evaluate.compile.includes import check_includes
from evoengine.generate import parsed_reply, reply_text
from evoengine.records import Reply
from tests.generate.row_sums_task import HIDDEN_NAMES, HIDDEN_SIZES, request
from tests.sampling import examples

FOLDER = Path(__file__).parent / "replies"
USABLE = sorted(path.name for path in FOLDER.glob("ok_*.md"))

PROBLEMS = {
    "no_400_template_arguments.md": (
        "characters with its template arguments in case main, expected at most 1000"
    ),
    "no_bare_comma.md": "YAML splits a list at bare commas",
    "no_code_without_header.md": "the code has no launch plan",
    "no_cut_in_the_header.md": "expected the launch plan first",
    "no_diff.md": "alone on its line and end with '*/', got '+/* evoengine'",
    "no_doc_comment_header.md": (
        "must begin with '/* evoengine' alone on its line and end with '*/', got '/** evoengine'"
    ),
    "no_empty.md": "the reply is empty",
    "no_file_include.md": "kernel.cu:13: #include of '/etc/passwd' is not allowed\nallowed: ",
    "no_header_in_another_block.md": "the code has no launch plan",
    "no_header_never_closed.md": "expected the launch plan first",
    "no_header_on_one_line.md": "got '/* evoengine name: wanted */'",
    "no_headers_never_closed.md": "this one has text before it",
    "no_hidden_case_does_not_bind.md": (
        "does not hold, or the launch plan cannot be evaluated, in a hidden case"
    ),
    "no_host_code.md": "kernel.cu:13: #include of 'torch/extension.h' is not allowed\nallowed: ",
    "no_kernel_of_that_name.md": "launches 'row_totals', but the code defines no such kernel",
    "no_line_comment_header.md": "got '// evoengine'",
    "no_line_directive.md": "kernel.cu:13: #line is not allowed",
    "no_name_like_an_option.md": "name: expected letters, digits",
    "no_name_with_a_dot_first.md": "name: expected letters, digits",
    "no_only_spaces.md": "the reply is empty",
    "no_python_in_an_expression.md": "is not arithmetic",
    "no_python_instead.md": "none of the 1 fenced blocks holds a kernel",
    "no_refusal.md": "the reply holds no code block",
    "no_stars_only.md": "the reply holds no code block",
    "no_too_much_shared.md": "bytes of shared memory in case main, sm_89 allows 101376 per block",
    "no_unknown_argument.md": "unknown name 'y'",
    "no_unknown_key.md": "cluster: unknown key",
    "no_unknown_tier.md": "no tier 'fp64'; known: fp32, fp16",
}


def read(name: str, task_path: Path) -> parsed_reply.ParsedReply:
    text = (FOLDER / name).read_bytes().decode()
    return parsed_reply.read(
        Reply(model="m", prompt="p", text=text), request(task_path), check_includes
    )


def test_every_reply_of_the_corpus_has_an_expectation() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {*USABLE, *PROBLEMS}
    assert len(USABLE) >= 20


@pytest.mark.parametrize("name", USABLE)
def test_a_kernel_is_found_whatever_surrounds_it(name: str, task_path: Path) -> None:
    found = read(name, task_path)
    assert (found.problem, found.name) == ("", "wanted")
    assert found.source is not None
    assert found.source.startswith("/* evoengine") or found.source.startswith("\n")
    assert "out[i] = x[size_t(i) * C];\n}" in found.source
    assert "```" not in found.source.replace("/* usage:\n```\nrow_sums\n```", "")
    assert not set(found.source) & {"\r", "\ufeff", "\0"}


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_problem_names_what_is_missing(name: str, task_path: Path) -> None:
    found = read(name, task_path)
    assert found.source is None
    assert PROBLEMS[name] in found.problem


def test_thoughts_are_at_most_three_and_short(task_path: Path) -> None:
    assert read("ok_plain.md", task_path).insight == "fewer barriers per tile\n16-byte loads"
    assert (
        read("ok_bold_thoughts_numbered.md", task_path).insight
        == "fewer barriers per tile in the steady state\n16-byte loads\nthird"
    )
    assert reply_text.read("## Thoughts\n- " + "x" * 5000).thoughts == (
        "x" * reply_text.MAX_THOUGHT_LENGTH,
    )


@pytest.mark.sampled("begin", one_in=3)
@pytest.mark.parametrize(
    ("begin", "line"),
    [
        ("## Thoughts\n- a\n", "b\n"),
        ("## Thoughts\n", "- a\n"),
        ("", "## Thoughts\n"),
        ("", "Lesson: a\n"),
        ("", "```\n"),
        ("", "/* evoengine\n"),
        ("", "/*" + " " * 99 + "evoengine\n"),
        ("", "</think>"),
        ("", "```\n/* evoengine\n"),
        ("", "a ```cuda\n/* evoengine\n"),
        ("/* evoengine\n", "a"),
        ("```\n/* evoengine\n*/\n", "__global__ */\n"),
    ],
)
def test_the_longest_reply_is_read_once(begin: str, line: str) -> None:
    """A reading that went back, or copied what it has for each line, would take minutes here."""
    text = begin + line * ((reply_text.MAX_LENGTH - len(begin)) // len(line))
    assert all(
        len(thought) <= reply_text.MAX_THOUGHT_LENGTH for thought in reply_text.read(text).thoughts
    )


def test_what_follows_a_fence_behind_a_sentence_is_read_as_prose(task_path: Path) -> None:
    assert read("ok_fence_behind_a_sentence.md", task_path).insight == "one barrier less"


def test_a_problem_in_a_hidden_case_gives_away_no_size(task_path: Path) -> None:
    problem = read("no_hidden_case_does_not_bind.md", task_path).problem
    assert "kernel.cu:" not in problem  # a line of the header can stand for a size
    assert not [word for word in (*HIDDEN_SIZES, *HIDDEN_NAMES, "123.7") if word in problem]


def test_an_include_before_the_header_is_kept(task_path: Path) -> None:
    assert "#include <cuda_fp16.h>" in (read("ok_include_before_header.md", task_path).source or "")


@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "```",
                "~~~",
                "````cuda",
                "/* evoengine",
                "*/",
                "name: a",
                "__global__",
                "## Thoughts",
                "- x",
                "</think>",
                "\r",
                "> ",
                "é\ud7ff",
            ]
        )
    )
)
def test_any_text_is_read_without_an_exception(lines: list[str]) -> None:
    reading = reply_text.read("\n".join(lines))
    assert (reading.kernel is None) == bool(reading.problem)
