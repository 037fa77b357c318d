"""Which parts of a prompt fit a budget."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from benchmarks.prompt_requests import late_request
from evoengine.config import PromptSettings
from evoengine.generate.operators import OperatorChoice
from evoengine.generate.prompt_parts import ALWAYS, Item, PromptPart, fitted, part
from evoengine.generate.prompt_templates import Prompts
from evoengine.paths import find_task
from evoengine.protocols import Evaluated, Request


def words(template: str, items: Sequence[object]) -> str:
    """The template's name and its items, each of 40 bytes, which are 10 tokens."""
    return " ".join([template, *(str(item) * 40 for item in items if item)])


def shown(parts: Sequence[PromptPart], budget: int) -> dict[str, int]:
    return {found.name: found.shown for found in fitted(parts, budget, words).parts}


PARTS = (
    part("needed", "N", ALWAYS),
    PromptPart("many", "M", (Item(2, "a"), Item(1, "b"), Item(3, "c"))),
    part("one", "O", 2, ["d"]),
)


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (0, (1, 0, 0)),
        (12, (1, 1, 0)),  # rank 1 comes first, wherever its part is
        (22, (1, 2, 0)),
        (34, (1, 2, 1)),
        (100, (1, 3, 1)),
    ],
)
def test_items_of_lower_rank_come_first_and_those_of_rank_0_always(
    budget: int, expected: tuple[int, ...]
) -> None:
    assert tuple(shown(PARTS, budget).values()) == expected


def test_items_stay_in_their_order_whatever_their_ranks() -> None:
    text = fitted(PARTS, 100, words).text
    assert text == f"N\n\nM {'a' * 40} {'b' * 40} {'c' * 40}\n\nO {'d' * 40}\n"


def test_a_shorter_item_takes_the_place_of_one_that_does_not_fit() -> None:
    parts = [part("long", "L", 1, ["xxxx"]), part("short", "S", 2, ["y"])]
    assert shown(parts, 20) == {"long": 0, "short": 1}


def test_a_part_without_a_shown_item_leaves_no_trace() -> None:
    assert fitted([part("empty", "E", ALWAYS, []), *PARTS], 0, words).text == "N\n"


@pytest.fixture(scope="module")
def late() -> Request:
    return late_request("sdpa_h200")


def parents(request: Request) -> tuple[Evaluated, Evaluated]:
    best, second, *_ = (item for elite, item in request.elites if elite.tier == "fp16")
    return best, second


@pytest.mark.parametrize("tokens", [1, 3300, 6000, 8000])
def test_a_kernel_is_in_a_prompt_whole_or_not_at_all_and_a_parent_always_is(
    late: Request, tokens: int
) -> None:
    prompts = Prompts(find_task("sdpa_h200"), PromptSettings(tokens=tokens))
    best, second = parents(late)
    text = prompts.render(OperatorChoice("mutate", "fp16", (second,)), late).text
    codes = [item.source.partition("*/")[2].strip() for item in (best, second)]
    assert codes[1] in text
    last_line_of_best = codes[0][-200:]
    assert (codes[0] in text) == (last_line_of_best in text) == (tokens == 8000)
    both = prompts.render(OperatorChoice("crossover", "fp16", (best, second)), late).text
    assert codes[0] in both and codes[1] in both


def test_a_larger_budget_only_adds_items(late: Request) -> None:
    before: dict[str, int] = {}
    sizes = []
    for tokens in (1, 2800, 3300, 4000, 8000, 20_000):
        prompts = Prompts(find_task("sdpa_h200"), PromptSettings(tokens=tokens))
        found = prompts.render(OperatorChoice("mutate", "fp16", parents(late)[1:]), late)
        sizes.append(found.tokens)
        shown = {item.name: item.shown for item in found.parts}
        assert sum(shown.values()) >= sum(before.values())
        before = shown
    assert sizes == sorted(sizes) and sizes[-1] > 1.5 * sizes[0]
    assert all(item.shown == item.items for item in found.parts)


def test_what_a_prompt_says_depends_on_the_tier_and_on_the_operations_of_the_task() -> None:
    settings = PromptSettings(tokens=20_000)
    texts = {}
    for name, tier in (("sdpa_h200", "fp16"), ("sdpa_h200", "fp8"), ("layernorm", "fp32")):
        request = late_request(name)
        choice = OperatorChoice("first", tier)
        text = Prompts(find_task(name), settings).render(choice, request).text
        texts[tier] = text.partition("# What the last trials taught")[0]
    assert "e4m3" not in texts["fp16"] and "cuda_fp8.h" not in texts["fp16"]
    assert "def e4m3(q" in texts["fp8"] and "must contain e4m3 instructions" in texts["fp8"]
    assert "mma.sync fp8" in texts["fp8"] and "cuda_fp8.h" in texts["fp8"]
    assert "mma.sync" in texts["fp16"] and "ex2. In a running maximum" in texts["fp16"]
    assert "mma.sync" not in texts["fp32"] and "running maximum" not in texts["fp32"]
    assert "`tensor`" in texts["fp16"] and "`tensor`" not in texts["fp32"]
    maxima = "subtract maxima before you exponentiate"
    assert texts["fp16"].count(maxima) == 2 and maxima not in texts["fp32"]
    assert " mma.h, " in texts["fp16"] and " mma.h, " not in texts["fp32"]


def test_the_parents_figures_are_in_a_prompt_once(late: Request) -> None:
    prompts = Prompts(find_task("sdpa_h200"), PromptSettings(tokens=20_000))
    best, second = parents(late)
    text = prompts.render(OperatorChoice("crossover", "fp16", (best, second)), late).text
    assert text.count(f"rial {best.outcome.trial}, ") == 1
    assert text.count(f"rial {second.outcome.trial}, ") == 1
    slow = text.partition("# What the last trials taught")[2].partition("# What to do")[0]
    assert "registers" not in slow and "correct, not among the best" in slow
