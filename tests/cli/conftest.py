from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from evoengine.cli.main import answer
from evoengine.digest import digest
from tests.cli.scripted_main import pretend
from tests.scale_task import kernel, write_task


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


Call = Callable[..., Answer]


@pytest.fixture
def task(tmp_path: Path) -> Path:
    return write_task(tmp_path / "tasks")


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Call:
    """The command line in this process, in an empty folder, without a key."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("EVOENGINE_CACHE_DIR", str(tmp_path / "cache"))

    def run(*arguments: object) -> Answer:
        capsys.readouterr()
        code = answer([str(argument) for argument in arguments])
        streams = capsys.readouterr()
        return Answer(code, streams.out, streams.err)

    return run


@pytest.fixture
def scripted(call: Call, monkeypatch: pytest.MonkeyPatch) -> Call:
    """The same with a pretended device."""
    pretend(monkeypatch.setattr)
    return call


@pytest.fixture
def emulated(call: Call, monkeypatch: pytest.MonkeyPatch) -> Call:
    """The same with a pretended emulator."""
    pretend(monkeypatch.setattr, modelled=True)
    return call


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
