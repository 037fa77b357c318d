"""Finds the text of one kernel file in a model's reply, and the model's thoughts about it.

Nothing here judges the kernel. A reply is free text; every form that models have been seen
to use is understood here.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

from evoengine.generate import lesson_lines
from evoengine.generate.lesson_lines import LessonLines

MAX_THOUGHTS = 3  # EvoEngineer keeps up to three thoughts of a reply
MAX_THOUGHT_LENGTH = 300  # characters: two sentences
# characters of a reply that are read: sixteen times the largest kernel file that is taken
MAX_LENGTH = 4_000_000

_HEADER = re.compile(r"^[ \t]*/\*[ \t]*evoengine[ \t]*$", re.MULTILINE)
_END = re.compile(r"\*/[ \t]*\n?")
_NAME = re.compile(r"evoengine\b", re.IGNORECASE)
_ALMOST_OPENING = re.compile(r"/[/*][/ \t!*-]*+\Z")
# Possessive (*+): to backtrack over a line of 100,000 blanks would block the loop for minutes.
_FENCE = re.compile(r"^([ \t>]*+)(`{3,}+|~{3,}+)[ \t]*+([^`\n]*+)$")
# a fence at the end of a line that begins otherwise
_LATE_FENCE = re.compile(r"(?:`{3,}+|~{3,}+)[\w+-]*+[ \t]*+\Z")
_THOUGHTS = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]*)?[*_]{0,2}(?:thoughts?|insights?)\b[^\n]*$",
    re.IGNORECASE | re.MULTILINE,
)
_BULLET = re.compile(r"^[ \t]*(?:[-*+•]|\d+[.)])[ \t]+(.*)$")
_WANTED = (
    "expected one fenced block that begins with the line '/* evoengine' and holds the whole .cu"
    " file"
)
# no kernel needs one, and a terminal may obey it: control characters, and two that end lines
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True)
class Reading:
    """The contents of a reply: the text of a kernel file, or why there is none; up to three
    thoughts; and what it says of lessons.
    """

    kernel: str | None
    problem: str
    thoughts: tuple[str, ...]
    lessons: LessonLines = LessonLines()  # noqa: RUF009 - frozen


def read(text: str) -> Reading:
    """The contents of the reply `text`, in time linear in its length, whatever it is."""
    if len(text) > MAX_LENGTH:
        return Reading(
            None,
            f"the reply has {len(text)} characters, at most {MAX_LENGTH} are read; {_WANTED}",
            (),
        )
    text = _answer_of(_with_own_lines(_plain(text)))
    blocks, prose = _split(text)
    thoughts = _thoughts(prose)
    kernel = _kernel(blocks, text)
    lessons = lesson_lines.read(prose)
    return Reading(kernel, "" if kernel else _why_none(blocks, text), thoughts, lessons)


def _plain(text: str) -> str:
    """`text` with one kind of line end, without byte order marks, control characters and lone
    surrogates, which no file can hold.
    """
    text = text.encode("utf-8", "replace").decode()
    text = (
        text.replace("\r\n", "\n").replace("\r", "\n").replace("\ufeff", "").replace("\u2028", "\n")
    )
    return CONTROL.sub("", text)


def _with_own_lines(text: str) -> str:
    """`text` with a line of its own for each fence right before a header: some models open it at
    the end of a sentence, or behind a mark of their channels.
    """
    pieces, done = list[str](), 0
    for header in _HEADER.finditer(text):
        end = header.start() - 1  # of the line before
        line = text[max(text.rfind("\n", 0, max(end, 0)) + 1, end - 200) : max(end, 0)]
        fence = _LATE_FENCE.search(line)
        if fence and not _FENCE.match(line):
            at = end - len(fence[0])
            pieces += [text[done:at], "\n"]
            done = at
    return "".join([*pieces, text[done:]])


def _answer_of(text: str) -> str:
    """What follows the reasoning that some models put before their answer, if a kernel is there."""
    answer = text.rpartition("</think>")[2]
    return answer if _HEADER.search(answer) else text


def _split(text: str) -> tuple[list[str], str]:
    """The fenced blocks of `text` in order, and all text outside them.

    A block that is never closed runs to the end: the reply was cut.
    """
    blocks: list[str] = []
    prose: list[str] = []
    current: list[str] | None = None
    indent, fence = "", ""
    for line in text.split("\n"):
        match = _FENCE.match(line)
        if current is None:
            if match:
                indent, fence, current = match[1], match[2], []
            else:
                prose.append(line)
        elif (
            match
            and not match[3].strip()
            and match[2][0] == fence[0]
            and len(match[2]) >= len(fence)
        ):
            blocks.append(_block(current))
            current = None
        else:
            current.append(line.removeprefix(indent))
    if current is not None:
        blocks.append(_block(current))
    return blocks, "\n".join(prose)


def _block(lines: list[str]) -> str:
    return textwrap.dedent("\n".join(lines)).strip("\n") + "\n"


def _kernel(blocks: list[str], text: str) -> str | None:
    """The kernel file: the last block with header and kernel, else the longest with a header, else
    the bare text.
    """
    headed = [block for block in blocks if _HEADER.search(block)]
    whole = [block for block in headed if "__global__" in block]
    if headed:
        return _header_first(whole[-1] if whole else max(headed, key=len))
    if not blocks and _HEADER.search(text):
        return _bare(text)
    return None


def _header_first(block: str) -> str:
    """`block` with its header moved to the top: what models put before it (includes, a file name)
    works below it as well.
    """
    begin = _HEADER.search(block)
    end = _END.search(block, begin.end()) if begin else None
    if not begin or not end or not block[: begin.start()].strip():
        return block.strip("\n") + "\n"
    return (
        block[begin.start() : end.end()].rstrip()
        + "\n"
        + block[: begin.start()]
        + block[end.end() :]
    )


def _bare(text: str) -> str:
    """The kernel file of a reply without any fence: from the header on, up to a heading of
    prose.
    """
    code = text[next(_HEADER.finditer(text)).start() :]
    end = _THOUGHTS.search(code)
    return (code[: end.start()] if end else code).strip("\n") + "\n"


def _why_none(blocks: list[str], text: str) -> str:
    """The problem of a reply without a kernel, with what the model should do."""
    if not text.strip():
        return f"the reply is empty; {_WANTED}"
    almost = _almost_header(text)
    if almost:
        return (
            "the header must begin with '/* evoengine' alone on its line and end with '*/', got"
            f" {almost!r}; {_WANTED}"
        )
    if any("__global__" in block for block in blocks):
        return (
            f"the code has no launch plan: {_WANTED}; write the header (name, precision, launches"
            " ...) as the file's first comment"
        )
    if blocks:
        return f"none of the {len(blocks)} fenced blocks holds a kernel; {_WANTED}"
    return f"the reply holds no code block; {_WANTED}"


def _almost_header(text: str) -> str:
    """60 characters of what only looks like a header, from up to 20 before it on; "" where nothing
    does.
    """
    for name in _NAME.finditer(text):
        before = text[max(0, name.start() - 60) : name.start()].rpartition("\n")[2]
        opening = _ALMOST_OPENING.search(before)
        if opening:
            rest = text[name.start() : name.start() + 60].partition("\n")[0]
            return (before[: opening.start()].lstrip()[-20:] + opening[0] + rest)[:60]
    return ""


def _thoughts(prose: str) -> tuple[str, ...]:
    """The items below the heading Thoughts, each cut to a length."""
    headings = list(_THOUGHTS.finditer(prose))
    if not headings:
        return ()
    items: list[str] = []
    # after the last heading, because models also announce the section
    for line in prose[headings[-1].end() :].split("\n"):
        bullet = _BULLET.match(line)
        if lesson_lines.is_lesson_line(line):
            continue
        if bullet:
            items.append(bullet[1].strip())
        elif line.lstrip().startswith("#"):
            break
        elif line.strip() and items and len(items[-1]) < MAX_THOUGHT_LENGTH:
            items[-1] += " " + line.strip()
    return tuple(item[:MAX_THOUGHT_LENGTH] for item in items[:MAX_THOUGHTS] if item)
