"""Walks the corpora of cheats and of honest kernels through the engine and counts what it gets
wrong.

    python -m benchmarks.cheats [--corpus cheats|honest|both] [--only NAME ...] [--limit N]
                                [--device DEVICE] [--json FILE]

Every file of tests/cheats and tests/honest is judged as in a search, by one executor for each task,
so that references and baselines are shared. A cheat is accepted when its verdict is correct and the
manifest does not call that harmless, when it is faster than its honest twin by more than 5 %, or
when its verdict says what it must not. An honest kernel is refused when its verdict is not correct.
A cheat that would count as accepted is verified, as the engine does with a candidate that would
take a place. On the emulator the cases are small ones and times are modelled.

At the end the counts are printed; status 1 where either is not 0.
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

from benchmarks.corpora import (
    CHEATS,
    HONEST,
    MANIFEST,
    Cheat,
    Honest,
    Judged,
    cheats,
    honest,
    is_expected,
    path_of,
    small_task,
    task_path,
    why_accepted,
    why_refused,
)
from benchmarks.small_cases import Corpus
from benchmarks.table import Row, machine, table
from evoengine import atomic_files
from evoengine.candidate import kernel_file
from evoengine.candidate.kernel_file import Candidate
from evoengine.errors import CandidateError, EvoError
from evoengine.evaluate.device_choice import EMULATOR, DeviceChoice
from evoengine.protocols import Executor
from evoengine.records import Status, Verdict
from evoengine.search.choose_run import parse_checks
from evoengine.search.make_executor import find_device, make_executor
from evoengine.task.load import load_task

EMULATED = f"{EMULATOR}:h200"
CANDIDATE_S = 900.0  # after that the engine itself hangs: its own limits are far below
CLOSE_S = 60.0  # to end an executor that broke
REASON_CHARACTERS = 70
BROKEN = "the engine broke"  # in place of a status


@dataclass(frozen=True)
class Subject:
    """One file of a corpus."""

    corpus: str
    name: str
    path: Path
    entry: Cheat | Honest

    @property
    def kind(self) -> str:
        """The family of a cheat, the style of an honest kernel."""
        return self.entry.family if isinstance(self.entry, Cheat) else self.entry.style


@dataclass
class Walk:
    """One task with the executor that judges its files."""

    task_name: str
    choice: DeviceChoice
    executor: Executor | None = None
    twins: dict[str, Verdict] = field(default_factory=dict)

    async def judge(self, path: Path, verify: bool = False) -> Verdict:
        """The verdict on a file; a header that cannot be read is rejected, as in a search."""
        try:
            candidate = _parsed(path)
        except CandidateError as error:
            return Verdict(status=Status.rejected, reason=str(error))
        executor = await self._started()
        return await asyncio.wait_for(
            executor.evaluate(candidate, lambda _: None, verify), CANDIDATE_S
        )

    async def row(self, subject: Subject) -> Row:
        """The row of one file; an exception of the engine is a finding, and ends its executor."""
        try:
            if isinstance(subject.entry, Cheat):
                return await self._cheat_row(subject, subject.entry)
            verdict = await self.judge(subject.path)
            return self._row(
                subject, verdict, why_refused(subject.entry, verdict, self.choice.is_emulator)
            )
        except Exception as error:  # noqa: BLE001 - one that breaks the engine must not end the walk
            with contextlib.suppress(Exception):
                await asyncio.wait_for(self.close(), CLOSE_S)
            return self._row(subject, None, f"{type(error).__name__}: {error}")

    async def close(self) -> None:
        """Ends the executor; the next file gets a new one."""
        executor, self.executor = self.executor, None
        if executor is not None:
            await executor.close()

    async def _started(self) -> Executor:
        if self.executor is None:
            path = task_path(self.task_name)
            small = self.choice.is_emulator
            # one executor judges the honest kernels of this task as well
            task = small_task(self.task_name, Corpus.cheats) if small else load_task(path)
            checks = parse_checks(None, self.choice)
            self.executor = make_executor(task, path, self.choice, checks)
            await self.executor.start()
        return self.executor

    async def _cheat_row(self, subject: Subject, cheat: Cheat) -> Row:
        emulated = self.choice.is_emulator
        if cheat.twin not in self.twins:
            self.twins[cheat.twin] = await self.judge(path_of(cheat.twin, CHEATS))
        judged = Judged(await self.judge(subject.path), self.twins[cheat.twin])
        problem = why_accepted(cheat, judged, emulated)
        if problem and judged.verdict.status is Status.correct:
            second = await self.judge(subject.path, verify=True)
            status = judged.verdict.status.after(second.status)
            judged = Judged(second.model_copy(update={"status": status}), judged.twin)
            problem = why_accepted(cheat, judged, emulated)
        row = self._row(subject, judged.verdict, problem, judged.twin)
        unlisted = not problem and not is_expected(cheat, judged.verdict.status, emulated)
        return {**row, "unlisted": "yes" if unlisted else ""}

    def _row(
        self, subject: Subject, verdict: Verdict | None, problem: str, twin: Verdict | None = None
    ) -> Row:
        """The row of one file; without a verdict the engine broke."""
        figure = "us" if self.choice.is_emulator else "speed-up"
        return {
            "corpus": subject.corpus,
            "task": subject.entry.task,
            "file": subject.name,
            "family": subject.kind,
            "status": verdict.status.value if verdict else BROKEN,
            figure: _figure(verdict),
            f"twin's {figure}": _figure(twin),
            "problem": problem,
            "unlisted": "",
            "reason": verdict.reason if verdict else "",
            "seconds": verdict.phases_s.get("total") if verdict else None,
        }


def _parsed(path: Path) -> Candidate:
    return kernel_file.parse(path.read_text(encoding="utf-8"), path.name)


def _figure(verdict: Verdict | None) -> float | None:
    """The speed-up against the fastest baseline or, modelled, the time in microseconds."""
    if verdict is None or verdict.score is None:
        return None
    return verdict.score.value if verdict.is_modelled else 1.0 / verdict.score.value


async def rows(subjects: Sequence[Subject], device: str) -> AsyncIterator[Row]:
    """A row for each file, task by task; one device for all, because some kernels need its shared
    memory.
    """
    device = EMULATED if device == EMULATOR else device
    tasks = dict.fromkeys(subject.entry.task for subject in subjects)
    choices = {name: find_device(device, load_task(task_path(name))) for name in tasks}
    for name, choice in choices.items():
        walk = Walk(name, choice)
        try:
            for subject in subjects:
                if subject.entry.task == name:
                    yield await walk.row(subject)
        finally:
            await walk.close()


def subjects_of(corpus: str, only: Iterable[str] | None) -> list[Subject]:
    """The files of one corpus, all or those named, with or without `.cu`."""
    folder = CHEATS if corpus == "cheats" else HONEST
    if not (folder / MANIFEST).is_file():
        raise SystemExit(f"no corpus {corpus}: {folder / MANIFEST} is missing")
    entries: Mapping[str, Cheat | Honest] = cheats() if corpus == "cheats" else honest()
    chosen = None if only is None else {name.removesuffix(".cu") for name in only}
    return [
        Subject(corpus, name, path_of(name, folder), entry)
        for name, entry in entries.items()
        if chosen is None or Path(name).stem in chosen
    ]


def shown(row: Row) -> Row:
    """The row as the table has it: a reason of one short line."""
    kept = {name: value for name, value in row.items() if name not in ("corpus", "seconds")}
    reason = " ".join(str(row["reason"]).split())
    return {**kept, "reason": reason[:REASON_CHARACTERS]}


def counts(corpus: str, found: Sequence[Row]) -> str:
    """The line with the count of one corpus."""
    wrong = sum(bool(row["problem"]) for row in found)
    what = "cheats accepted" if corpus == "cheats" else "honest refused"
    unlisted = sum(row["unlisted"] == "yes" for row in found)
    more = f" ({unlisted} refused with a status that the manifest does not list)"
    return f"{what}: {wrong} of {len(found)}{more if unlisted else ''}"


async def walk(subjects: Sequence[Subject], options: argparse.Namespace) -> list[Row]:
    """The rows of all files; every one is printed and written as soon as it is known."""
    found: list[Row] = []
    where = machine()
    async for row in rows(subjects, options.device):
        found.append(row)
        problem = f"  <-- {row['problem']}" if row["problem"] else ""
        print(f"{row['file']}: {row['status']}{problem}", file=sys.stderr, flush=True)
        if options.json is not None:
            text = json.dumps({"machine": where, "rows": found}, indent=1)
            atomic_files.write_text(options.json, text + "\n")
    return found


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cheats",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--corpus", choices=("cheats", "honest", "both"), default="both")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these files alone")
    parser.add_argument("--limit", type=int, metavar="N", help="the first N files of each corpus")
    parser.add_argument("--device", default="cuda", help="as for evoengine run (default: cuda)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there as well")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Walks the corpora; 1 where a cheat was accepted or an honest kernel refused."""
    options = parse_arguments(arguments)
    corpora = ("cheats", "honest") if options.corpus == "both" else (options.corpus,)
    subjects = [
        subject
        for corpus in corpora
        for subject in subjects_of(corpus, options.only)[: options.limit]
    ]
    if not subjects:
        raise SystemExit(f"no file of the corpora has one of the names {options.only}")
    try:
        found = asyncio.run(walk(subjects, options))
    except EvoError as error:
        raise SystemExit(str(error)) from None
    parts = {name: [row for row in found if row["corpus"] == name] for name in corpora}
    for part in filter(None, parts.values()):
        print(f"{table([shown(row) for row in part])}\n")
    for corpus, part in parts.items():
        print(counts(corpus, part))
    return int(any(row["problem"] for row in found))


if __name__ == "__main__":
    raise SystemExit(main())
