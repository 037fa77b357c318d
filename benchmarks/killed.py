"""A whole run on real kernels, killed again and again, against the same run left alone.

    python -m benchmarks.killed [TASK] [--trials N] [--kills K] [--device DEVICE] [--markdown FILE]

Both are `evoengine run` as a user starts it, with the same seed. One runs to its end. The other
gets SIGKILL at random instants, K times; each time it is waited until no process of it is left, and
`evoengine resume` goes on. At the end every trial of both is compared: proposal, status, errors of
every input set, what checked mode found, modelled times; and the files of the elites. On the
emulator all of it must be the same. On a GPU times are measured and later proposals follow from
them: there only the number of trials is compared.

Ends with 1 where anything differs, or a process outlives its run.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.processes import descendants
from benchmarks.table import Row, machine, table
from evoengine.paths import RunPaths
from evoengine.protocols import ProposalRow, VerdictRow
from evoengine.records import RunInfo
from evoengine.store.run_folder import open_run

SEED = 2510
# a kill comes this long after the run went on, at random between them
LATEST_S, EARLIEST_S = (
    40.0,
    1.0,
)
LINGER_S = 10.0  # what its processes get to see that it has gone


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", nargs="?", default="sdpa_l4", metavar="TASK")
    parser.add_argument("--trials", type=int, default=12, metavar="N")
    parser.add_argument("--kills", type=int, default=8, metavar="K")
    parser.add_argument("--device", default="emulator", metavar="DEVICE")
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write machine and table there as well"
    )
    return parser.parse_args(arguments)


class Run:
    """One run of `evoengine`, in a folder of its own."""

    def __init__(self, name: str, options: argparse.Namespace, runs: Path) -> None:
        self.name = name
        self.paths = RunPaths(runs / name)
        self._options = options
        self._runs = runs

    def start(self) -> subprocess.Popen[bytes]:
        """Begins it, or goes on with it where it was begun."""
        where = ["--runs-dir", str(self._runs)]
        options = self._options
        begin = [
            "run",
            options.task,
            "--run",
            self.name,
            "--trials",
            str(options.trials),
            "--device",
            options.device,
            "--generator",
            "tune",
        ]
        command = [*(["resume", self.name] if self.begun else begin), *where]
        return subprocess.Popen([sys.executable, "-m", "evoengine", *command], stdout=sys.stderr)  # noqa: S603 - ours

    @property
    def begun(self) -> bool:
        """Whether there is something to go on with."""
        with contextlib.suppress(Exception), open_run(self.paths, read_only=True) as run:
            return run.store.get(RunInfo) is not None
        return False

    def trials(self) -> dict[int, dict[str, object]]:
        """What was decided, by trial, without what the clock says."""
        found: dict[int, dict[str, object]] = {}
        with open_run(self.paths, read_only=True) as run:
            for number, _ in run.store.trials():
                proposed = run.store.get(ProposalRow, number)
                judged = [
                    row
                    for part in (0, 1)
                    if (row := run.store.get(VerdictRow, number, part)) is not None
                ]
                verdicts = [_without_clocks(row.verdict.model_dump(mode="json")) for row in judged]
                found[number] = {
                    "proposal": proposed and proposed.proposal.model_dump(mode="json"),
                    "verdicts": verdicts,
                }
        return found

    def elites(self) -> dict[str, bytes]:
        """The sources of the elites, by file."""
        return {
            str(path.relative_to(self.paths.elites)): path.read_bytes()
            for path in sorted(self.paths.elites.rglob("*.cu"))
        }


CLOCKS = ("phases_s",)  # parts of a verdict that no two runs share


def _without_clocks(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_clocks(item) for key, item in value.items() if key not in CLOCKS}
    if isinstance(value, list):
        return [_without_clocks(item) for item in value]
    return value


def killed(run: Run, kills: int) -> Iterator[Row]:
    """Kills it at random instants and goes on; the last time it is left to end."""
    rng = random.Random(SEED)  # noqa: S311 - must repeat
    for number in range(kills):
        process, wait_s = run.start(), rng.uniform(EARLIEST_S, LATEST_S)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(wait_s)
            break
        started = descendants(process.pid)
        process.kill()
        process.wait()
        left = _outliving(started)
        yield {
            "kill": number + 1,
            "after s": wait_s,
            "trials judged": len(_judged(run)),
            "processes started": len(started),
            "processes left": left,
            "good": left == 0,
        }
    process = run.start()
    if process.wait() != 0:
        raise SystemExit(f"run {run.name} ended with {process.returncode}")


def _outliving(started: Sequence[int]) -> int:
    """How many of these processes are left after the time that they get."""
    until = time.monotonic() + LINGER_S
    while (left := sum(map(_lives, started))) and time.monotonic() < until:
        time.sleep(0.1)
    return left


def _lives(process: int) -> bool:
    """Whether it runs: one that has ended may wait for somebody to take note."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in (
            "Z",
            "X",
        )
    return False


def _judged(run: Run) -> list[int]:
    return (
        [number for number, rows in run.trials().items() if rows["verdicts"]] if run.begun else []
    )


def compared(whole: Run, other: Run, modelled: bool) -> Row:
    """The last row: what both came to."""
    left, right = whole.trials(), other.trials()
    differing = (
        [number for number in {*left, *right} if left.get(number) != right.get(number)]
        if modelled
        else []
    )
    same_elites = whole.elites() == other.elites() or not modelled
    good = len(left) == len(right) and not differing and same_elites
    return {
        "kill": "none: both ended",
        "trials judged": len(right),
        "differing trials": len(differing),
        "same elites": same_elites,
        "good": good,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_arguments(arguments)
    where = machine(task=options.task, trials=str(options.trials), device=options.device)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="evoengine-benchmark-") as folder:
        whole, other = (Run(name, options, Path(folder)) for name in ("whole", "killed"))
        rows += killed(other, options.kills)
        if whole.start().wait() != 0:
            raise SystemExit("the run that nobody kills did not end well")
        rows.append(compared(whole, other, modelled=options.device.startswith("emulator")))
    command = " ".join(
        ["python -m benchmarks.killed", *(arguments if arguments is not None else sys.argv[1:])]
    )
    place = ", ".join(f"{name} {value}" for name, value in where.items())
    text = f"`{command}`\n\n{place}.\n\n{table(rows)}\n"
    sys.stdout.write(text)
    if options.markdown is not None:
        options.markdown.write_text(
            f"# A run that is killed again and again\n\n{text}", encoding="utf-8"
        )
    if not all(row["good"] for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
