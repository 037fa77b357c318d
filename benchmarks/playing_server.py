"""A model endpoint on this machine that answers chat completions with given replies, in turn."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BYTES_PER_TOKEN = 4  # roughly, of code; the counts are only shown


class PlayingServer(ThreadingHTTPServer):
    """Gives `replies` in turn, from the first again after the last, each after `reply_s`."""

    def __init__(self, replies: Sequence[str], reply_s: float) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.reply_s = reply_s
        self.asked = 0
        self._replies = itertools.cycle(replies)
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """What OPENAI_BASE_URL must be."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def next_reply(self) -> str:
        """The text of the next reply."""
        with self._lock:
            self.asked += 1
            return next(self._replies)


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, PlayingServer)
        prompt = self.rfile.read(int(self.headers["Content-Length"]))
        reply = self.server.next_reply()
        time.sleep(self.server.reply_s)
        body = json.dumps(_completion(reply, len(prompt))).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Not on the terminal."""


def _completion(reply: str, prompt_bytes: int) -> dict[str, object]:
    message = {"role": "assistant", "content": reply}
    usage = {
        "prompt_tokens": prompt_bytes // BYTES_PER_TOKEN,
        "completion_tokens": len(reply) // BYTES_PER_TOKEN,
    }
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "playing",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {**usage, "total_tokens": sum(usage.values())},
    }


@contextmanager
def playing_server(replies: Sequence[str], reply_s: float = 0.0) -> Iterator[PlayingServer]:
    """A server that runs until the end of the block."""
    server = PlayingServer(replies, reply_s)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
