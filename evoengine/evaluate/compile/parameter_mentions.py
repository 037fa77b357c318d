"""Where a PTX text mentions parameters, of kernels and of calls.

Only statements that begin a line and have exactly the compiler's form are understood. None of these
forms has room for a comment, so a statement that begins as code is code to its end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_WORD = re.compile(r"[\w$%]+", re.ASCII)
# The compiler's names of parameters and of results all hold one of these.
_NAMED = re.compile(r"param|retval")
_KEYWORD = re.compile(r"param|retval|call|\.entry|\.func")
_DIRECTIVE = re.compile(r"\.(?:param|entry)(?![\w$%])", re.ASCII)
# `.reg .b64 name<4>` declares name0 to name3; a comment may stand before the `<`.
_NUMBERED = re.compile(r"\s*[</]")

_DECLARATION = (
    r"\.param\s+(?:\.align\s+\d+\s+)?\.[a-z]+(\d{1,9})"
    r"(?:\s+\.ptr(?:\s+\.(?!align)[a-z]+)?(?:\s+\.align\s+\d+)?)?"
    r"\s+([A-Za-z_$%][\w$%]*)(?:\[(\d{1,9})\])?"
)
_DECLARED = re.compile(_DECLARATION, re.ASCII)
_ANY = re.sub(r"(?<!\\)\((?!\?)", "(?:", _DECLARATION)  # without groups
_TYPE = r"(?:::entry|::func)?(?:\.v(?P<count>[248]))?\.[a-z]+(?P<bits>\d{1,9})[ \t]+"
_ADDRESS = r"\[(?P<name>[\w$%]+)(?:\+(?P<offset>\d{1,9}))?\]"
_READ = rf"ld\.param{_TYPE}(?P<value>[\w$%]+|\{{[\w$%, \t]+\}})[ \t]*,[ \t]*{_ADDRESS}[ \t]*;"
_WRITTEN = (
    rf"st\.param{_TYPE}{_ADDRESS}[ \t]*,[ \t]*"
    r"(?P<value>[\w$%.+-]+|\{[\w$%.+, \t-]+\})[ \t]*;"
)
_KERNEL = (
    r"(?:\.(?:visible|weak|extern)\s+)*\.entry\s+(?P<kernel>[\w$%]+)\s*"
    rf"\(\s*(?P<parameters>(?:{_ANY}(?:\s*,\s*{_ANY})*)?)\s*\)"
)
_DECLARES = (
    rf"{_ANY}[ \t]*;|(?:\.(?:visible|weak|extern)\s+)*\.func\s+(?:\(\s*{_ANY}\s*\)\s*)?[\w$%]+\s*"
    rf"\(\s*(?:{_ANY}(?:\s*,\s*{_ANY})*)?\s*\)"
)
_CALLS = (
    r"call(?:\.uni)?(?![\w$%])\s*(?:\([\w$]+\)\s*,\s*)?[\w$%]+\s*(?:,\s*\([\w$,\s]*\)[\w$,\s]*)?;"
    r"|[\w$]+[ \t]*:[ \t]*\.callprototype[ \t]+[\w$.,()\[\] \t]*;"
)
_NAMES_A_FILE = r'\.file[ \t]+\d+[ \t]+"[\w$./+ -]*"'
_ACCESSES = tuple(re.compile(r"[ \t]*" + form, re.ASCII) for form in (_READ, _WRITTEN))
_STATEMENT = re.compile(
    rf"[ \t]*(?:{_KERNEL}|(?P<declares>{_DECLARES})|(?P<calls>{_CALLS})|{_NAMES_A_FILE})", re.ASCII
)


@dataclass(frozen=True)
class ParameterAccess:
    """A read or a write of `name` up to, and without, byte `end`."""

    name: str
    end: int


@dataclass
class ParameterMentions:
    """What a PTX text says of parameters."""

    # by name: the kernel's name in the PTX, and the parameter's number from 1
    kernel_parameters: dict[str, tuple[str, int]] = field(default_factory=dict)
    # bytes of all parameters and results, also of calls, by name; the most where there are several
    sizes: dict[str, int] = field(default_factory=dict)
    accesses: list[ParameterAccess] = field(default_factory=list)
    others: set[str] = field(default_factory=set)  # names in places where none may be
    prefixes: set[str] = field(default_factory=set)  # names that may be those of many registers
    unknown: list[str] = field(default_factory=list)  # lines that use `.param` in another way


def mentions_of(ptx: str) -> ParameterMentions:
    """What `ptx` says of parameters."""
    mentions = ParameterMentions()
    used_by_calls: set[str] = set()
    for begin, end, statement in _places(ptx):
        if statement is None:
            _note_line(mentions, ptx, begin, end)
        elif statement.re is not _STATEMENT:
            _note_access(mentions, statement)
        elif statement["kernel"]:
            _note_kernel(mentions, statement)
        else:
            used_by_calls.update(_WORD.findall(statement["calls"] or ""))
            used_by_calls.update(_note_declarations(mentions, statement["declares"] or ""))
    mentions.others |= used_by_calls & mentions.kernel_parameters.keys()
    return mentions


def _places(ptx: str) -> Iterator[tuple[int, int, re.Match[str] | None]]:
    """Begin and end of each statement that is understood, and of each rest of a line that holds a
    keyword and is not understood.
    """
    at = 0
    while found := _KEYWORD.search(ptx, at):
        begin = ptx.rfind("\n", 0, found.start()) + 1
        statement = _statement(ptx, begin) if begin >= at else None
        if statement and statement.end() > found.start():
            end = statement.end()
        else:
            statement, begin = None, max(begin, at)
            end = ptx.find("\n", found.end())
            end = len(ptx) if end < 0 else end
        yield begin, end, statement
        at = end


def _statement(ptx: str, begin: int) -> re.Match[str] | None:
    for form in (*_ACCESSES, _STATEMENT):
        if found := form.match(ptx, begin):
            return found
    return None


def _note_access(mentions: ParameterMentions, statement: re.Match[str]) -> None:
    size = int(statement["count"] or 1) * int(statement["bits"]) // 8
    end = int(statement["offset"] or 0) + size
    mentions.accesses.append(ParameterAccess(statement["name"], end))
    mentions.others.update(filter(_NAMED.search, _WORD.findall(statement["value"])))


def _note_kernel(mentions: ParameterMentions, statement: re.Match[str]) -> None:
    for number, name in enumerate(_note_declarations(mentions, statement["parameters"]), start=1):
        if name in mentions.kernel_parameters:
            mentions.others.add(name)
        mentions.kernel_parameters[name] = statement["kernel"], number


def _note_declarations(mentions: ParameterMentions, text: str) -> list[str]:
    """The names that `text` declares."""
    names = []
    for bits, name, count in _DECLARED.findall(text):
        size = int(bits) // 8 * int(count or 1)
        mentions.sizes[name] = max(size, mentions.sizes.get(name, 0))
        names.append(name)
        if not _NAMED.search(name):
            mentions.unknown.append(text)
    return names


def _note_line(mentions: ParameterMentions, ptx: str, begin: int, end: int) -> None:
    if _DIRECTIVE.search(ptx, begin, end):
        mentions.unknown.append(ptx[begin:end])
    for found in _WORD.finditer(ptx, begin, end):
        if _NAMED.search(found[0]):
            mentions.others.add(found[0])
            if _NUMBERED.match(ptx, found.end()):
                mentions.prefixes.add(found[0])
