"""Requests to one model behind an OpenAI-compatible address.

Everything that the openai package raises is translated here: into Transient where
another attempt may succeed, into RequestRefused where another prompt may, else into
GeneratorError. No text that leaves this file holds the key.
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import openai

from evoengine.config import ModelSettings
from evoengine.errors import GeneratorError
from evoengine.generate.circuit_breaker import RequestRefused, Transient
from evoengine.generate.endpoint_address import NO_KEY, address_of, secrets_of

CONNECT_TIMEOUT_S = 15.0  # a round trip around the world takes 0.3 s; the rest is for lost packets
# characters, in code: endpoints that need no key are given x, EMPTY or none as one, and a query may
# be v=1, which kernels hold, too; keys that are worth something have 20 and more
SHORTEST_SECRET = 8
MAX_QUOTED = 300  # characters of the endpoint's message in ours
# per request: a thousand times the longest context there is; a larger count is ignored
MOST_TOKENS = 10**9
# other 5xx come from a gateway, which may have lost a finished answer
UNPAID_SERVER_ERRORS = (500, 501, 503, 529)

# the prompt is too long or not accepted; another prompt may be
REFUSES_THE_REQUEST = (400, 413, 422)

# By name, because two generations of httpx are in use below the openai package.
NOT_SENT = (
    "ConnectError",
    "ConnectTimeout",
    "UnsupportedProtocol",
    "ProxyError",
    "InvalidURL",
    "LocalProtocolError",
)


@dataclass(frozen=True)
class EndpointAnswer:
    """The endpoint's answer; its tokens are None where it does not count them."""

    text: str
    finish_reason: str
    prompt_tokens: int | None
    completion_tokens: int | None


class Endpoint:
    """Sends each prompt as one chat completion."""

    def __init__(self, settings: ModelSettings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        target = address_of(settings.base_url, environ)
        self._key = target.key
        self._secrets = secrets_of(target)
        self.address = self._clean(target.shown, SHORTEST_SECRET)
        self.notice = target.notice
        # all given, because the package would look in os.environ, where no secret is left
        self._client = openai.AsyncOpenAI(
            api_key=self._key,
            base_url=target.url,
            organization=target.environ.get("OPENAI_ORG_ID"),
            project=target.environ.get("OPENAI_PROJECT_ID"),
            default_headers=_headers(target.environ.get("OPENAI_CUSTOM_HEADERS", "")),
            max_retries=0,
            timeout=_timeout(settings.timeout_s),
            http_client=openai.DefaultAsyncHttpxClient(event_hooks={"response": [_read_as_utf8]}),
        )
        # newer OpenAI models refuse it and name max_completion_tokens
        self._tokens_name = "max_tokens"
        self._reached = False

    async def ask(self, prompt: str) -> EndpointAnswer:
        """The answer to `prompt`; raises Transient, RequestRefused or GeneratorError."""
        try:
            # httpx limits the time between two bytes, not the whole request
            async with asyncio.timeout(self._settings.timeout_s):
                text = await self._send(prompt)
        except TimeoutError:
            raise self._stalled() from None
        except openai.APIStatusError as error:
            self._reached = True
            raise self._translated(error) from None
        except openai.APIConnectionError as error:
            raise self._disconnected(error) from None
        self._reached = True
        return self._answer(text)

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.close()

    async def _send(self, prompt: str) -> str:
        options: dict[str, Any] = (
            {}
            if self._settings.temperature is None
            else {"temperature": self._settings.temperature}
        )
        name = self._tokens_name
        options[name] = self._settings.max_tokens
        try:
            response = await self._client.chat.completions.with_raw_response.create(
                model=self._settings.model,
                messages=[{"role": "user", "content": prompt}],
                **options,
            )
        except openai.BadRequestError as error:
            if name != "max_tokens" or "max_completion_tokens" not in str(error):
                raise
            self._tokens_name = "max_completion_tokens"
            return await self._send(prompt)
        # The body is parsed here, because the package does not check its shape, and its versions
        # differ in what they raise for a wrong one.
        return str(response.text)

    def _answer(self, body: str) -> EndpointAnswer:
        try:
            data = json.loads(body.removeprefix("\ufeff"))
        except (ValueError, RecursionError):
            raise Transient(
                f"{self.address} sent something that is not JSON: {self._quoted(body)}",
                maybe_paid=True,
            ) from None
        match data:
            case {"choices": [{"message": dict(message), **choice}, *_]}:
                usage = data.get("usage")
                return EndpointAnswer(
                    text=self._clean(_content(message), SHORTEST_SECRET),
                    finish_reason=self._clean(str(choice.get("finish_reason") or ""))[:MAX_QUOTED],
                    prompt_tokens=_count(usage, "prompt_tokens"),
                    completion_tokens=_count(usage, "completion_tokens"),
                )
        raise Transient(
            f"{self.address} sent an answer without choices: {self._quoted(body)}", maybe_paid=True
        )

    def _translated(self, error: openai.APIStatusError) -> Exception:
        status = error.status_code
        words = self._words(error)
        if status == 429 and "insufficient_quota" not in str(error.body):
            # without a wait, this request itself may be too large
            wait_s = _retry_after_s(error.response.headers)
            return Transient(
                f"{self.address} limits the rate (429){words}",
                wait_s,
                rate_limited=wait_s is not None,
            )
        # 3xx that nothing followed: a gateway's, on the way to the endpoint
        if status in (408, 409, 425) or status >= 500 or status < 400:
            maybe_paid = status not in UNPAID_SERVER_ERRORS
            return Transient(
                f"{self.address} failed ({status}){words}",
                _retry_after_s(error.response.headers),
                maybe_paid,
            )
        refusal = self._refusal(status, words)
        return RequestRefused(refusal) if status in REFUSES_THE_REQUEST else GeneratorError(refusal)

    def _refusal(self, status: int, words: str) -> str:
        model = self._settings.model
        if status == 401 and self._key == NO_KEY:
            return (
                f"{self.address} needs a key (401): set OPENAI_API_KEY and"
                f" OPENAI_BASE_URL={self.address}"
            )
        if status == 401:  # not quoted: endpoints repeat parts of the key
            return (
                f"{self.address} refused the key (401): check OPENAI_API_KEY and that it belongs to"
                " this endpoint"
            )
        if status == 403:
            return f"{self.address} refused access to model {model!r} (403){words}"
        if status == 404:
            return (
                f"no model {model!r} at {self.address}, or no endpoint at that address, which"
                f" usually ends in /v1 (404){words}"
            )
        if status == 429:
            return f"the quota at {self.address} is spent (429){words}"
        return f"{self.address} refused the request for model {model!r} ({status}){words}"

    def _disconnected(self, error: openai.APIConnectionError) -> Exception:
        cause = self._quoted(str(error.__cause__ or "") or str(error))
        if not _never_connected(error):
            if isinstance(error, openai.APITimeoutError):
                return self._stalled()
            self._reached = True
            return Transient(f"{self.address} cut the connection: {cause}", maybe_paid=True)
        if self._reached:
            return Transient(f"{self.address} cannot be reached: {cause}")
        return GeneratorError(
            f"no model endpoint at {self.address}: {cause}; check OPENAI_BASE_URL and that the"
            " server runs"
        )

    def _stalled(self) -> Transient:
        self._reached = True
        return Transient(
            f"{self.address} gave no answer within {self._settings.timeout_s:g} s", maybe_paid=True
        )

    def _words(self, error: openai.APIStatusError) -> str:
        """The endpoint's own explanation, to be put after a colon; "" where it gives none."""
        body = error.body
        text = body.get("message") if isinstance(body, dict) else body
        return f": {self._quoted(text)}" if isinstance(text, str) and text.strip() else ""

    def _quoted(self, text: str) -> str:
        return self._clean(" ".join(text.split()))[:MAX_QUOTED] or "nothing"

    def _clean(self, text: str, shortest: int = 1) -> str:
        """`text` without secrets, but for those with fewer characters than `shortest`, and without
        lone surrogates, which no database can store.
        """
        text = text.encode("utf-8", "replace").decode()
        for secret in self._secrets:
            if len(secret) >= shortest:
                text = text.replace(secret, "***")
        return text


def _headers(lines: str) -> dict[str, str]:
    """Extra headers of every request, for a gateway, from lines of `name: value`, as the openai
    package reads them.
    """
    parted = (line.partition(":") for line in lines.splitlines())
    return {name.strip(): value.strip() for name, colon, value in parted if colon}


async def _read_as_utf8(response: Any) -> None:
    """Has an answer read as UTF-8, which JSON always is (RFC 8259, section 8.1): the charset of a
    header may name any codec of Python, such as zip, and reading would fail in as many ways.
    """
    response.encoding = "utf-8"


def _timeout(timeout_s: float) -> openai.Timeout:
    """The time limit of each step of a request; a shorter one for connecting."""
    return openai.Timeout(timeout_s, connect=min(timeout_s, CONNECT_TIMEOUT_S))


def _never_connected(error: BaseException) -> bool:
    """Whether the request was never sent."""
    return type(error.__cause__).__name__ in NOT_SENT


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """The wait that the endpoint asks for: milliseconds, seconds, or a date (RFC 9110, section
    10.2.3). None where it asks for none, or for one without end.
    """
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            wait_s = float(headers[name]) / scale
        except (KeyError, ValueError):
            continue
        return max(0.0, wait_s) if math.isfinite(wait_s) else None
    try:
        return max(
            0.0,
            email.utils.parsedate_to_datetime(headers.get("retry-after", "")).timestamp()
            - time.time(),
        )
    except (TypeError, ValueError, OverflowError):  # a year of twenty digits overflows
        return None


def _content(message: Mapping[str, Any]) -> str:
    """The text of a message, which some endpoints send in parts; "" where there is none, as in a
    refusal.
    """
    match message.get("content"):
        case str(text):
            return text
        case list(parts):
            return "".join(
                part["text"]
                for part in parts
                if isinstance(part, dict) and isinstance(part.get("text"), str)
            )
    return ""


def _count(usage: Any, name: str) -> int | None:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else None
