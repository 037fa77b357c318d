"""Kill -9 at any instant: every row whose append returned is there, whole."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

from evoengine.protocols import ProposalRow, ReplyRow, VerdictRow
from evoengine.store.sqlite_store import SqliteStore
from tests.store.rows_of_a_run import proposal, reply, verdict

KILLS = 25
LONGEST_LIFE_S = 0.06  # from a kill within the opening to a kill after a few dozen commits


def killed_child(commands: IO[str], says: IO[str], life_s: float) -> set[tuple[str, int]]:
    """What one child said it had appended before it was killed."""
    commands.write("go\n")
    commands.flush()
    pid = int(says.readline().removeprefix("pid "))
    time.sleep(life_s)
    os.kill(pid, signal.SIGKILL)
    acknowledged = set()
    for line in iter(says.readline, "dead\n"):
        kind, trial = line.split()
        acknowledged.add((kind, int(trial)))
    return acknowledged


def check(path: Path, acknowledged: set[tuple[str, int]]) -> None:
    with SqliteStore(path, create=True) as store:
        assert store._rows("PRAGMA integrity_check") == [("ok",)]
        assert store._rows("PRAGMA foreign_key_check") == []
        for kind, trial in acknowledged:
            if kind == "reply":
                assert store.get(ReplyRow, trial) == reply(trial)
            elif kind == "proposal":
                assert store.get(ProposalRow, trial) == proposal(trial, f"kernel {trial}")
            else:
                assert store.get(VerdictRow, trial, 0) == verdict(trial)
                assert store.get(VerdictRow, trial, 1) == verdict(trial, 1)
        for _, summary in store.trials():
            assert (summary.outcome is None) == (summary.verified is None)  # one transaction


def test_killed_at_random_instants_no_acknowledged_row_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    chance = random.Random(0)  # noqa: S311
    acknowledged: set[tuple[str, int]] = set()
    command, root = (
        [sys.executable, "-m", "tests.store.appender", str(path)],
        Path(__file__).parents[2],
    )
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root
    ) as zygote:
        assert zygote.stdin and zygote.stdout
        for _ in range(KILLS):
            fresh = killed_child(zygote.stdin, zygote.stdout, chance.uniform(0, LONGEST_LIFE_S))
            check(path, fresh)
            acknowledged |= fresh
        zygote.stdin.close()
    check(path, acknowledged)
    assert acknowledged
