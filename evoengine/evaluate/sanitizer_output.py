"""Reads what compute-sanitizer writes: lines that begin with `=========`, indented below the first
one of each error (Compute Sanitizer documentation, "Understanding Memcheck Errors" and the chapters
of the other tools).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from evoengine.records import SanitizerFinding

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
_PREFIX = "========="
# what is not an error of the kernel
_FRAME = re.compile(
    r"COMPUTE-SANITIZER|(ERROR|RACECHECK|LEAK) SUMMARY|Target application|Saved host backtrace"
    r"|This tool|No attachable process|Warning: (?!Race)"
)
_SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: \d+")
_TOOL_FAILED = re.compile(r"(?:Internal Sanitizer Error|Error: (?!Race|Potential)).*")
_CONSEQUENCE = re.compile(r"Program hit ")  # of an error before: the call that reports it
_PLACE = re.compile(r" in (?:\S*/)?([^/\s:]+:\d+)")


@dataclass
class _Block:
    error: str
    details: list[str] = field(default_factory=list)

    @property
    def places(self) -> tuple[str, ...]:
        """The lines of the source, each once."""
        found = [place for line in (self.error, *self.details) for place in _PLACE.findall(line)]
        return tuple(dict.fromkeys(found))


def findings(text: str, case: str) -> tuple[SanitizerFinding, ...]:
    """The errors in a log, equal ones at equal places once, in the order of their first time."""
    blocks = [block for block in _blocks(text) if not _TOOL_FAILED.fullmatch(block.error)]
    causes = [block for block in blocks if not _CONSEQUENCE.match(block.error)] or blocks
    groups: dict[tuple[str, tuple[str, ...]], list[_Block]] = {}
    for block in causes:
        groups.setdefault((_without_address(block.error), block.places), []).append(block)
    return tuple(
        SanitizerFinding(
            case=case,
            error=error,
            places=places,
            details=tuple(found[0].details),
            times=len(found),
        )
        for (error, places), found in groups.items()
    )


def is_complete(text: str) -> bool:
    """Whether the tool came to its summary."""
    return _SUMMARY.search(text) is not None


def _blocks(text: str) -> Iterator[_Block]:
    block: _Block | None = None
    for line in text.splitlines():
        if not line.startswith(_PREFIX):
            continue
        said = line[len(_PREFIX) :]
        words = said.strip()
        if not words:
            if block:
                yield block
            block = None
        elif said.startswith("     ") or words.startswith("and "):
            if words.startswith("Saved host backtrace") and block:
                yield block  # all below is about our own process
                block = None
            elif block and "Frame:" not in words:
                block.details.append(words)
        else:
            if block:
                yield block
            block = None if _FRAME.match(words) else _Block(words)
    if block:
        yield block


def _without_address(text: str) -> str:
    """Addresses differ from time to time."""
    return re.sub(r"\b0x[0-9a-f]+\b", "0x...", text)
