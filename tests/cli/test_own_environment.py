"""The environment is read once, and is nowhere else afterwards. In processes of their own, because
it cannot be undone.
"""

import json
import os
import subprocess
import sys
from typing import Any

KEY, PASSWORD = "sk-canary", "canary-of-the-proxy"
PROXY = f"http://me:{PASSWORD}@127.0.0.1:9"
PROGRAM = """
import ctypes, json, os, subprocess
from pathlib import Path
from evoengine.cli.own_environment import take_environment

taken = take_environment()
print(json.dumps({
    "taken": {name: taken[name] for name in ("OPENAI_API_KEY", "SECRET_TOKEN", "HTTPS_PROXY", "HOME")},
    "left": dict(os.environ),
    "block": Path("/proc/self/environ").read_bytes().decode(),
    "dumpable": ctypes.CDLL(None).prctl(3, 0, 0, 0, 0),
    "child": subprocess.run(["/usr/bin/env"], capture_output=True, text=True, check=True).stdout,
}))
"""


def found(program: str = PROGRAM, **more: str) -> Any:
    environ = {
        **os.environ,
        "OPENAI_API_KEY": KEY,
        "SECRET_TOKEN": KEY,
        "HTTPS_PROXY": PROXY,
        "PLAIN": "plain",
        "HOME": "/tmp",
        **more,
    }
    done = subprocess.run(
        [sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_take_environment_returns_all_of_it() -> None:
    assert found()["taken"] == {
        "OPENAI_API_KEY": KEY,
        "SECRET_TOKEN": KEY,
        "HTTPS_PROXY": PROXY,
        "HOME": "/tmp",
    }


def test_secrets_are_gone_from_os_environ_and_the_rest_stays() -> None:
    left = found(OPENAI_BASE_URL="http://me:pw@x/v1")["left"]
    assert not {"OPENAI_API_KEY", "OPENAI_BASE_URL", "SECRET_TOKEN"} & set(left)
    assert left["HTTPS_PROXY"] == PROXY and left["PLAIN"] == "plain" and left["HOME"] == "/tmp"


def test_no_secret_is_left_where_the_kernel_shows_the_environment() -> None:
    block = found(KEY_IN_UTF8="s\u00e9-" + KEY)["block"]
    assert KEY not in block and PASSWORD not in block
    assert "PLAIN=plain" in block and "HOME=/tmp" in block


def test_a_program_that_inherits_everything_inherits_no_secret() -> None:
    child = found()["child"]
    assert KEY not in child and PASSWORD not in child and "PLAIN=plain" in child


def test_the_process_can_be_neither_dumped_nor_read() -> None:
    assert found()["dumpable"] == 0


def test_the_command_line_takes_it_before_it_does_anything() -> None:
    program = """
import json, os
from pathlib import Path
from evoengine.cli import main

def answer(arguments, environ):
    block = Path("/proc/self/environ").read_bytes().decode()
    print(json.dumps({"key": environ["OPENAI_API_KEY"], "left": "OPENAI_API_KEY" in os.environ, "block": block}))
    return 0

main.answer = answer
main.main()
"""
    told = found(program)
    assert told["key"] == KEY and not told["left"] and KEY not in told["block"]
