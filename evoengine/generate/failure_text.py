"""What compiler and checker say of a failure, in the shortest text that names the cause."""

from __future__ import annotations

import re

from evoengine.records import Status

MAX_ERRORS = 3  # of a compiler: later ones follow from the first as a rule

_BETWEEN_PARAGRAPHS = re.compile(r"\n(?:[ \t]*\n)+")
_COUNT_OF_ERRORS = re.compile(r"\d+ errors? detected in the compilation of ")
_WARNING = re.compile(r"[^\n]*\(\d+\): warning\b")
_FOLLOWED = re.compile(r" \(following every access on .*\)$")
# threads, addresses and counts, which differ between findings of one fault; lines do not
_NUMBER_OF_NO_LINE = re.compile(r"(?<![\w.])(?<!line )\d+")


def besides(status: Status, reason: str, detail: str) -> str:
    """The part of `detail` that says more than `reason`, which as a rule begins it: of a compiler's
    output the first errors, of findings that differ in numbers alone the first.
    """
    if status is Status.compile_error:
        detail = _first_errors(detail)
    elif status is Status.fault:
        return _distinct(reason, detail)
    first, _, rest = detail.partition("\n")
    return (rest if first.strip() == reason.strip() else detail).strip("\n")


def _first_errors(detail: str) -> str:
    """Without warnings and the count of errors; all where nothing else is there."""
    paragraphs = _BETWEEN_PARAGRAPHS.split(detail.strip("\n"))
    kept = [
        item for item in paragraphs if not (_WARNING.match(item) or _COUNT_OF_ERRORS.match(item))
    ]
    # a count may follow right after the last error
    texts = [
        "\n".join(line for line in item.split("\n") if not _COUNT_OF_ERRORS.match(line))
        for item in kept[:MAX_ERRORS]
    ]
    return "\n".join(texts) or detail


def _distinct(reason: str, detail: str) -> str:
    subjects = {_subject(reason)}
    kept = []
    for line in detail.strip("\n").split("\n"):
        subject = _subject(line)
        if subject not in subjects:
            kept.append(line)
        subjects.add(subject)
    return "\n".join(kept)


def _subject(line: str) -> str:
    return _NUMBER_OF_NO_LINE.sub("#", _FOLLOWED.sub("", line).strip())
