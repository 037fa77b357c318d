"""Appends trials to a database for ever, and says which append has returned; made to be killed.

For each line on stdin a child is forked that goes on where the last one was killed. Its
own writes to stdout are single lines: "pid N", "reply N", "proposal N", "verdict N"; when
it is gone, "dead".
"""

from __future__ import annotations

import os
import sys
from itertools import count
from pathlib import Path

from evoengine.store.sqlite_store import SqliteStore
from tests.store.rows_of_a_run import proposal, reply, verdict


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def append_for_ever(path: Path) -> None:
    say(f"pid {os.getpid()}")
    store = SqliteStore(path, create=True)
    last = store.last_trial()
    for trial in count(0 if last is None else last + 1):
        store.append(reply(trial))
        say(f"reply {trial}")
        store.append(proposal(trial, f"kernel {trial}"))
        say(f"proposal {trial}")
        store.append(verdict(trial), verdict(trial, 1))
        say(f"verdict {trial}")


def main() -> None:
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            append_for_ever(Path(sys.argv[1]))
        os.waitpid(child, 0)
        say("dead")


if __name__ == "__main__":
    main()
