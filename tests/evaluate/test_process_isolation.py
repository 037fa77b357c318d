"""Each wall around a process that runs what a model wrote holds without the other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evoengine.evaluate.compile import landlock
from tests.cli.prying import CAP_SYS_PTRACE, OPEN, REFUSED

ROOT = Path(__file__).resolve().parents[2]
PRIVILEGES = (
    "from evoengine.evaluate.process_isolation import give_up_privileges; give_up_privileges()"
)
# As root, with all rights but those to measure: CAP_PERFMON or CAP_SYS_ADMIN reads an environment
# past any domain.
DOMAIN = (
    "from evoengine.evaluate.compile.landlock import own_domain; assert own_domain(); from"
    " tests.cli.prying import drop; drop(21, 38)"
)
# An engine that took its environment, and its child behind the walls that it is told.
ENGINE = """
import subprocess, sys
from evoengine.cli.own_environment import take_environment
take_environment()
sys.exit(subprocess.run([sys.executable, "-c", sys.argv[1]]).returncode)
"""
CHILD = """
{walls}
import json, os
from tests.cli import prying
if {regain}: prying.regain()
print(json.dumps(prying.attempts(os.getppid())))
"""


def capabilities() -> int:
    """Those of this process, as bits."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff"))


needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="an ordinary user has no capabilities to give up"
)
needs_tracing = pytest.mark.skipif(
    not capabilities() >> CAP_SYS_PTRACE & 1, reason="needs a root who may trace any process"
)
needs_landlock = pytest.mark.skipif(
    not landlock.has_domains(), reason="this kernel has no Landlock with its second ABI"
)


def output(*arguments: str, cwd: Path = ROOT) -> str:
    environ = {**os.environ, "OPENAI_API_KEY": "sk-canary", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", *arguments],
        cwd=cwd,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def attempts(walls: str, regain: bool = False) -> dict[str, str]:
    found: dict[str, str] = json.loads(output(ENGINE, CHILD.format(walls=walls, regain=regain)))
    return found


@needs_tracing
def test_without_walls_root_gets_in() -> None:
    """What the others refuse is possible: the attempts themselves work."""
    found = attempts("")
    assert {name for name, answer in found.items() if not answer.startswith(OPEN)} == set(), found


@pytest.mark.parametrize("regain", [False, True])
@pytest.mark.parametrize("walls", [PRIVILEGES, pytest.param(DOMAIN, marks=needs_landlock)])
def test_one_wall_is_enough_around_an_engine(walls: str, regain: bool) -> None:
    assert set(attempts(walls, regain).values()) <= REFUSED


@needs_landlock
def test_a_domain_is_a_wall_around_a_process_that_did_not_hide_itself() -> None:
    program = (
        "import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c',"
        " sys.argv[1]]).returncode)"
    )
    found = json.loads(output(program, CHILD.format(walls=DOMAIN, regain=False)))
    assert set(found.values()) <= REFUSED


@needs_landlock
def test_in_a_domain_files_are_moved_between_folders_and_children_are_looked_into(
    tmp_path: Path,
) -> None:
    program = f"""
{DOMAIN}
import os, subprocess, sys
from pathlib import Path
for name in ("a", "b"):
    Path(name).mkdir()
Path("a/x").write_text("text")
os.replace("a/x", "b/x")
os.replace("b", "a/b")
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
print(Path("a/b/x").read_text(), len(Path(f"/proc/{{child.pid}}/environ").read_bytes()) > 0)
child.communicate(b"\\n")
"""
    assert output(program, cwd=tmp_path).split() == ["text", "True"]


@needs_root
def test_what_root_keeps_is_for_folders_of_other_owners_and_programs_bring_nothing_back(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "somebody's"
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, 12345)
    program = (
        PRIVILEGES
        + """
import subprocess, sys
from pathlib import Path
Path(sys.argv[1], "file").write_text("ours")
names = ("CapPrm", "CapEff", "CapInh", "CapAmb", "NoNewPrivs")
status = f"print([line.split()[1] for line in open('/proc/self/status') if line.startswith({names})])"
print(subprocess.run([sys.executable, "-c", status], capture_output=True, text=True, check=True).stdout)
"""
    )
    kept = f"{capabilities() & (1 << 1 | 1 << 3):016x}"  # CAP_DAC_OVERRIDE, CAP_FOWNER
    told: Any = output(program, str(folder)).strip()
    assert told == str(["0" * 16, kept, kept, "0" * 16, "1"])
    assert (folder / "file").read_text() == "ours"
