"""Killed at any instant, a run resumes as if nothing had happened."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import IO

import pytest

from evoengine.paths import RunPaths
from evoengine.protocols import ProposalRow, Store, VerdictRow
from evoengine.records import RaceResult
from evoengine.store.memory_store import MemoryStore
from evoengine.store.run_folder import open_run
from tests.sampling import Sampling
from tests.scale_task import load_scale_task
from tests.search.killable import GENERATORS
from tests.search.scripted_generator import (
    CLOSE,
    content_of,
    elites_of,
    make_engine,
    races_of,
    run_engine,
    verdicts_of,
)

ROOT = Path(__file__).parents[2]
KILLS = 50
FEW_KILLS = 12
MOST_STARTS = 400
LONGEST_LIFE_S = 0.12  # a run takes several times as long


def killed_child(
    commands: IO[str], says: IO[str], kind: str, folder: Path, life_s: float | None
) -> bool:
    """Whether a search in `folder` was complete before it was killed, after `life_s`; None: once it
    was complete.
    """
    commands.write(f"{kind} {folder}\n")
    commands.flush()
    pid = int(says.readline().removeprefix("pid "))
    said = [says.readline()] if life_s is None else []
    if life_s is not None:
        time.sleep(life_s)
    os.kill(pid, signal.SIGKILL)
    said += iter(says.readline, "dead\n")
    return "complete\n" in said


@pytest.mark.parametrize("kind", GENERATORS)
def test_kills_at_random_instants_change_nothing(
    tmp_path: Path, sampling: Sampling, kind: str
) -> None:
    """Fifty of them, or twelve in a sample."""
    most = sampling.count(KILLS, FEW_KILLS)
    kills, runs, rng = 0, 0, sampling.rng("kills")
    expected = MemoryStore()
    generator = GENERATORS[kind](0.0)
    engine = make_engine(load_scale_task(tmp_path), expected, generator, rule=CLOSE)
    asyncio.run(run_engine(engine))
    _is_worth_comparing(expected)
    tuned = [row for row in proposals_of(expected) if row.proposal.operator == "tune"]
    assert bool(tuned) == (kind == "tuning")
    command = [sys.executable, "-m", "tests.search.killable"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as zygote:
        assert zygote.stdin and zygote.stdout
        for _ in range(MOST_STARTS):
            folder = tmp_path / str(runs)
            folder.mkdir(exist_ok=True)
            life_s = rng.uniform(0.0, LONGEST_LIFE_S) if kills < most else None
            if killed_child(zygote.stdin, zygote.stdout, kind, folder, life_s):
                _compare(folder, expected)
                runs += 1
                if kills >= most:
                    break
            else:
                kills += 1
        zygote.stdin.close()
    assert kills >= most and runs


def _is_worth_comparing(expected: MemoryStore) -> None:
    """Asserts that the run has some of everything that a kill could change."""
    races = Counter(race.result for _, summary in expected.trials() for race in summary.races)
    assert races.keys() == set(RaceResult), races
    firsts = [expected.get(VerdictRow, trial) for trial, _ in expected.trials()]
    assert {row.promising for row in firsts if row} == {True, False}
    assert any(row.verdict.is_coarse for row in firsts if row)
    untuned = [row for row in proposals_of(expected) if row.proposal.operator != "tune"]
    sources = Counter(row.proposal.source for row in untuned if row.proposal.source)
    assert max(sources.values()) > 1, "copies"


def proposals_of(store: Store) -> list[ProposalRow]:
    return [row for trial, _ in store.trials() if (row := store.get(ProposalRow, trial))]


def _compare(folder: Path, expected: MemoryStore) -> None:
    with open_run(RunPaths(folder / "run"), read_only=True) as run:
        assert content_of(run.store) == content_of(expected)
        assert elites_of(run.store) == elites_of(expected)
        assert races_of(run.store) == races_of(expected)
        assert verdicts_of(run.store) == verdicts_of(expected)
        assert run.store.spent().usage == expected.spent().usage, "no reply is paid for twice"
        lost = run.store.spent().unanswered
        requests = run.store._rows("SELECT count(*) FROM requests")[0][0]
        replies = run.store._rows("SELECT count(*) FROM replies")[0][0]
        assert lost.requests == requests - replies, (
            "each request that a kill cut off counts as possibly paid"
        )
