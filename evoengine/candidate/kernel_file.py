"""One self-contained .cu file: a launch plan in its first comment, device code below.

`parse` reads it. The header is data: YAML read by a safe loader, expressions checked against a
whitelist. Every error message names line and column, what was expected and what was found.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from evoengine.candidate.header import Plan, read_plan
from evoengine.digest import digest, digest_json
from evoengine.errors import CandidateError
from evoengine.task import expression, yaml_source
from evoengine.task.yaml_source import Mark, YamlSource

MAX_SOURCE_BYTES = 256 * 1024  # a large hand-written kernel has 60 KiB
# headers of the shipped seeds have 1.5 KiB; PyYAML reads 100 KiB per second
MAX_HEADER_BYTES = 32 * 1024

_HEADER = re.compile(r"\A\ufeff?\s*/\*[ \t]*evoengine[ \t]*\r?\n(.*?)\*/", re.DOTALL)
_OPENING = re.compile(r"/\*[ \t]*evoengine\b")


@dataclass(frozen=True)
class Candidate:
    """A parsed kernel file with its chosen tunables, by default the first values."""

    source: str
    plan: Plan
    tunables: dict[str, int]
    header: YamlSource

    def tuned(self, tunables: dict[str, int], undeclared_values: bool = False) -> Candidate:
        """The candidate with other values; raises CandidateError for a value that is not declared.

        With `undeclared_values` a declared name takes any whole number of 64 bits.
        """
        for name, value in tunables.items():
            fits = (
                undeclared_values
                and name in self.plan.tunables
                and abs(value) <= expression.MAX_MAGNITUDE
            )
            if not fits and value not in self.plan.tunables.get(name, ()):
                declared = self.plan.tunables.get(name)
                known = (
                    f"one of {list(declared)}"
                    if declared
                    else f"a tunable among {', '.join(self.plan.tunables) or 'none'}"
                )
                raise CandidateError(
                    f"{self.header.at(('tunables', name))}: {name}={value}: expected {known}"
                )
        return replace(self, tunables={**self.tunables, **tunables})

    @property
    def code(self) -> str:
        """The device code; the header is blanked, line numbers stay those of the file."""
        end = self._header.end()
        return "\n" * self.source.count("\n", 0, end) + self.source[end:]

    @cached_property
    def source_digest(self) -> str:
        """The digest of the file's text."""
        return digest(self.source)

    @cached_property
    def digest(self) -> str:
        """The digest of code, plan and chosen values; the header's comments do not count."""
        plan = self.plan.model_dump(mode="json", exclude={"name", "summary", "tunables"})
        return digest(self.code.strip(), digest_json(plan), digest_json(self.tunables))

    def with_defaults(self) -> str:
        """The file's text with the chosen values first, so that its defaults are what was measured.

        Only values change places: comments and layout stay. A value that is not declared
        replaces the last one.
        """
        pieces: list[tuple[Mark, int]] = []
        for name, values in self.plan.tunables.items():
            chosen = self.tunables[name]
            if chosen != values[0]:
                order = [chosen, *(value for value in values if value != chosen)][: len(values)]
                pieces += [
                    (self.header.marks["tunables", name, position], value)
                    for position, value in enumerate(order)
                ]
        text = self.source
        offset = self._header.start(1)
        # from the end, so that earlier offsets stay valid
        for mark, value in sorted(pieces, key=lambda piece: -piece[0].start):
            text = text[: offset + mark.start] + str(value) + text[offset + mark.end :]
        return text

    @property
    def _header(self) -> re.Match[str]:
        match = _HEADER.match(self.source)
        if match is None:
            # parse refuses sources without a header
            raise CandidateError(f"{self.header.name}: the header is missing")
        return match


def read(path: Path) -> Candidate:
    """The candidate in the file at `path`; raises CandidateError, also for a file that cannot be
    read or is not UTF-8.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CandidateError(f"{path}: cannot be read: {error.strerror or error}") from None
    try:
        source = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        raise CandidateError(
            f"{path}:{line}:{column}: expected UTF-8 text, got byte {data[error.start]:#04x}; save"
            " the file as UTF-8"
        ) from None
    return parse(source.replace("\r\n", "\n").replace("\r", "\n"), str(path))


def parse(source: str, name: str = "kernel.cu") -> Candidate:
    """The candidate in `source`; raises CandidateError with `name`:line:column."""
    _check_text(source, name)
    match = _HEADER.match(source)
    if not match:
        raise CandidateError(_no_header(source, name))
    first_line = source.count("\n", 0, match.start(1)) + 1
    if len(match[1].encode()) > MAX_HEADER_BYTES:
        raise CandidateError(
            f"{name}:{first_line}:1: expected a header of at most {MAX_HEADER_BYTES} bytes, got"
            f" {len(match[1].encode())}"
        )
    try:
        header = yaml_source.load(match[1], name, first_line)
        if not isinstance(header.data, dict):
            raise header.error(
                (),
                "expected keys such as name, precision, launches; got"
                f" {yaml_source.shown(header.data)}",
            )
        plan = read_plan(header)
    except yaml_source.YamlError as error:
        raise CandidateError(str(error)) from None
    defaults = {tunable: values[0] for tunable, values in plan.tunables.items()}
    return Candidate(source, plan, defaults, header)


def _check_text(source: str, name: str) -> None:
    """Raises CandidateError for text that compilers refuse: NUL or a lone surrogate (which JSON can
    spell), or too many bytes.
    """
    if bad := re.search("[\0\ud800-\udfff]", source):
        line = source.count("\n", 0, bad.start()) + 1
        column = bad.start() - source.rfind("\n", 0, bad.start())
        raise CandidateError(f"{name}:{line}:{column}: character {bad[0]!r} is not allowed")
    if len(source.encode()) > MAX_SOURCE_BYTES:
        raise CandidateError(
            f"{name}: expected at most {MAX_SOURCE_BYTES} bytes, got {len(source.encode())}"
        )


def _no_header(source: str, name: str) -> str:
    """The error message for a `source` without a header at its start."""
    expected = (
        "expected the launch plan first: a comment that begins with '/* evoengine' on a line of"
        " its own"
    )
    found = _OPENING.search(source)
    if not found:
        return f"{name}:1:1: {expected}, got {yaml_source.shown(source.lstrip()[:40])}"
    line = source.count("\n", 0, found.start()) + 1
    if source[: found.start()].strip("\ufeff \t\r\n"):
        return f"{name}:{line}:1: {expected}; this one has text before it"
    if "*/" not in source[found.end() :]:
        return f"{name}:{line}:1: {expected}; this one is not closed by '*/'"
    return f"{name}:{line}:1: {expected}; this one continues on the same line"
