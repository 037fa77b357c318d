from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from evoengine.digest import digest
from evoengine.paths import RunPaths
from evoengine.protocols import ProposalRow, ReplyRow
from evoengine.records import Proposal
from evoengine.store.run_folder import open_run
from tests.cli.conftest import Call
from tests.scale_task import kernel

SHAPE = ("--in-flight", "2", "--model", "scripted", "--price", "1/1")


class Model(BaseHTTPRequestHandler):
    """Answers with a kernel whose name follows from the prompt."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name = "k" + digest(request["messages"][-1]["content"])[:8]
        message = {"role": "assistant", "content": f"```cuda\n{kernel(name)}```\n"}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        body = {
            "id": "1",
            "object": "chat.completion",
            "created": 1,
            "model": "scripted",
            "choices": choices,
        }
        data = json.dumps(
            {**body, "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Not on the terminal."""


@pytest.fixture
def asking(scripted: Call, monkeypatch: pytest.MonkeyPatch) -> Iterator[Call]:
    """The command line with a key and a model on this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    yield scripted
    server.shutdown()
    thread.join()
    server.server_close()


def sent(run: str, trial: int) -> str:
    with open_run(RunPaths(Path("runs") / run), read_only=True) as folder:
        row = folder.store.get(ReplyRow, trial)
    assert row is not None
    return row.reply.prompt


@pytest.mark.parametrize("trials", [2, 5, 11])
def test_the_next_prompt_of_a_run_is_the_one_that_is_sent(
    asking: Call, task: Path, monkeypatch: pytest.MonkeyPatch, trials: int
) -> None:
    assert asking("run", task, "--run", "short", "--trials", trials, *SHAPE).code == 0
    assert asking("run", task, "--run", "long", "--trials", trials + 1, *SHAPE).code == 0
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL")
    found = asking("prompt", "--run", "short")
    assert found.code == 0, found.err
    assert found.out == sent("long", trials)
    assert "still change" not in found.err and "all 2 trials" in found.err.replace(
        f"all {trials} ", "all 2 "
    )
    facts = json.loads(asking("prompt", "--run", "short", "--json").out)
    assert facts["prompt"] == found.out and facts["trial"] == trials
    assert facts["bytes"] == len(found.out.encode()) and facts["tokens"] == -(-facts["bytes"] // 4)
    assert facts["tokens_are"] == "an estimate: UTF-8 bytes / 4"
    assert f"{facts['tokens']:,} tokens (an estimate: UTF-8 bytes / 4)" in found.err


def test_a_prompt_that_verdicts_may_still_change_says_so(asking: Call, task: Path) -> None:
    asking(
        "run",
        task,
        "--run",
        "one",
        "--trials",
        "5",
        "--in-flight",
        "1",
        "--model",
        "scripted",
        "--price",
        "1/1",
    )
    assert "may still change" not in asking("prompt", "--run", "one").err
    with open_run(RunPaths(Path("runs/one"))) as folder:
        folder.store.append(ProposalRow(5, Proposal(operator="first", source=kernel("late"))))
    found = asking("prompt", "--run", "one")
    assert (
        found.code == 0
        and "other trials before trial 6 are not, and may still change this prompt" in found.err
    )


def test_the_first_prompt_of_a_task_needs_no_key_and_shows_its_kernels(
    call: Call, task: Path
) -> None:
    found = call("prompt", task)
    assert found.code == 0, found.err
    assert "def forward(x)" in found.out and "# Your reply" in found.out
    assert "no kernel is evaluated: the starting kernels have no times" in found.err
    assert "trial 2 of scale: first, tier " in found.err and "emulator:l4 NVIDIA L4" in found.out
    assert re.search(r"## trial 0, scale_a \(fp32, place 1\)", found.out) and re.search(
        r"## trial 1, scale_b \(fp16, place 1\)", found.out
    )
    assert (
        " us"
        not in found.out.partition("# The best solutions so far")[2].partition(
            "# A kernel that works"
        )[0]
    )
    # of the hidden case
    assert "77" not in found.out.partition("## Cases")[2].partition("## What counts")[0]


def test_the_first_prompt_of_a_task_is_that_of_a_run_without_results(
    asking: Call, task: Path
) -> None:
    asking("run", task, "--run", "one", "--trials", "3", *SHAPE)
    facts = json.loads(asking("prompt", task, "--json").out)
    assert facts["trial"] == 2 and facts["operator"] == "first"
    mine, theirs = (
        text.partition("## What counts as fast")[0] for text in (facts["prompt"], sent("one", 2))
    )
    assert mine == theirs
    mine, theirs = (
        text.partition("# What to do now")[2] for text in (facts["prompt"], sent("one", 2))
    )
    assert mine == theirs


@pytest.mark.parametrize(("operator", "parents"), [("first", 0), ("mutate", 1), ("crossover", 2)])
def test_an_operator_can_be_asked_for(call: Call, task: Path, operator: str, parents: int) -> None:
    facts = json.loads(call("prompt", task, "--operator", operator, "--json").out)
    assert facts["operator"] == operator and len(facts["parents"]) == parents


def test_an_operator_without_enough_parents_is_refused(call: Call, task: Path) -> None:
    found = call("prompt", task, "--operator", "crossover", "--kernel", "scale_a.cu")
    assert (
        found.code == 2
        and "crossover needs 2 correct kernels with different sources, there is 1" in found.err
    )


def test_a_reply_without_a_kernel_gives_the_repair_turn(
    call: Call, task: Path, tmp_path: Path
) -> None:
    (tmp_path / "bad.txt").write_text("I would rather talk about the weather.")
    (tmp_path / "good.txt").write_text(f"```cuda\n{kernel('fine')}```\n")
    found = call("prompt", task, "--reply", "bad.txt")
    assert (
        found.code == 0
        and "rather talk about the weather" in found.out
        and "# Your last reply cannot be used" in found.out
    )
    assert found.out.startswith(call("prompt", task).out) and ": repair, tier" in found.err
    found = call("prompt", task, "--reply", "good.txt")
    assert found.code == 2 and "good.txt: this reply has a usable kernel" in found.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "expected either a TASK or --run RUN, got neither"),
        (["layernorm", "--run", "one"], "expected either a TASK or --run RUN, got both"),
        (["--run", "one", "--seed", "3"], "--kernel, --device and --seed are for a TASK"),
        (["layernorm", "--reply", "nowhere"], "--reply: nowhere cannot be read"),
        (["layernorm", "--device", "emulator:x"], "no target 'x'"),
    ],
)
def test_wrong_combinations_of_options_are_refused(
    call: Call, arguments: list[str], words: str
) -> None:
    found = call("prompt", *arguments)
    assert found.code == 2 and words in found.err and found.out == ""


def test_the_target_of_a_device_is_in_the_prompt(call: Call) -> None:
    assert (
        "emulator:a100 NVIDIA A100" in call("prompt", "layernorm", "--device", "emulator:a100").out
    )
