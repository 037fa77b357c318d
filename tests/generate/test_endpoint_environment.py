"""The endpoint's client reads the environment that it is given, and no other."""

from __future__ import annotations

import asyncio

import pytest

from evoengine.config import ModelSettings
from evoengine.generate.endpoint import Endpoint
from tests.generate.chat_server import chat_server, completion

GIVEN = {
    "OPENAI_API_KEY": "sk-given",
    "OPENAI_ORG_ID": "org-given",
    "OPENAI_PROJECT_ID": "proj-given",
    "OPENAI_CUSTOM_HEADERS": "X-Gateway: one: two\nno header\nX-Team:kernels",
}


def headers_sent(environ: dict[str, str], address_is_given: bool = True) -> dict[str, str]:
    async def run() -> dict[str, str]:
        async with chat_server(completion("an answer")) as server:
            given = {"OPENAI_BASE_URL": server.url} if address_is_given else {}
            endpoint = Endpoint(
                ModelSettings(model="home-made", base_url=server.url), environ | given
            )
            try:
                await endpoint.ask("a prompt")
            finally:
                await endpoint.close()
            return server.headers[0]

    return asyncio.run(run())


def test_organisation_project_and_headers_come_from_the_environment_that_was_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in GIVEN:
        monkeypatch.delenv(name, raising=False)
    sent = headers_sent(GIVEN)
    assert sent["authorization"] == "Bearer sk-given"
    assert (sent["openai-organization"], sent["openai-project"]) == ("org-given", "proj-given")
    assert (sent["x-gateway"], sent["x-team"]) == ("one: two", "kernels")


def test_headers_that_are_not_set_are_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in GIVEN:
        monkeypatch.delenv(name, raising=False)
    sent = headers_sent({})
    assert not {"openai-organization", "openai-project", "x-gateway"} & set(sent)


def test_an_address_that_only_the_run_names_gets_none_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in GIVEN:
        monkeypatch.delenv(name, raising=False)
    sent = headers_sent(GIVEN, address_is_given=False)
    assert sent["authorization"] == "Bearer no-key-needed"
    assert not {"openai-organization", "openai-project", "x-gateway", "x-team"} & set(sent)
