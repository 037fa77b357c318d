"""ModelGenerator against a real HTTP server that speaks the protocol, well or badly."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from chat_server import ChatServer, Step, chat_server, completion, cut, dripping, error, http, stall
from scene import MemoryReplies, kernel, request, specimen

from evoengine.config import ModelSettings
from evoengine.errors import EvoError, GeneratorError, UsageError
from evoengine.generate import draft
from evoengine.generate.model import ModelGenerator
from evoengine.records import Proposal, Reply, Usage
from evoengine.seams import Exhausted

KEY = "sk-secret-4711-do-not-show"
GOOD = completion(f"Bound by bytes.\n\n```cuda\n{kernel()}```\n\n## Thoughts\n- fewer barriers\n- wider loads\n")
BAD = completion("I would rather talk about the weather.")
T = TypeVar("T")


class Scene:
    """One generator on one server, with a clock that does not wait."""

    def __init__(self, server: ChatServer, task_path: Path, spent: Usage, **settings: Any) -> None:
        self.server = server
        self.task_path = task_path
        self.slept: list[float] = []
        self.notices: list[str] = []
        self.generator = ModelGenerator(
            ModelSettings(**{"model": "scripted", "base_url": server.url, "timeout_s": 5.0, "retries": 3, **settings}),
            task_path,
            spent=spent,
            notify=self.notices.append,
            environ={"OPENAI_API_KEY": KEY},
            sleep=self._sleep,
            jitter=random.Random(0),  # noqa: S311
        )

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    async def propose(self, replies: MemoryReplies | None = None, **kwargs: Any) -> Proposal:
        return await self.generator.propose(request(self.task_path, **kwargs), replies or MemoryReplies())


def play(task_path: Path, *script: Step, act: Callable[[Scene], Awaitable[T]], spent: Usage = Usage(), **settings: Any) -> tuple[T, Scene]:  # noqa: B008
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


def test_the_reply_is_committed_before_it_is_read(task_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replies = MemoryReplies()
    read = draft.read

    def noted(*arguments: Any) -> draft.Draft:
        replies.events.append("read")
        return read(*arguments)

    monkeypatch.setattr(draft, "read", noted)
    play(task_path, BAD, GOOD, act=lambda scene: scene.propose(replies))
    assert replies.events == ["ask 0", "commit 0", "read", "ask 1", "commit 1", "read"]


def test_a_stored_reply_is_used_and_nothing_is_asked(task_path: Path) -> None:
    replies = MemoryReplies({0: Reply(model="m", prompt="p", text=f"```\n{kernel('stored')}```")})
    proposal, scene = play(task_path, GOOD, act=lambda scene: scene.propose(replies))
    assert (proposal.label, len(scene.server.requests)) == ("stored", 0)


def test_a_stored_bad_reply_costs_only_the_repair_turn(task_path: Path) -> None:
    replies = MemoryReplies({0: Reply(model="m", prompt="p", text="no kernel here")})
    proposal, scene = play(task_path, GOOD, act=lambda scene: scene.propose(replies))
    assert (proposal.operator, proposal.source, len(scene.server.requests)) == ("repair", kernel(), 1)


def test_a_reply_without_kernel_gets_one_repair_turn_with_the_reason(task_path: Path) -> None:
    proposal, scene = play(task_path, BAD, act=Scene.propose)
    assert proposal.source is None
    assert "holds no code block" in proposal.problem
    first, second = (sent["messages"][0]["content"] for sent in scene.server.requests)
    assert second.startswith(first)
    assert "I would rather talk about the weather." in second
    assert "the reply holds no code block" in second


@pytest.mark.parametrize("content", ["", None, [], [{"type": "refusal", "refusal": "no"}]])
def test_an_empty_content_is_a_reply_that_is_kept_and_repaired(task_path: Path, content: Any) -> None:
    replies = MemoryReplies()
    proposal, scene = play(task_path, completion(content), GOOD, act=lambda scene: scene.propose(replies))
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
}


@pytest.mark.parametrize("failure", TRANSIENT.values(), ids=TRANSIENT.keys())
def test_a_transient_failure_is_tried_again(task_path: Path, failure: Step) -> None:
    proposal, scene = play(task_path, failure, failure, GOOD, act=Scene.propose)
    assert proposal.source == kernel()
    assert (len(scene.server.requests), len(scene.slept)) == (3, 2)
    assert 0.5 <= scene.slept[0] <= 1.0 <= scene.slept[1] <= 2.0
    assert "attempt 2 of 4" in scene.notices[-2]


@pytest.mark.parametrize("slow", [stall, dripping(GOOD)], ids=["stall", "drip"])
def test_a_stalled_answer_is_given_up_and_asked_again(task_path: Path, slow: Step) -> None:
    proposal, scene = play(task_path, slow, GOOD, act=Scene.propose, timeout_s=0.4)
    assert (proposal.source, len(scene.server.requests)) == (kernel(), 2)
    assert "no answer within 0.4 s" in scene.notices[-1]


@pytest.mark.parametrize("failure", [error(500, "boom"), cut(GOOD), http(200, "{}")], ids=["500", "cut", "malformed"])
def test_spent_retries_stop_the_run_with_a_clear_error(task_path: Path, failure: Step) -> None:
    caught, scene = play(task_path, failure, act=failing)
    assert isinstance(caught, GeneratorError)
    assert "given up after 4 attempts, resume the run" in str(caught)
    assert len(scene.server.requests) == 4


def test_retry_after_is_kept(task_path: Path) -> None:
    _, scene = play(task_path, error(429, "slow down", retry_after="17"), error(429, "x", retry_after_ms="2500"), GOOD, act=Scene.propose)
    assert 17.0 <= scene.slept[0] <= 18.0
    assert 2.5 <= scene.slept[1] <= 3.5


def test_a_retry_after_date_in_the_past_is_no_wait(task_path: Path) -> None:
    _, scene = play(task_path, error(503, "x", retry_after="Wed, 21 Oct 2015 07:28:00 GMT"), GOOD, act=Scene.propose)
    assert scene.slept[0] <= 1.0


def test_an_asked_wait_of_hours_stops_the_run(task_path: Path) -> None:
    caught, scene = play(task_path, error(429, "daily quota", retry_after="7200"), act=failing)
    assert "it asks to wait 7200 s" in str(caught)
    assert (len(scene.server.requests), scene.slept) == (1, [])


PERMANENT = {
    "refused the key (401)": error(401, f"Incorrect API key provided: {KEY}"),
    "refused access to model 'scripted' (403)": error(403, "not for you"),
    "no model 'scripted' at http://127.0.0.1": error(404, "The model does not exist", "model_not_found"),
    "refused the request for model 'scripted' (400): context too long": error(400, "context too long"),
    "the quota at http://127.0.0.1": error(429, "You exceeded your current quota", "insufficient_quota"),
}


@pytest.mark.parametrize(("words", "failure"), PERMANENT.items(), ids=PERMANENT.keys())
def test_a_refusal_is_not_tried_again(task_path: Path, words: str, failure: Step) -> None:
    caught, scene = play(task_path, failure, act=failing)
    assert isinstance(caught, GeneratorError)
    assert words in str(caught)
    assert (len(scene.server.requests), scene.slept) == (1, [])


def test_an_endpoint_that_is_not_there_is_said_at_once(task_path: Path) -> None:
    async def after_closing(scene: Scene) -> str:
        return ""

    _, scene = play(task_path, GOOD, act=after_closing)
    dead = scene.server.url

    async def run() -> None:
        generator = ModelGenerator(ModelSettings(base_url=dead), task_path, environ={})
        try:
            with pytest.raises(GeneratorError, match=f"no model endpoint at {dead}: .*check OPENAI_BASE_URL"):
                await generator.propose(request(task_path), MemoryReplies())
        finally:
            await generator.close()

    asyncio.run(run())


def test_an_endpoint_without_key_is_sent_a_placeholder(task_path: Path) -> None:
    async def run() -> list[str]:
        async with chat_server(GOOD) as server:
            generator = ModelGenerator(ModelSettings(), task_path, environ={"OPENAI_BASE_URL": server.url})
            await generator.propose(request(task_path), MemoryReplies())
            await generator.close()
            return server.keys

    assert asyncio.run(run()) == ["no-key-needed"]


@pytest.mark.parametrize(
    ("environ", "base_url", "words"),
    [
        ({}, None, "no key: set OPENAI_API_KEY"),
        ({"OPENAI_API_KEY": KEY + "\u00e9"}, None, "holds characters that no key has"),
        ({"OPENAI_API_KEY": KEY}, "localhost:8000/v1", "must begin with http:// or https://, got 'localhost:8000/v1'"),
    ],
)
def test_wrong_settings_are_refused_before_the_first_request(
    task_path: Path, environ: dict[str, str], base_url: str | None, words: str
) -> None:
    with pytest.raises(GeneratorError, match=words) as caught:
        ModelGenerator(ModelSettings(base_url=base_url), task_path, environ=environ)
    assert KEY not in str(caught.value)


def test_a_model_that_wants_max_completion_tokens_gets_it(task_path: Path) -> None:
    wants = error(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "unsupported_parameter")
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
        caught, scene = play(task_path, step, act=failing, retries=1)
        said += [str(caught), repr(caught), str(caught.__cause__), *scene.notices]
    replies = MemoryReplies()
    _, scene = play(task_path, completion(f"your key is {KEY}"), act=lambda scene: scene.propose(replies))
    said += [reply.model_dump_json() for reply in replies.stored.values()]
    assert scene.server.keys == [KEY, KEY]
    assert not [text for text in said if KEY in text]


def test_a_password_in_the_address_is_not_shown(task_path: Path) -> None:
    async def run() -> str:
        async with chat_server(error(403, "no")) as server:
            url = server.url.replace("//", "//user:hunter2@")
            generator = ModelGenerator(ModelSettings(base_url=url), task_path, environ={})
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
    assert replies.stored[0].usage == Usage(prompt_tokens=1000, completion_tokens=500, cost_usd=0.006)
    assert scene.generator.spent.cost_usd == pytest.approx(0.006)


def test_a_reply_without_usage_is_counted_at_the_most_it_can_be(task_path: Path) -> None:
    replies = MemoryReplies()
    play(task_path, completion(f"```\n{kernel()}```", usage={}), act=lambda scene: scene.propose(replies), **PRICED)
    assert replies.stored[0].usage.completion_tokens == len(replies.stored[0].text)
    assert replies.stored[0].usage.cost_usd > 0


def test_the_cap_is_never_exceeded_with_several_in_flight(task_path: Path) -> None:
    costly = completion(f"```\n{kernel()}```", usage={"prompt_tokens": 9000, "completion_tokens": 1000, "total_tokens": 10000})

    async def act(scene: Scene) -> list[Proposal | BaseException]:
        proposals = (scene.propose(trial=trial) for trial in range(20))
        return await asyncio.gather(*proposals, return_exceptions=True)

    results, scene = play(task_path, costly, act=act, cost_cap_usd=0.2, spent=Usage(cost_usd=0.05), **PRICED)
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

    _, scene = play(task_path, GOOD, act=act, cost_cap_usd=1.0, spent=Usage(cost_usd=0.999), **PRICED)
    assert scene.server.requests == []


def test_an_answer_that_never_came_counts_against_the_cap(task_path: Path) -> None:
    async def act(scene: Scene) -> None:
        with pytest.raises(Exhausted, match="cost cap"):
            await scene.propose()

    _, scene = play(task_path, cut(GOOD), act=act, cost_cap_usd=0.15, retries=50, **PRICED)
    assert 1 <= len(scene.server.requests) <= 4


def test_an_unknown_price_is_said_and_refuses_a_cap(task_path: Path) -> None:
    _, scene = play(task_path, GOOD, act=Scene.propose)
    assert scene.notices == ["price of model scripted unknown: cost is not counted"]
    with pytest.raises(UsageError, match=r"cost cap of \$1.00 cannot be kept: the price of model 'home-made' is unknown"):
        ModelGenerator(ModelSettings(model="home-made", cost_cap_usd=1.0), task_path, environ={"OPENAI_API_KEY": KEY})


def test_several_proposals_are_in_flight_at_once(task_path: Path) -> None:
    async def act(scene: Scene) -> list[Proposal]:
        return await asyncio.gather(*(scene.propose(trial=trial) for trial in range(6)))

    proposals, scene = play(task_path, GOOD, act=act)
    assert [item.source for item in proposals] == [kernel()] * 6
    assert scene.server.most_open > 1


def test_parents_are_named_by_their_trials(task_path: Path) -> None:
    elites = (specimen(3), specimen(5), specimen(9))

    async def act(scene: Scene) -> list[Proposal]:
        return [await scene.propose(seed=seed, elites=elites) for seed in range(8)]

    proposals, _ = play(task_path, GOOD, act=act)
    assert {item.operator for item in proposals} == {"mutate", "crossover"}
    assert all(set(item.parents) <= {3, 5, 9} and len(set(item.parents)) == len(item.parents) for item in proposals)
