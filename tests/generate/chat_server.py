"""A real HTTP server on 127.0.0.1 for chat completions, which follows a script.

Each request takes the next step of the script; the last step is repeated. A step is the
bytes to send, or a coroutine function that is given the writer.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

Step = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]


def http(status: int, body: str, content_type: str = "application/json", **headers: str) -> bytes:
    """A whole response; header names are written with _ for -."""
    data = body.encode()
    lines = [
        f"HTTP/1.1 {status} Scripted",
        f"Content-Type: {content_type}",
        f"Content-Length: {len(data)}",
        "Connection: close",
    ]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + data


def completion(
    content: Any, finish_reason: str = "stop", usage: dict[str, int] | None = None
) -> bytes:
    """A chat completion with one choice."""
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content},
                "finish_reason": finish_reason,
            }
        ],
    }
    if usage != {}:
        body["usage"] = usage or {
            "prompt_tokens": 1000,
            "completion_tokens": 500,
            "total_tokens": 1500,
        }
    return http(200, json.dumps(body))


def error(status: int, message: str, code: str | None = None, **headers: str) -> bytes:
    """An error as OpenAI words it."""
    return http(
        status,
        json.dumps({"error": {"message": message, "type": "scripted", "code": code}}),
        **headers,
    )


async def stall(writer: asyncio.StreamWriter) -> None:
    """Nothing, for much longer than any client in the tests waits."""
    await asyncio.sleep(30)


def dripping(response: bytes) -> Step:
    """One byte every 20 ms: never silent for long, never done in time."""

    async def send(writer: asyncio.StreamWriter) -> None:
        for byte in response:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.02)

    return send


def cut(response: bytes) -> Step:
    """The first half of `response`, then the connection is gone."""

    async def send(writer: asyncio.StreamWriter) -> None:
        writer.write(response[: len(response) - 40])
        await writer.drain()
        writer.transport.abort()

    return send


@dataclass
class ChatServer:
    """A running server, with the requests it got and how many were open at once."""

    script: list[Step]
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    open: int = 0
    most_open: int = 0
    port: int = 0
    handlers: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self.handlers.add(task)
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            await self._answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client has gone, or the test is over
        finally:
            self.open -= 1
            self.handlers.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head.split("\r\n")[1:])
        }
        body = await reader.readexactly(int(headers["content-length"]))
        number = len(self.requests)
        self.requests.append(json.loads(body))
        self.headers.append(headers)
        self.keys.append(headers.get("authorization", "").removeprefix("Bearer "))
        step = self.script[min(number, len(self.script) - 1)]
        if isinstance(step, bytes):
            writer.write(step)
        else:
            await step(writer)
        await writer.drain()


@asynccontextmanager
async def chat_server(*script: Step) -> AsyncIterator[ChatServer]:
    """A server that follows `script`, on a free port."""
    state = ChatServer(list(script))
    server = await asyncio.start_server(state.serve, "127.0.0.1", 0)
    state.port = server.sockets[0].getsockname()[1]
    try:
        yield state
    finally:
        server.close()
        for task in list(state.handlers):
            task.cancel()
        await asyncio.gather(*state.handlers, return_exceptions=True)
