"""ModelGenerator against a real HTTP server that keeps the protocol or breaks it."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from evoengine.config import ModelSettings
from evoengine.errors import EvoError, GeneratorError, UsageError
from evoengine.generate import parsed_reply
from evoengine.generate.endpoint_address import address_of
from evoengine.generate.ledger import MESSAGE_TOKENS, Ledger
from evoengine.generate.llm import ModelGenerator, check_settings
from evoengine.protocols import Exhausted, Spending
from evoengine.records import EndKind, Proposal, Reply, Unanswered, Usage
from tests.generate.chat_server import (
    ChatServer,
    Step,
    chat_server,
    completion,
    cut,
    dripping,
    error,
    http,
    stall,
)
from tests.generate.memory_replies import MemoryReplies
from tests.generate.row_sums_task import evaluated, kernel, request

KEY = "sk-secret-4711-do-not-show"
GOOD = completion(
    f"Bound by bytes.\n\n```cuda\n{kernel()}```\n\n## Thoughts\n- fewer barriers\n- wider loads\n"
)
BAD = completion("I would rather talk about the weather.")
T = TypeVar("T")


class Scene:
    """One generator on one server, with a clock that does not wait."""

    def __init__(
        self,
        server: ChatServer,
        task_path: Path,
        spent: Usage,
        unanswered: Unanswered = Unanswered(),
        **settings: Any,
    ) -> None:
        self.server = server
        self.task_path = task_path
        self.slept: list[float] = []
        self.notices: list[str] = []
        self.generator = ModelGenerator(
            ModelSettings(
                **{
                    "model": "scripted",
                    "base_url": server.url,
                    "timeout_s": 5.0,
                    "retries": 3,
                    **settings,
                }
            ),
            task_path,
            before=Spending(usage=spent, unanswered=unanswered),
            notify=self.notices.append,
            environ={"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url},
            sleep=self._sleep,
            jitter=random.Random(0),  # noqa: S311
            clock=lambda: time.monotonic() + sum(self.slept),
        )

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)

    async def propose(self, replies: MemoryReplies | None = None, **kwargs: Any) -> Proposal:
        return await self.generator.propose(
            request(self.task_path, **kwargs), replies or MemoryReplies()
        )


def play(
    task_path: Path,
    *script: Step,
    act: Callable[[Scene], Awaitable[T]],
    spent: Usage = Usage(),
    **settings: Any,
) -> tuple[T, Scene]:
    """What `act` returns on a scene whose server follows `script`."""

    async def run() -> tuple[T, Scene]:
        async with chat_server(*script) as server:
            scene = Scene(server, task_path, spent, **settings)
            try:
                return await act(scene), scene
            finally:
                await scene.generator.close()

    return asyncio.run(run())


async def failing(scene: Scene) -> EvoError:
    with pytest.raises(EvoError) as caught:
        await scene.propose()
    return caught.value


def test_a_good_reply_becomes_a_proposal_with_its_insight(task_path: Path) -> None:
    proposal, scene = play(task_path, GOOD, act=Scene.propose)
    assert proposal.source == kernel()
    assert (proposal.operator, proposal.problem, proposal.label) == ("first", "", "plain")
    assert proposal.insight == "fewer barriers\nwider loads"
    assert len(scene.server.requests) == 1
    assert scene.server.requests[0]["max_tokens"] == 16384


def test_the_reply_is_committed_before_it_is_read(
    task_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = MemoryReplies()
    read = parsed_reply.read

    def noted(*arguments: Any) -> parsed_reply.ParsedReply:
        replies.events.append("read")
        return read(*arguments)

    monkeypatch.setattr(parsed_reply, "read", noted)
    play(task_path, BAD, GOOD, act=lambda scene: scene.propose(replies))
    assert replies.events == ["ask 0", "commit 0", "read", "ask 1", "commit 1", "read"]


def test_a_stored_reply_is_used_and_nothing_is_asked(task_path: Path) -> None:
    replies = MemoryReplies({0: Reply(model="m", prompt="p", text=f"```\n{kernel('stored')}```")})
    proposal, scene = play(task_path, GOOD, act=lambda scene: scene.propose(replies))
    assert (proposal.label, len(scene.server.requests)) == ("stored", 0)


def test_a_stored_bad_reply_costs_only_the_repair_turn(task_path: Path) -> None:
    replies = MemoryReplies({0: Reply(model="m", prompt="p", text="no kernel here")})
    proposal, scene = play(task_path, GOOD, act=lambda scene: scene.propose(replies))
    assert (proposal.operator, proposal.source, len(scene.server.requests)) == (
        "repair",
        kernel(),
        1,
    )


def test_a_reply_without_kernel_gets_one_repair_turn_with_the_reason(task_path: Path) -> None:
    proposal, scene = play(task_path, BAD, act=Scene.propose)
    assert proposal.source is None
    assert "holds no code block" in proposal.problem
    first, second = (sent["messages"][0]["content"] for sent in scene.server.requests)
    assert second.startswith(first)
    assert "I would rather talk about the weather." in second
    assert "the reply holds no code block" in second


@pytest.mark.parametrize("content", ["", None, [], [{"type": "refusal", "refusal": "no"}]])
def test_an_empty_content_is_a_reply_that_is_kept_and_repaired(
    task_path: Path, content: Any
) -> None:
    replies = MemoryReplies()
    proposal, scene = play(
        task_path, completion(content), GOOD, act=lambda scene: scene.propose(replies)
    )
    assert proposal.source == kernel()
    assert (replies.stored[0].text, replies.stored[0].usage.prompt_tokens) == ("", 1000)
    assert "the reply is empty" in scene.server.requests[1]["messages"][0]["content"]


def test_content_in_parts_is_joined(task_path: Path) -> None:
    parts = [{"type": "text", "text": "```\n"}, {"type": "text", "text": kernel() + "```"}]
    proposal, _ = play(task_path, completion(parts), act=Scene.propose)
    assert proposal.source == kernel()


def test_a_reply_cut_at_its_length_is_called_so_in_the_repair_prompt(task_path: Path) -> None:
    half = completion(f"```cuda\n{kernel()[:150]}", finish_reason="length")
    proposal, scene = play(task_path, half, GOOD, act=Scene.propose)
    assert proposal.source == kernel()
    again = scene.server.requests[1]["messages"][0]["content"]
    assert "the reply was cut after 500 tokens" in again
    assert "Leave out all explanation this time" in again


TRANSIENT = {
    "429": error(429, "slow down"),
    "500": error(500, "boom"),
    "502 as a page": http(502, "<html>bad gateway</html>", "text/html"),
    "503": error(503, "overloaded"),
    "cut connection": cut(GOOD),
    "truncated json": http(200, '{"choices": [{"message": {"con'),
    "not json": http(200, "<html>a captive portal</html>", "text/html"),
    "empty body": http(200, ""),
    "empty choices": http(200, '{"choices": [], "usage": {}}'),
    "error in a 200": http(200, '{"error": {"message": "upstream is gone"}}'),
    "choices of another shape": http(200, '{"choices": "none"}'),
    "a list": http(200, "[]"),
    "deep nesting": http(200, "[" * 100_000),
    "304": http(304, ""),
    "a wait without end": error(429, "slow down", retry_after="inf"),
    "a wait of many digits": error(429, "slow down", retry_after="9" * 400),
    "a wait that is no number": error(503, "slow down", retry_after_ms="nan"),
    "a wait until a year that is none": error(
        429, "slow down", retry_after=f"Fri, 31 Dec {'9' * 20} 23:59:59 GMT"
    ),
    "an error in a codec that is no charset": error(503, "x").replace(
        b"/json", b"/json; charset=zip"
    ),
}


@pytest.mark.parametrize("failure", TRANSIENT.values(), ids=TRANSIENT.keys())
def test_a_transient_failure_is_tried_again(task_path: Path, failure: Step) -> None:
    proposal, scene = play(task_path, failure, failure, GOOD, act=Scene.propose)
    assert proposal.source == kernel()
    assert (len(scene.server.requests), len(scene.slept)) == (3, 2)
    assert 0.5 <= scene.slept[0] <= 1.0 <= scene.slept[1] <= 2.0
    assert (
        len([text for text in scene.notices if "all requests wait, the next attempt is in" in text])
        == 1
    )
    assert "the endpoint answers again after" in scene.notices[-1]


CODECS = [
    "base64",
    "hex",
    "rot13",
    "zip",
    "utf-16",
    "idna",
    "undefined",
    "unicode_escape",
    "klingon",
]


@pytest.mark.parametrize("codec", CODECS)
def test_an_answer_is_read_as_utf8_whatever_codec_its_header_names(
    task_path: Path, codec: str
) -> None:
    answer = GOOD.replace(b"/json", b"/json; charset=" + codec.encode())
    assert answer != GOOD
    proposal, scene = play(task_path, answer, act=Scene.propose)
    assert (proposal.source, len(scene.server.requests)) == (kernel(), 1)


def test_an_answer_with_a_byte_order_mark_is_read(task_path: Path) -> None:
    body = GOOD.partition(b"\r\n\r\n")[2].decode()
    proposal, scene = play(task_path, http(200, f"\ufeff{body}"), act=Scene.propose)
    assert (proposal.source, len(scene.server.requests)) == (kernel(), 1)


@pytest.mark.parametrize("slow", [stall, dripping(GOOD)], ids=["stall", "drip"])
def test_a_stalled_answer_is_given_up_and_asked_again(task_path: Path, slow: Step) -> None:
    proposal, scene = play(task_path, slow, GOOD, act=Scene.propose, timeout_s=0.4)
    assert (proposal.source, len(scene.server.requests)) == (kernel(), 2)
    assert "no answer within 0.4 s; all requests wait" in scene.notices[-1]


@pytest.mark.parametrize(
    "failure", [error(500, "boom"), cut(GOOD), http(200, "{}")], ids=["500", "cut", "malformed"]
)
def test_an_outage_longer_than_patience_stops_the_run_with_a_clear_error(
    task_path: Path, failure: Step
) -> None:
    caught, scene = play(task_path, failure, act=failing, patience_s=60.0)
    assert isinstance(caught, GeneratorError)
    assert re.search(
        r"given up after \d attempts in \d+s, the run's patience is 1m00s .*: resume the run",
        str(caught),
    )
    assert len(scene.server.requests) == len(scene.slept) + 1 >= 5
    assert sum(scene.slept) <= 60.0


def test_retry_after_is_kept(task_path: Path) -> None:
    _, scene = play(
        task_path,
        error(429, "slow down", retry_after="17"),
        error(429, "x", retry_after_ms="2500"),
        GOOD,
        act=Scene.propose,
    )
    assert 17.0 <= scene.slept[0] <= 18.0
    assert 2.5 <= scene.slept[1] <= 3.5


def test_a_retry_after_date_in_the_past_asks_for_no_wait(task_path: Path) -> None:
    _, scene = play(
        task_path,
        error(503, "x", retry_after="Wed, 21 Oct 2015 07:28:00 GMT"),
        GOOD,
        act=Scene.propose,
    )
    assert scene.slept[0] <= 1.0


def test_an_asked_wait_of_hours_stops_the_run(task_path: Path) -> None:
    caught, scene = play(task_path, error(429, "daily quota", retry_after="7200"), act=failing)
    assert "it asks to wait 7200 s, the run's patience is 30m00s" in str(caught)
    assert (len(scene.server.requests), scene.slept) == (1, [])


PERMANENT = {
    "refused the key (401)": error(401, f"Incorrect API key provided: {KEY}"),
    "refused access to model 'scripted' (403)": error(403, "not for you"),
    "no model 'scripted' at http://127.0.0.1": error(
        404, "The model does not exist", "model_not_found"
    ),
    "refused the request for model 'scripted' (400): context too long": error(
        400, "context too long"
    ),
    "the quota at http://127.0.0.1": error(
        429, "You exceeded your current quota", "insufficient_quota"
    ),
}


@pytest.mark.parametrize(("words", "failure"), PERMANENT.items(), ids=PERMANENT.keys())
def test_a_refusal_is_not_tried_again(task_path: Path, words: str, failure: Step) -> None:
    caught, scene = play(task_path, failure, act=failing)
    assert isinstance(caught, GeneratorError)
    assert words in str(caught)
    assert (len(scene.server.requests), scene.slept) == (1, [])


def test_an_endpoint_that_is_not_there_is_an_error_at_once(task_path: Path) -> None:
    async def after_closing(scene: Scene) -> str:
        return ""

    _, scene = play(task_path, GOOD, act=after_closing)
    dead = scene.server.url

    async def run() -> None:
        generator = ModelGenerator(ModelSettings(base_url=dead), task_path, environ={})
        try:
            with pytest.raises(
                GeneratorError, match=f"no model endpoint at {dead}: .*check OPENAI_BASE_URL"
            ):
                await generator.propose(request(task_path), MemoryReplies())
        finally:
            await generator.close()

    asyncio.run(run())


def test_an_endpoint_without_key_is_sent_a_placeholder(task_path: Path) -> None:
    async def run() -> list[str]:
        async with chat_server(GOOD) as server:
            generator = ModelGenerator(
                ModelSettings(), task_path, environ={"OPENAI_BASE_URL": server.url}
            )
            await generator.propose(request(task_path), MemoryReplies())
            await generator.close()
            return server.keys

    assert asyncio.run(run()) == ["no-key-needed"]


@pytest.mark.parametrize(
    ("environ", "base_url", "words"),
    [
        ({}, None, "no key: set OPENAI_API_KEY"),
        ({"OPENAI_API_KEY": KEY + "\u00e9"}, None, "holds characters that no key has"),
        (
            {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "localhost:8000/v1"},
            None,
            "begin with http:// or https:// and name a host, got 'localhost:8000/v1'",
        ),
    ],
)
def test_wrong_settings_are_refused_before_the_first_request(
    task_path: Path, environ: dict[str, str], base_url: str | None, words: str
) -> None:
    with pytest.raises(GeneratorError, match=words) as caught:
        ModelGenerator(ModelSettings(base_url=base_url), task_path, environ=environ)
    assert KEY not in str(caught.value)


def test_a_model_that_wants_max_completion_tokens_gets_it(task_path: Path) -> None:
    wants = error(
        400,
        "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
        "unsupported_parameter",
    )
    proposal, scene = play(task_path, wants, GOOD, act=Scene.propose)
    assert proposal.source == kernel()
    assert "max_tokens" not in scene.server.requests[1]
    assert scene.server.requests[1]["max_completion_tokens"] == 16384


def test_the_key_is_in_no_error_and_no_stored_reply(task_path: Path) -> None:
    said: list[str] = []
    echoes = [
        error(401, KEY),
        error(403, KEY),
        error(404, KEY),
        error(400, KEY),
        error(429, KEY),
        error(500, KEY),
        http(200, f"not json {KEY}"),
        http(200, f'{{"error": "{KEY}"}}'),
        cut(GOOD),
    ]
    for step in echoes:
        caught, scene = play(task_path, step, act=failing, patience_s=1.0)
        said += [str(caught), repr(caught), str(caught.__cause__), *scene.notices]
    replies = MemoryReplies()
    _, scene = play(
        task_path, completion(f"your key is {KEY}"), act=lambda scene: scene.propose(replies)
    )
    said += [reply.model_dump_json() for reply in replies.stored.values()]
    assert scene.server.keys == [KEY, KEY]
    assert not [text for text in said if KEY in text]


@pytest.mark.parametrize(
    ("key", "query"), [("k", ""), ("x", "?v=1"), ("EMPTY", "?a=out"), ("none", "?b=N"), ("int", "")]
)
def test_a_key_that_is_a_word_of_code_leaves_the_kernel_alone(
    task_path: Path, key: str, query: str
) -> None:
    """Endpoints that need no key are given such a one."""

    async def run() -> Proposal:
        async with chat_server(GOOD) as server:
            environ = {"OPENAI_API_KEY": key, "OPENAI_BASE_URL": server.url + query}
            generator = ModelGenerator(ModelSettings(), task_path, environ=environ)
            try:
                return await generator.propose(request(task_path), MemoryReplies())
            finally:
                await generator.close()

    assert asyncio.run(run()).source == kernel()


def test_a_password_in_the_address_is_not_shown(task_path: Path) -> None:
    async def run() -> str:
        async with chat_server(error(403, "no")) as server:
            url = server.url.replace("//", "//user:hunter2@")
            generator = ModelGenerator(ModelSettings(), task_path, environ={"OPENAI_BASE_URL": url})
            with pytest.raises(GeneratorError) as caught:
                await generator.propose(request(task_path), MemoryReplies())
            await generator.close()
            return str(caught.value)

    said = asyncio.run(run())
    assert "hunter2" not in said
    assert "127.0.0.1" in said


PRICED = {"usd_per_million_prompt": 2.0, "usd_per_million_completion": 8.0, "max_tokens": 1000}


def test_a_reply_is_priced_from_its_usage(task_path: Path) -> None:
    replies = MemoryReplies()
    _, scene = play(task_path, GOOD, act=lambda scene: scene.propose(replies), **PRICED)
    assert replies.stored[0].usage == Usage(
        prompt_tokens=1000, completion_tokens=500, cost_usd=0.006
    )
    assert scene.generator.spent.cost_usd == pytest.approx(0.006)


def test_a_reply_without_usage_is_counted_at_the_most_it_can_be(task_path: Path) -> None:
    replies = MemoryReplies()
    play(
        task_path,
        completion(f"```\n{kernel()}```", usage={}),
        act=lambda scene: scene.propose(replies),
        **PRICED,
    )
    assert replies.stored[0].usage.completion_tokens == len(replies.stored[0].text)
    assert replies.stored[0].usage.cost_usd > 0


def test_the_cap_is_never_exceeded_with_several_in_flight(task_path: Path) -> None:
    costly = completion(
        f"```\n{kernel()}```",
        usage={"prompt_tokens": 9000, "completion_tokens": 1000, "total_tokens": 10000},
    )

    async def act(scene: Scene) -> list[Proposal | BaseException]:
        proposals = (scene.propose(trial=trial) for trial in range(20))
        return await asyncio.gather(*proposals, return_exceptions=True)

    results, scene = play(
        task_path, costly, act=act, cost_cap_usd=0.2, spent=Usage(cost_usd=0.05), **PRICED
    )
    exhausted = [item for item in results if isinstance(item, Exhausted)]
    proposals = [item for item in results if isinstance(item, Proposal)]
    assert len(exhausted) + len(proposals) == 20
    assert exhausted
    assert "cost cap of $0.20" in str(exhausted[0])
    assert len(scene.server.requests) == len(proposals) >= 3
    assert scene.generator.spent.cost_usd == pytest.approx(0.05 + 0.026 * len(proposals))
    assert scene.generator.spent.cost_usd <= 0.2
    assert scene.server.most_open >= 2


def test_a_cap_that_earlier_processes_have_spent_sends_nothing(task_path: Path) -> None:
    async def act(scene: Scene) -> None:
        with pytest.raises(Exhausted, match=r"cost cap of \$1.00: \$0.9990 spent"):
            await scene.propose()

    _, scene = play(
        task_path, GOOD, act=act, cost_cap_usd=1.0, spent=Usage(cost_usd=0.999), **PRICED
    )
    assert scene.server.requests == []


def test_the_cap_on_tokens_is_never_exceeded_with_several_in_flight(task_path: Path) -> None:
    used = {"prompt_tokens": 9000, "completion_tokens": 1000, "total_tokens": 10000}
    costly = completion(f"```\n{kernel()}```", usage=used)

    async def act(scene: Scene) -> list[Proposal | BaseException]:
        proposals = (scene.propose(trial=trial) for trial in range(20))
        return await asyncio.gather(*proposals, return_exceptions=True)

    settings = {"token_cap": 100_000, "max_tokens": 1000}
    results, scene = play(
        task_path, costly, act=act, spent=Usage(prompt_tokens=5000), model="home-made", **settings
    )
    exhausted = [item for item in results if isinstance(item, Exhausted)]
    sent = len(scene.server.requests)
    assert len(exhausted) == 20 - sent and 3 <= sent <= 9
    assert {item.kind for item in exhausted} == {EndKind.tokens}
    assert str(exhausted[-1]).startswith(
        f"cap of 100,000 tokens: {5000 + 10_000 * sent:,} tokens spent, the next request can take"
        " up to "
    )
    assert scene.server.most_open >= 2


def test_of_two_caps_the_one_that_is_reached_ends_the_run(task_path: Path) -> None:
    async def act(scene: Scene) -> Exhausted:
        with pytest.raises(Exhausted) as caught:
            await scene.propose()
        return caught.value

    for caps, kind in (
        ({"token_cap": 10**9, "cost_cap_usd": 0.001}, EndKind.cost),
        ({"token_cap": 1000, "cost_cap_usd": 1000.0}, EndKind.tokens),
    ):
        exhausted, scene = play(task_path, GOOD, act=act, **caps, **PRICED)
        assert exhausted.kind is kind and scene.server.requests == []


def test_tokens_of_requests_without_an_answer_count_against_the_cap(task_path: Path) -> None:
    async def act(scene: Scene) -> str:
        with pytest.raises(Exhausted) as caught:
            await scene.propose()
        return str(caught.value)

    # of the second one, an earlier version stored no tokens: it counts as the longest reply
    lost = Unanswered(requests=2, most_tokens=60_000, uncounted=1)
    settings = {"token_cap": 70_000, "max_tokens": 4000, "unanswered": lost}
    words, scene = play(task_path, GOOD, act=act, **settings)
    assert scene.server.requests == []
    assert words.startswith(
        "cap of 70,000 tokens: 0 tokens spent and up to 64,000 tokens of requests without an"
        " answer, the next request can take up to "
    )
    _, scene = play(task_path, cut(GOOD), act=act, token_cap=40_000, max_tokens=4000, retries=50)
    assert 1 <= len(scene.server.requests) <= 10


def test_a_request_says_how_many_tokens_it_can_have_at_most(task_path: Path) -> None:
    replies = MemoryReplies()
    play(task_path, GOOD, act=lambda scene: scene.propose(replies), max_tokens=4000)
    prompt = replies.stored[0].prompt
    assert replies.most_tokens == [len(prompt.encode()) + MESSAGE_TOKENS + 4000]


def test_a_cap_on_tokens_that_long_replies_exceed_is_reported_and_ends_the_run(
    task_path: Path,
) -> None:
    async def act(scene: Scene) -> str:
        await scene.propose(trial=0)
        with pytest.raises(Exhausted) as caught:
            await scene.propose(trial=1)
        return str(caught.value)

    reply = completion(
        f"```\n{kernel()}```", usage={"prompt_tokens": 9, "completion_tokens": 10**6}
    )
    words, scene = play(task_path, reply, act=act, token_cap=50_000, max_tokens=1000)
    assert words.startswith("cap of 50,000 tokens: 1,000,009 tokens spent: it is exceeded")
    assert any(
        note.startswith("the cap of 50,000 tokens is exceeded, 1,000,009 tokens so far")
        for note in scene.notices
    )


def test_an_answer_that_never_came_counts_against_the_cap(task_path: Path) -> None:
    async def act(scene: Scene) -> None:
        with pytest.raises(Exhausted, match="cost cap"):
            await scene.propose()

    _, scene = play(task_path, cut(GOOD), act=act, cost_cap_usd=0.11, retries=50, **PRICED)
    assert 1 <= len(scene.server.requests) <= 4


def test_an_unknown_price_is_reported_and_refuses_a_cap(task_path: Path) -> None:
    _, scene = play(task_path, GOOD, act=Scene.propose)
    assert scene.notices == [
        "price of model scripted unknown: cost is not counted; give it with --price"
    ]
    with pytest.raises(
        UsageError,
        match=r"cost cap of \$1.00 cannot be kept: the price of model 'home-made' is unknown",
    ):
        ModelGenerator(
            ModelSettings(model="home-made", cost_cap_usd=1.0),
            task_path,
            environ={"OPENAI_API_KEY": KEY},
        )


def test_several_proposals_are_in_flight_at_once(task_path: Path) -> None:
    async def act(scene: Scene) -> list[Proposal]:
        return await asyncio.gather(*(scene.propose(trial=trial) for trial in range(6)))

    proposals, scene = play(task_path, GOOD, act=act)
    assert [item.source for item in proposals] == [kernel()] * 6
    assert scene.server.most_open > 1


def test_parents_are_named_by_their_trials(task_path: Path) -> None:
    elites = (evaluated(3), evaluated(5), evaluated(9))

    async def act(scene: Scene) -> list[Proposal]:
        return [await scene.propose(seed=seed, elites=elites) for seed in range(8)]

    proposals, _ = play(task_path, GOOD, act=act)
    assert {item.operator for item in proposals} >= {"mutate", "crossover"}
    assert all(
        set(item.parents) <= {3, 5, 9} and len(set(item.parents)) == len(item.parents)
        for item in proposals
    )


# ---------------------------------------------------------------- an endpoint that fails


async def gather(scene: Scene, count: int) -> list[Proposal | BaseException]:
    return await asyncio.gather(
        *(scene.propose(trial=trial) for trial in range(count)), return_exceptions=True
    )


def test_requests_that_fail_together_wait_together_and_one_at_a_time_tries_again(
    task_path: Path,
) -> None:
    """Eight in flight, an outage of eleven failures: one line when it begins, one when it ends."""
    open_at_once: list[int] = []
    all_there = asyncio.Event()

    async def act(scene: Scene) -> list[Proposal | BaseException]:
        def failing_for(length: int) -> Step:
            async def send(writer: asyncio.StreamWriter) -> None:
                alone = len(scene.server.requests) > length
                if len(scene.server.requests) >= length:
                    all_there.set()
                await all_there.wait()  # before the first is answered
                await asyncio.sleep(0.05)
                if alone:
                    open_at_once.append(scene.server.open)
                writer.write(error(503, "overloaded"))

            return send

        scene.server.script[:] = [failing_for(8)] * 11 + [GOOD]
        return await gather(scene, 8)

    results, scene = play(task_path, GOOD, act=act)
    assert [item.source for item in results if isinstance(item, Proposal)] == [kernel()] * 8
    assert set(open_at_once) == {1}, "one request alone finds out whether the endpoint works again"
    assert len(scene.notices) == 3, scene.notices  # the price, the beginning, the end
    assert "overloaded; all requests wait, the next attempt is in" in scene.notices[1]
    assert "the endpoint answers again after" in scene.notices[2]


def test_an_outage_that_ends_the_run_is_one_error_for_all_requests_and_nothing_is_sent_after_it(
    task_path: Path,
) -> None:
    results, scene = play(
        task_path, error(503, "overloaded"), act=lambda scene: gather(scene, 6), patience_s=20.0
    )
    assert all(isinstance(item, GeneratorError) for item in results)
    assert len({str(item) for item in results}) == 1
    assert len(scene.server.requests) <= 6 + 6  # 1, 2, 4, 8 s and the six that failed together
    assert len(scene.notices) == 2


def test_a_long_outage_is_reported_again_from_time_to_time(task_path: Path) -> None:
    _, scene = play(task_path, error(503, "overloaded"), act=failing, patience_s=1800.0)
    reminders = [text for text in scene.notices if "no answer for" in text]
    assert 3 <= len(reminders) <= 6


def by_trial(poisoned: int, answer: bytes) -> Callable[[ChatServer], Step]:
    """Answers every prompt but the one of trial `poisoned`, which differs by its operator's
    parent.
    """

    def make(server: ChatServer) -> Step:
        async def send(writer: asyncio.StreamWriter) -> None:
            prompt = server.requests[-1]["messages"][0]["content"]
            await asyncio.sleep(0.002)
            writer.write(answer if f"kernel_{poisoned}" in prompt else GOOD)

        return send

    return make


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (error(500, "boom"), r"this request failed 4 times while other requests were answered"),
        (
            error(400, "context too long"),
            r"refused the request for model 'scripted' \(400\): context too long",
        ),
    ],
    ids=["fails again and again", "refused"],
)
def test_a_request_that_fails_alone_costs_its_trial_and_not_the_run(
    task_path: Path, answer: bytes, words: str
) -> None:
    async def act(scene: Scene) -> Proposal:
        scene.server.script[:] = [by_trial(7, answer)(scene.server)]
        await scene.propose(trial=20)
        poisoned = asyncio.create_task(scene.propose(trial=21, elites=(evaluated(7),)))
        for trial in range(22, 400):
            if poisoned.done():
                break
            assert (await scene.propose(trial=trial)).source == kernel()
        return await poisoned

    proposal, _ = play(task_path, GOOD, act=act)
    assert proposal.source is None
    assert re.search(rf"^no reply: .*{words}", proposal.problem)


def test_a_request_that_meets_the_rate_limit_again_and_again_is_not_given_up(
    task_path: Path,
) -> None:
    met: list[int] = []

    async def act(scene: Scene) -> Proposal:
        async def limited(writer: asyncio.StreamWriter) -> None:
            prompt = scene.server.requests[-1]["messages"][0]["content"]
            unlucky = "kernel_7" in prompt and len(met) < 12
            if unlucky:
                met.append(1)
            writer.write(error(429, "slow down", retry_after="1") if unlucky else GOOD)

        scene.server.script[:] = [limited]
        unlucky = asyncio.create_task(scene.propose(trial=21, elites=(evaluated(7),)))
        for trial in range(22, 200):
            if unlucky.done():
                break
            await scene.propose(trial=trial)
        return await unlucky

    proposal, _ = play(task_path, GOOD, act=act, retries=3)
    assert (proposal.source, len(met)) == (kernel(), 12)


def test_without_retries_an_outage_is_waited_for_and_takes_no_trial(task_path: Path) -> None:
    """Two answers, then no more."""

    async def act(scene: Scene) -> list[Proposal | BaseException]:
        assert [item.source for item in await gather(scene, 2)] == [kernel()] * 2  # type: ignore[union-attr]
        return await gather(scene, 6)

    results, _ = play(
        task_path, GOOD, GOOD, error(503, "overloaded"), act=act, retries=0, patience_s=30.0
    )
    assert all(
        isinstance(item, GeneratorError) and "given up after" in str(item) for item in results
    ), results


def test_a_wait_that_the_endpoint_asks_one_of_several_for_is_kept_by_all(task_path: Path) -> None:
    async def act(scene: Scene) -> list[Proposal | BaseException]:
        async def both(writer: asyncio.StreamWriter) -> None:
            number = len(scene.server.requests)
            await asyncio.sleep(0.05 * number)  # the one that asks to wait fails second
            writer.write(
                error(503, "x")
                if number == 1
                else error(429, "slow down", retry_after="60")
                if number == 2
                else GOOD
            )

        scene.server.script[:] = [both]
        return await gather(scene, 2)

    _, scene = play(task_path, GOOD, act=act)
    assert sum(scene.slept) >= 59.0, scene.slept


def test_a_request_that_is_always_too_large_is_given_up(task_path: Path) -> None:
    async def act(scene: Scene) -> Proposal:
        scene.server.script[:] = [
            by_trial(7, error(429, "Request too large for this model"))(scene.server)
        ]
        await scene.propose(trial=20)
        large = asyncio.create_task(scene.propose(trial=21, elites=(evaluated(7),)))
        for trial in range(22, 400):
            if large.done():
                break
            await scene.propose(trial=trial)
        return await large

    proposal, _ = play(task_path, GOOD, act=act)
    assert proposal.source is None and "Request too large" in proposal.problem


def test_refusals_in_a_row_stop_the_run_with_the_last_one(task_path: Path) -> None:
    async def act(scene: Scene) -> None:
        for trial in range(4):
            await scene.propose(trial=trial)
        with pytest.raises(
            GeneratorError,
            match=r"the last 4 requests .* brought no kernel.*; the last one: .*context too long",
        ):
            await scene.propose(trial=4)

    play(
        task_path,
        error(400, "context too long"),
        act=act,
        spent=Usage(prompt_tokens=9),
        replies_without_kernel=4,
    )


def test_a_refused_first_request_stops_the_run(task_path: Path) -> None:
    caught, _ = play(task_path, error(400, "no such parameter"), act=failing)
    assert isinstance(caught, GeneratorError)


def test_a_refused_first_request_of_a_resume_costs_its_trial_only(task_path: Path) -> None:
    spent = Usage(prompt_tokens=1000, completion_tokens=10)
    proposal, _ = play(task_path, error(400, "context too long"), act=Scene.propose, spent=spent)
    assert (proposal.source, "context too long" in proposal.problem) == (None, True)


def test_replies_without_any_kernel_stop_the_run_after_so_many_in_a_row(task_path: Path) -> None:
    async def act(scene: Scene) -> list[Proposal]:
        proposals = [await scene.propose(trial=trial) for trial in range(3)]
        with pytest.raises(
            GeneratorError,
            match=(
                "the last 6 requests to scripted brought no kernel; no more requests are sent: read"
                " some replies"
            ),
        ):
            await scene.propose(trial=3)
        return proposals

    proposals, scene = play(task_path, BAD, act=act, replies_without_kernel=6)
    assert [item.source for item in proposals] == [None] * 3, "what was paid for is still a trial"
    assert len(scene.server.requests) == 6


def test_stored_replies_without_a_kernel_do_not_keep_a_resume_from_asking(task_path: Path) -> None:
    async def act(scene: Scene) -> list[Proposal]:
        stored = [
            MemoryReplies({0: Reply(model="m", prompt="p", text="no kernel here")})
            for _ in range(6)
        ]
        return await asyncio.gather(
            *(scene.propose(replies, trial=trial) for trial, replies in enumerate(stored))
        )

    proposals, _ = play(task_path, GOOD, act=act, replies_without_kernel=3)
    assert [item.operator for item in proposals] == ["repair"] * 6


def test_a_kernel_between_empty_replies_resets_the_count(task_path: Path) -> None:
    async def act(scene: Scene) -> None:
        for trial in range(4):
            await scene.propose(trial=trial)

    _, scene = play(task_path, BAD, BAD, GOOD, BAD, BAD, GOOD, act=act, replies_without_kernel=3)
    assert len(scene.server.requests) == 6


# ---------------------------------------------------------------- what it costs


def boundless(completion_tokens: int, text: str = f"```\n{kernel()}```") -> bytes:
    return completion(
        text,
        usage={"prompt_tokens": 1000, "completion_tokens": completion_tokens, "total_tokens": 0},
    )


@pytest.mark.parametrize(
    "text", [f"```\n{kernel()}```", "no kernel at all"], ids=["kernel", "no kernel"]
)
def test_an_endpoint_that_ignores_max_tokens_is_reported_and_asked_nothing_once_the_cap_is_exceeded(
    task_path: Path, text: str
) -> None:
    """Eight in flight at 1,000 tokens fit below the cap; each comes with 20,000."""
    results, scene = play(
        task_path,
        boundless(20_000, text),
        act=lambda scene: gather(scene, 20),
        cost_cap_usd=0.5,
        **PRICED,
    )
    cost = 0.162  # of one reply
    sent = len(scene.server.requests)
    assert scene.generator.spent.cost_usd == pytest.approx(cost * sent)
    assert any(
        "ignores max_tokens: asked for 1000, it sent 20000" in notice for notice in scene.notices
    )
    assert scene.generator.spent.cost_usd <= 0.5 or any(
        "the cost cap of $0.50 is exceeded" in notice for notice in scene.notices
    )
    exhausted = [item for item in results if isinstance(item, Exhausted)]
    assert exhausted and "cost cap of $0.50" in str(exhausted[0])
    first_answers = scene.server.most_open
    assert sent <= first_answers, (
        "after the first reply that is too long, nothing is sent that might not fit"
    )


def test_no_repair_turn_is_sent_after_a_reply_that_exceeded_the_cap(task_path: Path) -> None:
    async def act(scene: Scene) -> None:
        with pytest.raises(
            Exhausted,
            match=(
                r"cost cap of \$0.50: \$8.0020 spent: it is exceeded, because replies were longer"
                r" than asked for"
            ),
        ):
            await scene.propose()

    _, scene = play(
        task_path, boundless(1_000_000, "no kernel"), act=act, cost_cap_usd=0.5, **PRICED
    )
    assert len(scene.server.requests) == 1
    assert (
        "the cost cap of $0.50 is exceeded, $8.0020 so far: no more requests are sent"
        in scene.notices[-1]
    )


def test_what_requests_of_earlier_processes_may_have_cost_counts_against_the_cap(
    task_path: Path,
) -> None:
    async def act(scene: Scene) -> None:
        with pytest.raises(
            Exhausted, match=r"\$0.0000 spent and up to \$0.9990 of requests without an answer"
        ):
            await scene.propose()

    lost = Unanswered(requests=2, most_usd=0.999)
    _, scene = play(task_path, GOOD, act=act, cost_cap_usd=1.0, unanswered=lost, **PRICED)
    assert scene.server.requests == []
    assert (
        "2 requests of earlier processes were never answered and may have been paid for, for up to"
        " $0.9990" in scene.notices[0]
    )


def test_what_had_no_price_when_it_came_counts_once_there_is_one(task_path: Path) -> None:
    before = Spending(
        unpriced=Usage(prompt_tokens=4000, completion_tokens=2000),
        unanswered=Unanswered(requests=1, unpriced=1),
        longest_reply=5000,
    )
    settings = ModelSettings(
        model="m",
        usd_per_million_prompt=1000,
        usd_per_million_completion=1000,
        max_tokens=1000,
        cost_cap_usd=25,
    )
    ledger = Ledger(settings, before, lambda _: None)
    assert (ledger.spent.cost_usd, ledger.lost.usd) == (6.0, 1.0)

    async def hold() -> float:
        async with ledger.hold("") as held:
            return held.most.usd

    assert asyncio.run(hold()) > 5.0, (
        "an endpoint that did not keep max_tokens once may do so again"
    )


def test_a_request_is_a_row_before_it_leaves_and_its_failure_is_one_too(task_path: Path) -> None:
    replies = MemoryReplies()
    seen: list[int] = []

    async def count(writer: asyncio.StreamWriter) -> None:
        seen.append(len(replies.sent))
        writer.write(GOOD)

    play(
        task_path,
        error(429, "slow down"),
        cut(GOOD),
        count,
        act=lambda scene: scene.propose(replies),
        **PRICED,
    )
    assert seen == [3]
    assert [turn for turn, _ in replies.sent] == [0, 0, 0]
    assert all(most is not None and 0.008 < most < 0.1 for _, most in replies.sent)
    assert {number: maybe_paid for number, (_, maybe_paid) in replies.failed.items()} == {
        0: False,
        1: True,
    }


def test_without_a_price_the_most_that_a_request_can_cost_is_unknown(task_path: Path) -> None:
    replies = MemoryReplies()
    play(task_path, GOOD, act=lambda scene: scene.propose(replies))
    assert replies.sent == [(0, None)]


# ---------------------------------------------------------------- which address, and who gets the
# key


def asked_with(
    task_path: Path, stored: str | None, given: bool, key: str | None
) -> tuple[list[str], list[str]]:
    """The keys that a server was sent, and the notices to the user; `given`: the environment names
    the server.
    """

    async def run() -> tuple[list[str], list[str]]:
        async with chat_server(GOOD) as server:
            environ = ({"OPENAI_API_KEY": key} if key else {}) | (
                {"OPENAI_BASE_URL": server.url} if given else {}
            )
            notices: list[str] = []
            settings = ModelSettings(model="gpt-4.1", base_url=stored or server.url)
            generator = ModelGenerator(settings, task_path, environ=environ, notify=notices.append)
            await generator.propose(request(task_path), MemoryReplies())
            await generator.close()
            return server.keys, notices

    return asyncio.run(run())


def test_the_address_in_the_environment_is_asked_and_both_are_said_when_they_differ(
    task_path: Path,
) -> None:
    keys, notices = asked_with(task_path, "http://elsewhere.example/v1", given=True, key=KEY)
    assert keys == [KEY]
    assert re.search(
        r"begun with the model endpoint at http://elsewhere\.example/v1; OPENAI_BASE_URL names"
        r" http://127\.0\.0\.1",
        notices[0],
    )


def test_an_address_that_only_the_run_names_gets_no_key(task_path: Path) -> None:
    keys, notices = asked_with(task_path, None, given=False, key=KEY)
    assert keys == ["no-key-needed"]
    assert "OPENAI_BASE_URL names none here, so it is asked without a key" in notices[0]


@pytest.mark.parametrize(
    "environ",
    [
        {"OPENAI_BASE_URL": "http://localhost:99999/v1"},
        {"OPENAI_BASE_URL": "http://local\x07host/v1"},
        {"OPENAI_BASE_URL": "http:///v1"},
        {"OPENAI_API_KEY": KEY, "OPENAI_ORG_ID": "\u00e9"},
        {"OPENAI_API_KEY": KEY, "OPENAI_CUSTOM_HEADERS": "X: \u00e9"},
    ],
    ids=["port", "control character", "no host", "organisation", "headers"],
)
def test_what_cannot_be_sent_is_refused_before_anything_starts(environ: dict[str, str]) -> None:
    with pytest.raises(
        GeneratorError, match=r"must begin with http|characters that no header can carry"
    ):
        check_settings(ModelSettings(), environ)


@pytest.mark.parametrize(("given", "key"), [(True, KEY), (True, None), (False, None)])
def test_the_same_address_as_before_is_asked_without_a_notice(
    task_path: Path, given: bool, key: str | None
) -> None:
    keys, notices = asked_with(task_path, None, given=given, key=key)
    assert (keys, notices) == ([key or "no-key-needed"], [])


def test_a_password_in_a_stored_address_is_not_used(task_path: Path) -> None:
    target = address_of("https://user:hunter2@models.example/v1?token=hunter2", {})
    assert target.url == target.shown == "https://models.example/v1"


@pytest.mark.parametrize("count", [10**30, -5, "many", True, 1.5])
def test_an_impossible_count_of_tokens_is_ignored(task_path: Path, count: object) -> None:
    replies = MemoryReplies()
    body = completion(
        f"```\n{kernel()}```", usage={"prompt_tokens": count, "completion_tokens": count}
    )  # type: ignore[dict-item]
    play(task_path, body, act=lambda scene: scene.propose(replies), **PRICED)
    assert replies.stored[0].usage.completion_tokens == len(replies.stored[0].text)


def test_a_finish_reason_with_a_lone_surrogate_can_be_stored(task_path: Path) -> None:
    replies = MemoryReplies()
    play(
        task_path,
        http(200, '{"choices": [{"message": {"content": "x"}, "finish_reason": "\\ud800"}]}'),
        GOOD,
        act=lambda s: s.propose(replies),
    )
    replies.stored[0].model_dump_json().encode()


def test_a_password_and_a_query_in_the_address_are_in_no_error_and_no_reply(
    task_path: Path,
) -> None:
    echo = "Basic bWU6Y2FuYXJ5LXB3 canary-pw canary-q"

    async def run() -> list[str]:
        async with chat_server(error(500, echo), completion(echo), completion(echo)) as server:
            url = server.url.replace("//", "//me:canary-pw@") + "?token=canary-q"
            said: list[str] = []
            generator = ModelGenerator(
                ModelSettings(),
                task_path,
                notify=said.append,
                environ={"OPENAI_BASE_URL": url},
                sleep=lambda _: asyncio.sleep(0),
            )
            replies = MemoryReplies()
            await generator.propose(request(task_path), replies)
            await generator.close()
            return [
                *said,
                *(item.text for item in replies.stored.values()),
                *(why for why, _ in replies.failed.values()),
            ]

    said = asyncio.run(run())
    assert any("***" in text for text in said)
    assert not [text for text in said if "canary" in text or "bWU6Y2FuYXJ5LXB3" in text]
