"""The address that requests go to, and whether the key is sent there.

The environment decides both. An address that is stored with a run gets no key unless the
environment names it too, because a run folder may come from someone else.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from evoengine.errors import GeneratorError

DEFAULT_URL = "https://api.openai.com/v1"
NO_KEY = "no-key-needed"  # local endpoints need no key, but the openai package does


@dataclass(frozen=True)
class EndpointAddress:
    """Where requests go, and what is sent with them."""

    url: str
    key: str
    shown: str  # the address in messages, without its secrets
    notice: str  # for the user; "" where there is none
    environ: Mapping[str, str]  # names further headers; empty where it does not name the address


def address_of(stored: str | None, environ: Mapping[str, str]) -> EndpointAddress:
    """The address of a run's requests; `stored` is the one that it began with, None for OpenAI's.

    The environment decides. Where it names no address, requests go to a stored one without a key.
    Raises GeneratorError where nothing could be sent.
    """
    given = environ.get("OPENAI_BASE_URL") or None
    if given is None and stored is not None:
        return _stored_target(shown_address(stored), environ)
    url, begun = given or DEFAULT_URL, shown_address(stored or DEFAULT_URL)
    shown = shown_address(url)
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_CUSTOM_HEADERS"):
        if not environ.get(name, "").isascii():
            raise GeneratorError(
                f"{name} holds characters that no header can carry; expected ASCII"
            )
    notice = (
        ""
        if shown == begun
        else (
            f"the run was begun with the model endpoint at {begun}; OPENAI_BASE_URL names {shown},"
            " which is asked"
        )
    )
    return EndpointAddress(url, _key(environ, needed=url == DEFAULT_URL), shown, notice, environ)


def secrets_of(target: EndpointAddress) -> tuple[str, ...]:
    """The secrets sent to `target`, which an answer may repeat: key, password and query, in every
    form in which they are sent.
    """
    parts = urlsplit(target.url)
    found = {target.key} - {NO_KEY}
    if parts.password:
        plain = f"{unquote(parts.username or '')}:{unquote(parts.password)}"
        found |= {
            parts.password,
            unquote(parts.password),
            base64.b64encode(plain.encode()).decode(),
        }
    found |= {form for _, value in parse_qsl(parts.query) for form in (value, quote(value))}
    return tuple(sorted((item for item in found if item), key=len, reverse=True))


def _stored_target(address: str, environ: Mapping[str, str]) -> EndpointAddress:
    """The address stored with a run, without the key: the run may come from someone else."""
    if not environ.get("OPENAI_API_KEY", "").strip():
        return EndpointAddress(address, NO_KEY, address, "", {})
    notice = (
        f"the run was begun with the model endpoint at {address}; OPENAI_BASE_URL names none here,"
        f" so it is asked without a key: set OPENAI_BASE_URL={address} to send it OPENAI_API_KEY,"
        " or set another address to ask that one"
    )
    return EndpointAddress(address, NO_KEY, address, notice, {})


def _key(environ: Mapping[str, str], needed: bool) -> str:
    key = environ.get("OPENAI_API_KEY", "").strip()
    if not key and needed:
        raise GeneratorError(
            "no key: set OPENAI_API_KEY, or OPENAI_BASE_URL for an endpoint that needs none"
        )
    # it could not be sent, and the complaint would show it
    if not (key.isascii() and key.isprintable()):
        raise GeneratorError("OPENAI_API_KEY holds characters that no key has; set it again")
    return key or NO_KEY


def shown_address(url: str) -> str:
    """`url` without user, password and query, for messages and stores; raises GeneratorError for
    text that is not an address.
    """
    if not _is_address(url):
        found = re.sub(r"//.*@", "//", url)
        raise GeneratorError(
            "the address of a model endpoint must begin with http:// or https:// and name a host,"
            f" got {found!r}"
        )
    return re.sub(r"//[^/]*@", "//", url).partition("?")[0].rstrip("/")


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return (
            url.isascii()
            and url.isprintable()
            and parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and parts.port != 0
        )
    except ValueError:  # the port is not a number
        return False
