"""What a run tests: of a large corpus a sample drawn by one seed, with an entry of every kind and
every entry that a change touches, of folders that no change touches a fifth, and of the largest
folder a third where it is touched.

A parametrized test is marked `sampled`; one that walks a corpus itself asks the fixture `sampling`;
one that compares whole tables and takes no time is marked `unsampled`: every run has it.
`--whole` tests every entry, and so does a run that names its tests (`::`, `-k`, `--lf`).
"""

from __future__ import annotations

import os
import random
import secrets
import subprocess
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
VARIABLE = "EVOENGINE_SAMPLE_SEED"
SEEDS = 10**6
EXAMPLES = {"sample": 50, "whole": 150}  # of Hypothesis, by its profile
# What a run of the engine is made of besides its emulator, its judges and its forensics.
OF_RUNS = (
    "evoengine/candidate",
    "evoengine/cli",
    "evoengine/evaluate/device",
    "evoengine/evaluate/scripted",
    "evoengine/generate",
    "evoengine/population",
    "evoengine/report",
    "evoengine/search",
    "evoengine/store",
    "evoengine/task",
    "prompts",
    "seeds",
    "tasks",
)
# Tests of what stands apart, and what they depend on besides themselves: where none of it changed,
# one in APART_ONE_IN is run, at least one of each file.
APART = {
    "tests/benchmarks": ("benchmarks", *OF_RUNS),
    "tests/cli": OF_RUNS,
    "tests/generate": OF_RUNS,
    "tests/search": OF_RUNS,
    "tests/emulator": ("evoengine/emulator",),
    "tests/evaluate/compile": ("evoengine/evaluate/compile", "evoengine/candidate"),
    "tests/evaluate/repair": ("evoengine/evaluate/repair",),
    "tests/evaluate/worker/forensics": ("evoengine/evaluate/worker/forensics",),
}
APART_ONE_IN = 5
# Of thousands of tests that are alike, one in so many where the sources that they depend on changed,
# and all of each file of tests that changed itself.
LARGE = {"tests/evaluate/repair": 3}
OF_ALL = (
    "requirements",
    "pyproject.toml",
    "setup.py",
    "tests/conftest.py",
    "evoengine/records.py",
    "evoengine/protocols.py",
)


def examples(whole: int) -> int:
    """How many examples Hypothesis draws for a test that has `whole` in a run of everything: in a
    sample, a third of them.
    """
    return whole * settings.default.max_examples // EXAMPLES["whole"]


@dataclass(frozen=True)
class Entry:
    """One entry of a corpus; a sample has every kind, and whatever has a changed file."""

    name: Any
    kinds: tuple[Hashable, ...] = ()
    files: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Sampling:
    """How this run samples."""

    seed: int
    whole: bool
    changed: frozenset[Path]
    unknown: str = ""  # why it is not known what changed

    def rng(self, corpus: str) -> random.Random:
        """Random numbers for one corpus: the same ones for the same seed."""
        return random.Random(f"{self.seed} {corpus}")  # noqa: S311 - must repeat

    def count(self, whole: int, few: int) -> int:
        """`few` examples in a sample, `whole` in a run of everything."""
        return whole if self.whole else min(few, whole)

    def draw(self, corpus: str, entries: Iterable[Entry], count: int) -> list[Entry]:
        """At least `count` entries in their order: those that changed, one of each kind, others."""
        entries = list(entries)
        if self.whole or count >= len(entries):
            return entries
        order = list(range(len(entries)))
        self.rng(corpus).shuffle(order)
        taken = {place for place in order if self.changed & set(entries[place].files)}
        kinds = {kind for place in taken for kind in entries[place].kinds}
        for place in order:
            if not kinds.issuperset(entries[place].kinds):
                kinds.update(entries[place].kinds)
                taken.add(place)
        rest = [place for place in order if place not in taken]
        taken.update(rest[: max(0, count - len(taken))])
        return [entries[place] for place in sorted(taken)]

    @property
    def untouched(self) -> list[str]:
        """The folders of tests that stand apart and that no change touches, as far as is known."""
        if self.unknown:
            return []
        return [
            folder
            for folder, sources in APART.items()
            if not any(self._touches(name) for name in (folder, *sources, *OF_ALL))
        ]

    def _touches(self, name: str) -> bool:
        place = ROOT / name
        return any(place == path or place in path.parents for path in self.changed)

    @property
    def described(self) -> str:
        if self.whole:
            return f"all entries of every corpus; random examples by seed {self.seed}"
        known = self.unknown or f"with what {len(self.changed)} changed files touch"
        return f"seed {self.seed}, {known}; {VARIABLE}={self.seed} repeats it, --whole tests all"


def changed_files(root: Path = ROOT) -> frozenset[Path]:
    """The files that differ from the commit where this branch left the main one or, on that one,
    from the commit before; raises OSError and CalledProcessError where git cannot say.
    """
    top = Path(_git(root, "rev-parse", "--show-toplevel").strip())
    if top.resolve() != root.resolve():
        raise FileNotFoundError(f"{root} is no git checkout")
    head, base = _commit(root, "HEAD"), ""
    for main in ("origin/HEAD", "origin/main", "main"):
        if _commit(root, main):
            base = _git(root, "merge-base", "HEAD", main).strip()
            break
    if base in ("", head):
        base = _commit(root, "HEAD^") or head
    differing = _git(root, "diff", "--name-only", "-z", base)
    untracked = _git(root, "ls-files", "--others", "--exclude-standard", "-z")
    return frozenset(root / name for name in (differing + untracked).split("\0") if name)


def _commit(root: Path, name: str) -> str:
    """The commit of that name; empty if there is none, as in a shallow clone."""
    command = ["git", "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"]
    found = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return found.stdout.strip()


def _git(root: Path, *arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout


SAMPLING = pytest.StashKey[Sampling]()
LEFT_OUT = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("sampling of large corpora")
    group.addoption("--whole", action="store_true", help="test every entry of every corpus")
    group.addoption("--sample-seed", type=int, help=f"draw this sample (also: {VARIABLE})")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "sampled(argument, one_in, kind=None, files=None): a run tests a sample of the values of"
        " `argument`, with one of each kind(value) and all with a changed one of files(value)",
    )
    config.addinivalue_line("markers", "unsampled: every run has this test")
    given = getattr(config, "workerinput", {}).get("sampling")
    if given:  # a process beside others: all of them must collect the same tests
        seed, whole, changed, unknown = given
        drawn = Sampling(seed, whole, frozenset(map(Path, changed)), unknown)
    else:
        drawn = _drawn(config)
    config.stash[SAMPLING] = drawn
    config.stash[LEFT_OUT] = 0


def _drawn(config: pytest.Config) -> Sampling:
    seed, text = config.getoption("sample_seed"), os.environ.get(VARIABLE)
    if seed is None and text:
        if not text.isdecimal():
            raise pytest.UsageError(f"{VARIABLE} must be a whole number, got {text!r}")
        seed = int(text)
    seed = secrets.randbelow(SEEDS) if seed is None else seed
    whole: bool = config.getoption("whole")
    try:
        return Sampling(seed, whole, changed_files())
    except (OSError, subprocess.CalledProcessError) as error:
        return Sampling(seed, whole, frozenset(), f"not knowing what changed ({error})")


def pytest_report_header(config: pytest.Config) -> str:
    return f"sample: {config.stash[SAMPLING].described}"


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Gives a process of pytest-xdist the sample of the one that started it."""
    drawn = node.config.stash[SAMPLING]
    changed = sorted(map(str, drawn.changed))
    node.workerinput["sampling"] = (drawn.seed, drawn.whole, changed, drawn.unknown)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    named = config.getoption("keyword") or any("::" in text for text in config.args)
    if config.stash[SAMPLING].whole or named or config.getoption("lf", False):
        return
    left_out = {item for group in _groups(items) for item in _left_out(config, group)}
    left_out |= set(_left_out_apart(config, [item for item in items if item not in left_out]))
    if left_out:
        config.stash[LEFT_OUT] = len(left_out)
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]


def _groups(items: Sequence[pytest.Item]) -> list[list[pytest.Function]]:
    """The items of each test that is marked, together."""
    groups: dict[str, list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("sampled"):
            groups.setdefault(f"{item.path} {item.originalname}", []).append(item)
    return list(groups.values())


def _left_out(config: pytest.Config, items: list[pytest.Function]) -> Iterable[pytest.Function]:
    argument, one_in, kind, files = _marked(items[0])
    # a value that comes several times, beside values of other arguments, is one object
    values = [item.callspec.params[argument] for item in items]
    entries = {id(value): Entry(id(value), (kind(value),), tuple(files(value))) for value in values}
    corpus = items[0].nodeid.partition("[")[0]
    count = -(-len(entries) // one_in)
    drawn = config.stash[SAMPLING].draw(corpus, entries.values(), count)
    kept = {entry.name for entry in drawn}
    return (item for item, value in zip(items, values, strict=True) if id(value) not in kept)


def _left_out_apart(config: pytest.Config, items: list[pytest.Item]) -> Iterable[pytest.Item]:
    """Of the items in folders that stand apart and that no change touches, and in large ones, those
    left out.
    """
    drawn = config.stash[SAMPLING]
    for folder, one_in in (LARGE | dict.fromkeys(drawn.untouched, APART_ONE_IN)).items():
        here = [
            item
            for item in items
            if (ROOT / folder) in item.path.parents and not item.get_closest_marker("unsampled")
        ]
        entries = [Entry(item, (item.path,), (item.path,)) for item in here]
        kept = {entry.name for entry in drawn.draw(folder, entries, -(-len(here) // one_in))}
        yield from (item for item in here if item not in kept)


def _marked(
    item: pytest.Function,
) -> tuple[str, int, Callable[[Any], Hashable], Callable[[Any], Iterable[Path]]]:
    mark = item.get_closest_marker("sampled")
    assert mark

    def read(
        argument: str,
        one_in: int,
        kind: Callable[[Any], Hashable] = lambda _: None,
        files: Callable[[Any], Iterable[Path]] = lambda _: (),
    ) -> tuple[str, int, Callable[[Any], Hashable], Callable[[Any], Iterable[Path]]]:
        return argument, one_in, kind, files

    return read(*mark.args, **mark.kwargs)


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["left_out"] = session.config.stash[LEFT_OUT]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Takes the count from a process of pytest-xdist; each has collected the same."""
    counted = getattr(node, "workeroutput", {}).get("left_out", 0)  # none if it was killed
    node.config.stash[LEFT_OUT] = max(node.config.stash[LEFT_OUT], counted)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if count := config.stash[LEFT_OUT]:
        described = config.stash[SAMPLING].described
        terminalreporter.write_line(f"{count} tests left out by the sample: {described}")


@pytest.fixture(scope="session")
def sampling(request: pytest.FixtureRequest) -> Sampling:
    """How this run samples, for a test that walks a corpus itself."""
    return request.config.stash[SAMPLING]
