"""A compiler's log as a person or a model should read it."""

from __future__ import annotations

import re
from collections.abc import Iterable

MAX_LOG_BYTES = 8 * 1024  # what a prompt can carry; the first errors say the most
MAX_LINE_CHARACTERS = 400  # quoted source lines may be a whole file long

_SUPPRESS_HINT = re.compile(
    r'^Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"\n\n?',
    re.MULTILINE,
)
_ASSEMBLER_NOISE = re.compile(r"^ptxas\s+(?:info\s*:|\.).*\n?", re.MULTILINE)
_NAME_MAP = re.compile(r"^__nv_name_map\(\d+\): ", re.MULTILINE)
_NAME_PRAGMA = re.compile(r"^  #pragma nv_mangled_name (.*)\n\s*\^$", re.MULTILINE)
_PTX_LINE = re.compile(r"^ptxas application ptx input, line (\d+); (\w+)\s*: (.*)$", re.MULTILINE)
_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)")
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.MULTILINE)


def cleaned(log: str, folders: Iterable[str]) -> str:
    """The log without noise and without paths of this machine, cut to a few kilobytes."""
    text = log.replace("\0", "").replace("\r", "")
    text = _ASSEMBLER_NOISE.sub("", _SUPPRESS_HINT.sub("", text))
    text = _NAME_MAP.sub("launch plan: ", text)
    text = _NAME_PRAGMA.sub(r"  kernel: \1", text)
    for folder in sorted(folders, key=len, reverse=True):
        text = text.replace(folder.rstrip("/") + "/", "")
    lines = [
        line if len(line) <= MAX_LINE_CHARACTERS else f"{line[:MAX_LINE_CHARACTERS]} ..."
        for line in text.strip().splitlines()
    ]
    return _cut("\n".join(lines))


def _cut(text: str) -> str:
    data = text.encode("utf-8", "replace")
    if len(data) <= MAX_LOG_BYTES:
        return data.decode()
    kept = data[:MAX_LOG_BYTES].decode("utf-8", "ignore").rpartition("\n")[0]
    return f"{kept}\n... ({len(data)} bytes in all)"


def assembler_errors(log: str) -> bool:
    """Whether the assembler refused the PTX: its line numbers are then those of the PTX."""
    return bool(_PTX_LINE.search(log))


def traced(log: str, ptx: str, name: str) -> str:
    """The log with the candidate's lines in place of lines of `ptx`, by its line table."""
    lines = ptx.splitlines()
    files = {number: path.rsplit("/", 1)[-1] for number, path in _FILE.findall(ptx)}

    def replace(match: re.Match[str]) -> str:
        number = int(match[1])
        if not 0 < number <= len(lines):
            return match[0]
        where = _source_line(lines[:number], files, name)
        return f"{where}: {match[2]}: {match[3]} (inline assembly: {lines[number - 1].strip()})"

    return _PTX_LINE.sub(replace, log)


def _source_line(lines: list[str], files: dict[str, str], name: str) -> str:
    for line in reversed(lines):
        if match := _LOC.match(line):
            return f"{files.get(match[1], name)}({match[2]})"
    return name
