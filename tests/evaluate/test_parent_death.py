"""Children end with their parent, and only then."""

import subprocess
import sys

import pytest

PROGRAM = (
    "import os; from evoengine.evaluate.parent_death import die_with_parent; die_with_parent({});"
    " print('alive')"
)


@pytest.mark.parametrize(
    ("parent", "output"), [("", "alive\n"), ("os.getppid()", "alive\n"), ("os.getpid()", "")]
)
def test_a_child_ends_at_once_when_its_parent_is_another_process_by_now(parent, output):
    """Whatever the number of the parent: it is 1 for a program that runs alone in a container."""
    command = [sys.executable, "-c", PROGRAM.format(parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == (output, 0 if output else 1), done.stderr
