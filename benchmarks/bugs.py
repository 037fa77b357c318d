"""Walks the corpus of planted bugs and counts how many causes the first findings of a verdict name.

    python -m benchmarks.bugs [--corpus FOLDER] [--device emulated|cuda] [--only NAME ...]
                              [--repair SECONDS] [--json FILE]

Every kernel of the corpus is judged as in a search, by one executor for each task. A bug is named
when one of the first two findings of its verdict matches a pattern of the manifest, which was
written before any diagnosis existed. Honest kernels are correct and must get no finding. On the
emulator the cases are small ones.

Status 1 where a bug or an honest kernel does not have the status that the manifest lists, or where
an honest kernel has a finding.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.planted_bugs import (
    BUGS,
    NAMED_WITHIN,
    HonestNumbers,
    PlantedBug,
    bug_manifest,
    bug_task,
    bug_task_path,
)
from benchmarks.table import Row, machine, table
from evoengine import atomic_files
from evoengine.errors import EvoError
from evoengine.evaluate.device_choice import EMULATOR, DeviceChoice
from evoengine.evaluate.repair.repaired_verdict import PHASE
from evoengine.protocols import Executor
from evoengine.records import DiagnosisKind, Status, Verdict
from evoengine.search.choose_run import parse_checks
from evoengine.search.make_executor import find_device, make_executor

DEVICES = {"emulated": f"{EMULATOR}:h200", "cuda": "cuda"}
JUDGED_WITHIN_S = 900.0  # after that the engine itself hangs: its own limits are far below
ENDED_WITHIN_S = 60.0  # an executor that broke
SENTENCE_CHARACTERS = 90
ENGINE_BROKE = "the engine broke"  # in place of a status

Entry = PlantedBug | HonestNumbers


@dataclass(frozen=True)
class Judgement:
    """What became of one kernel of the corpus."""

    name: str
    entry: Entry
    status: str
    reason: str
    sentences: tuple[str, ...]  # of the findings, in their order
    expected: Status | None  # None where the manifest does not say: a bug on a GPU
    seconds: float = 0.0  # of the diagnosis, without its further launches
    phases_s: Mapping[str, float] = field(default_factory=dict)  # of the verdict
    repair_line: int | None = None  # of the change that makes it right
    is_at_place: bool = False  # whether that is the planted place

    @property
    def is_named(self) -> bool:
        """Whether one of the first findings names the cause."""
        return isinstance(self.entry, PlantedBug) and self.entry.is_named_by(
            self.sentences[:NAMED_WITHIN]
        )

    @property
    def is_named_by_reason(self) -> bool:
        """Whether the reason of the verdict does, as it does for most faults."""
        return isinstance(self.entry, PlantedBug) and self.entry.is_named_by((self.reason,))

    @property
    def problem(self) -> str:
        """What is not as the manifest says; empty if all is."""
        if self.expected is None:
            correct = self.status == Status.correct
            return "correct, and it has a bug" if correct else ""
        if self.status != self.expected:
            return f"expected {self.expected}, got {self.status}: {self.reason}"
        honest = isinstance(self.entry, HonestNumbers)
        return f"a finding: {self.sentences[0]}" if honest and self.sentences else ""

    @property
    def repair_words(self) -> str:
        """Where a change makes it right: at the planted place, elsewhere, or nowhere."""
        if self.repair_line is None:
            return ""
        return "at its place" if self.is_at_place else f"elsewhere, line {self.repair_line}"

    def row(self) -> Row:
        """The row of the table and of the JSON."""
        first, second, *_ = (*self.sentences, "", "")
        honest = isinstance(self.entry, HonestNumbers)
        return {
            "name": self.name,
            "task": self.entry.task,
            "status": self.status,
            "first finding": first,
            "second finding": second,
            "named": None if honest else self.is_named,
            "by reason": None if honest else self.is_named_by_reason,
            "seconds": self.seconds,
            "repair s": self.phases_s.get(PHASE, 0.0),
            "whole s": self.phases_s.get("total", 0.0),
            "repaired": self.repair_words,
            "problem": self.problem,
            "reason": self.reason,
            "cause": "" if isinstance(self.entry, HonestNumbers) else self.entry.cause,
        }


def sentences_of(verdict: Verdict) -> tuple[str, ...]:
    """The sentences of a verdict's diagnoses, the most telling first."""
    found = verdict.forensics.diagnoses if verdict.forensics else ()
    return tuple(diagnosis.sentence for diagnosis in found)


def _seconds_of(verdict: Verdict) -> float:
    return verdict.forensics.seconds if verdict.forensics else 0.0


def _repair_of(verdict: Verdict) -> int | None:
    """The line of the change that makes the kernel right; None where none was found."""
    first = (verdict.forensics.diagnoses if verdict.forensics else ())[:1]
    if not first or first[0].kind is not DiagnosisKind.changed_source:
        return None
    return int(str(first[0].evidence["line"]))


class BugWalk:
    """One task with the executor that judges its kernels."""

    def __init__(self, task_name: str, device: str, folder: Path, repair_s: float = 0.0) -> None:
        self.task_name = task_name
        self.folder = folder
        self.repair_s = repair_s
        self.choice = find_device(DEVICES[device], bug_task(task_name, folder=folder))
        self._executor: Executor | None = None

    async def judge(self, name: str, entry: Entry) -> Judgement:
        """What becomes of one kernel; an exception of the engine is a problem of that one, and ends
        its executor.
        """
        expected = expected_status(entry, self.choice)
        try:
            executor = await self._started()
            verdict = await asyncio.wait_for(
                executor.evaluate(entry.candidate(self.folder), lambda _: None), JUDGED_WITHIN_S
            )
        except Exception as error:  # noqa: BLE001 - one that breaks the engine must not end the walk
            with contextlib.suppress(Exception):
                await asyncio.wait_for(self.close(), ENDED_WITHIN_S)
            why = f"{type(error).__name__}: {error}"
            return Judgement(name, entry, ENGINE_BROKE, why, (), expected or Status.wrong_result)
        sentences = sentences_of(verdict)
        line = _repair_of(verdict)
        return Judgement(
            name,
            entry,
            verdict.status.value,
            verdict.reason,
            sentences,
            expected,
            _seconds_of(verdict),
            verdict.phases_s,
            line,
            line in entry.planted_lines(self.folder),
        )

    async def close(self) -> None:
        """Ends the executor; the next kernel gets a new one."""
        executor, self._executor = self._executor, None
        if executor is not None:
            await executor.close()

    async def _started(self) -> Executor:
        if self._executor is None:
            task = bug_task(self.task_name, self.choice.is_emulator, self.folder)
            checks = parse_checks(None, self.choice)
            path = bug_task_path(self.task_name, self.folder)
            self._executor = make_executor(task, path, self.choice, checks, repair_s=self.repair_s)
            await self._executor.start()
        return self._executor


def expected_status(entry: Entry, choice: DeviceChoice) -> Status | None:
    """The status that the manifest lists; None for a bug on a GPU, which shows it in several."""
    if isinstance(entry, HonestNumbers):
        return Status.correct
    return entry.emulator if choice.is_emulator else None


async def judgements(
    entries: Sequence[tuple[str, Entry]], device: str, folder: Path, repair_s: float = 0.0
) -> AsyncIterator[Judgement]:
    """What becomes of each kernel, task by task."""
    for task_name in dict.fromkeys(entry.task for _, entry in entries):
        walk = BugWalk(task_name, device, folder, repair_s)
        try:
            for name, entry in entries:
                if entry.task == task_name:
                    yield await walk.judge(name, entry)
        finally:
            await walk.close()


def chosen(folder: Path, only: Iterable[str] | None) -> list[tuple[str, Entry]]:
    """The entries of the manifest in `folder`, all or those named, bugs first."""
    manifest = bug_manifest(folder)
    entries: list[tuple[str, Entry]] = [*manifest.bugs.items(), *manifest.honest.items()]
    names = None if only is None else set(only)
    return [(name, entry) for name, entry in entries if names is None or name in names]


def shown_row(judgement: Judgement) -> Row:
    """The row as the table has it: short sentences, and neither reason nor cause."""
    row = {
        name: value for name, value in judgement.row().items() if name not in ("reason", "cause")
    }
    return {
        name: value[:SENTENCE_CHARACTERS] if isinstance(value, str) else value
        for name, value in row.items()
    }


def totals(found: Sequence[Judgement]) -> str:
    """The lines with the counts."""
    bugs = [item for item in found if isinstance(item.entry, PlantedBug)]
    honest = [item for item in found if isinstance(item.entry, HonestNumbers)]
    named = sum(item.is_named for item in bugs)
    either = sum(item.is_named or item.is_named_by_reason for item in bugs)
    with_findings = sum(bool(item.sentences) for item in honest)
    repaired = [item for item in bugs if item.repair_line is not None]
    at_place = sum(item.is_at_place for item in repaired)
    return (
        f"named in the first {NAMED_WITHIN} findings: {named} of {len(bugs)}"
        f" (or in the verdict's reason: {either})\n"
        f"repaired by one change: {len(repaired)} of {len(bugs)}, {at_place} of them in the planted"
        " lines\n"
        f"honest with findings: {with_findings} of {len(honest)}\n"
        f"not as the manifest says: {sum(bool(item.problem) for item in found)} of {len(found)}"
    )


async def walk_corpus(options: argparse.Namespace) -> list[Judgement]:
    """What becomes of all kernels; each is printed and written as soon as it is known."""
    found: list[Judgement] = []
    where = machine(device=options.device)
    entries = chosen(options.corpus, options.only)
    async for item in judgements(entries, options.device, options.corpus, options.repair):
        found.append(item)
        problem = f"  <-- {item.problem}" if item.problem else ""
        print(f"{item.name}: {item.status}{problem}", file=sys.stderr, flush=True)
        if options.json is not None:
            content = {"machine": where, "rows": [item.row() for item in found]}
            atomic_files.write_text(options.json, json.dumps(content, indent=1) + "\n")
    return found


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bugs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--corpus", type=Path, default=BUGS, metavar="FOLDER", help="default: tests/bugs"
    )
    parser.add_argument("--device", choices=tuple(DEVICES), default="emulated")
    parser.add_argument(
        "--repair",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="look so long for the change that makes a wrong kernel right; default: not at all",
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these entries alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there as well")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Walks the corpus; 1 where something is not as the manifest says."""
    options = parse_options(arguments)
    if not chosen(options.corpus, options.only):
        raise SystemExit(f"the corpus has no entry of the names {options.only}")
    try:
        found = asyncio.run(walk_corpus(options))
    except EvoError as error:
        raise SystemExit(str(error)) from None
    print(f"{table([shown_row(item) for item in found])}\n")
    print(totals(found))
    return int(any(item.problem for item in found))


if __name__ == "__main__":
    raise SystemExit(main())
