"""The corpus of cheats: what its manifest promises, and a sample of it judged on the emulator."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.corpora import (
    CHEATS,
    NOISE,
    Cheat,
    Judged,
    cheats,
    is_expected,
    parsed,
    path_of,
    small_task,
    task_path,
    why_accepted,
)
from benchmarks.small_cases import Corpus
from evoengine.errors import CandidateError
from evoengine.evaluate.compile.pool import CLANG, CompilePool
from evoengine.evaluate.local_executor import LocalExecutor
from evoengine.records import Interval, Status, Verdict
from evoengine.statistics import exact
from evoengine.task.load import load_task
from tests.evaluate.kept_fork_server import kept
from tests.sampling import Entry, Sampling

CORPUS = cheats()
FAMILIES = 9  # of a sample, a quarter of all
TASKS = sorted({cheat.task for cheat in CORPUS.values()})
# inputs that do not change, in which some heads and rows are quiet
FIXED_SEEDS = "cheats on small cases"
CHEAT = Cheat(task="t", family="f", what="w", twin="x.cu", expect=(Status.wrong_result,))


def sample(sampling: Sampling, task: str) -> list[str]:
    """The names to judge here: of those that the emulator can notice, one of each family that is
    drawn and of each task.
    """
    families = defaultdict(list)
    for name, cheat in CORPUS.items():
        if not cheat.emulator_accepts:
            families[cheat.family].append(CHEATS / name)
    of_families = [Entry(family, files=tuple(paths)) for family, paths in families.items()]
    drawn = {entry.name for entry in sampling.draw("families", of_families, FAMILIES)}
    entries = [
        Entry(name, (cheat.task, cheat.family if cheat.family in drawn else ""), (CHEATS / name,))
        for name, cheat in CORPUS.items()
        if not cheat.emulator_accepts
    ]
    found = [entry.name for entry in sampling.draw("cheats", entries, len(drawn))]
    return [name for name in found if CORPUS[name].task == task]


def judged(task: str, paths: Sequence[Path]) -> list[Verdict]:
    """The verdicts on files of one task, with its small cases."""

    async def run() -> list[Verdict]:
        device = kept().device("h200", FIXED_SEEDS)
        nvrtc, clang = CompilePool(1), CompilePool(1, module=CLANG)
        executor = LocalExecutor(
            small_task(task, Corpus.cheats), str(task_path(task)), nvrtc, device, clang=clang
        )
        try:
            await executor.start()
            return [await verdict(executor, path) for path in paths]
        finally:
            await executor.close()

    return kept().run(run())


async def verdict(executor: LocalExecutor, path: Path) -> Verdict:
    try:
        candidate = parsed(path)
    except CandidateError as error:
        return Verdict(status=Status.rejected, reason=str(error))
    return await executor.evaluate(candidate, lambda _: None)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("task", TASKS)
def test_no_cheat_of_a_sample_is_accepted_on_the_emulator(task: str, sampling: Sampling) -> None:
    names = sample(sampling, task)
    twins = list(dict.fromkeys(CORPUS[name].twin for name in names))
    paths = [*(path_of(twin, CHEATS) for twin in twins), *(CHEATS / name for name in names)]
    verdicts = judged(task, paths)
    twin_verdicts = dict(zip(twins, verdicts, strict=False))
    assert {item.status for item in twin_verdicts.values()} <= {Status.correct}
    accepted = {}
    for name, found in zip(names, verdicts[len(twins) :], strict=True):
        pair = Judged(found, twin_verdicts[CORPUS[name].twin])
        problem = why_accepted(CORPUS[name], pair, emulated=True)
        if not problem and not is_expected(CORPUS[name], found.status, emulated=True):
            problem = f"the manifest does not list {found.status}: {found.reason}"
        if problem:
            accepted[name] = problem
    assert not accepted, sampling.described


def test_the_manifest_lists_every_file_and_every_twin_is_there() -> None:
    assert set(CORPUS) == {path.name for path in CHEATS.glob("*.cu")}
    missing = {cheat.twin for cheat in CORPUS.values() if not path_of(cheat.twin, CHEATS).is_file()}
    assert not missing


def test_every_family_has_two_files_and_the_corpus_sixty_over_three_tasks() -> None:
    families = Counter(cheat.family for cheat in CORPUS.values())
    assert len(CORPUS) >= 60
    assert not {family for family, count in families.items() if count < 2}
    assert len(TASKS) >= 3


@pytest.mark.parametrize("name", CORPUS)
def test_a_cheat_names_a_tier_of_its_task_or_has_a_header_that_is_refused(name: str) -> None:
    cheat = CORPUS[name]
    try:
        plan = parsed(CHEATS / name).plan
    except CandidateError:
        assert Status.rejected in cheat.expect
    else:
        assert plan.precision in load_task(task_path(cheat.task)).tiers


def test_a_figure_of_version_0_1_0_is_there_or_the_reason_why_not() -> None:
    known = {name for name, cheat in CORPUS.items() if cheat.seen_on_0_1_0 or cheat.why_not}
    assert not known or known == set(CORPUS)


def found(status: Status, us: float | None = None, text: str = "") -> Verdict:
    score: Interval | None = None if us is None else exact(us)
    return Verdict(status=status, reason=text or "a reason", score=score)


@pytest.mark.parametrize(
    ("cheat", "first", "twin_us", "words"),
    [
        (CHEAT, found(Status.wrong_result), 1.0, ""),
        (CHEAT, found(Status.correct, 1.0), 1.0, "correct"),
        (CHEAT.model_copy(update={"harmless": True}), found(Status.correct, 1.0), 1.0, ""),
        (
            CHEAT.model_copy(update={"harmless": True}),
            found(Status.correct, 1.0),
            1.0 + 2 * (NOISE - 1.0),
            "1.10 times as fast",
        ),
        (CHEAT.model_copy(update={"harmless": True}), found(Status.correct), 1.0, "no time"),
        (
            CHEAT.model_copy(update={"must_not_say": (r"N = \d",)}),
            found(Status.wrong_result, text="N = 7 is odd"),
            1.0,
            "says 'N = 7'",
        ),
        (CHEAT, found(Status.unsupported), 1.0, "unsupported"),
        (CHEAT.model_copy(update={"emulator_lacks": True}), found(Status.unsupported), 1.0, ""),
    ],
)
def test_a_cheat_is_accepted_when_it_is_correct_and_gains_or_when_its_verdict_says_too_much(
    cheat: Cheat, first: Verdict, twin_us: float, words: str
) -> None:
    accepted = why_accepted(cheat, Judged(first, found(Status.correct, twin_us)))
    assert words in accepted if words else not accepted
