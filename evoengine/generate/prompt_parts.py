"""The parts of a prompt: which there are, which come first where not all fit the budget of tokens.

A part is a template that is given its items, and an item is in the prompt whole or not at all.
Those of rank 0 always are; of the others, those of lower ranks first, as far as the budget goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from evoengine.generate.token_estimate import estimated_tokens

ALWAYS = 0


@dataclass(frozen=True)
class Item:
    """One thing that a part can show, such as one trial, and its rank."""

    rank: int
    value: object = None


@dataclass(frozen=True)
class PromptPart:
    """A part before it is known which of its items fit. Without items it is not in the prompt."""

    name: str
    template: str
    items: tuple[Item, ...] = (Item(ALWAYS),)


@dataclass(frozen=True)
class PartCount:
    """A part in a prompt: its estimated tokens, and how many of its items it shows."""

    name: str
    tokens: int
    shown: int
    items: int


@dataclass(frozen=True)
class PromptText:
    """A prompt with the counts of its parts, those without a shown item included."""

    text: str
    parts: tuple[PartCount, ...]

    def __add__(self, later: PromptText) -> PromptText:
        return PromptText(f"{self.text}\n{later.text}", self.parts + later.parts)

    @property
    def tokens(self) -> int:
        """The estimated tokens of the whole."""
        return estimated_tokens(self.text)


def part(name: str, template: str, rank: int, values: Iterable[object] = (None,)) -> PromptPart:
    """A part whose items all have the same rank."""
    return PromptPart(name, template, tuple(Item(rank, value) for value in values))


# The text of a template for the values of the items that are shown.
Render = Callable[[str, Sequence[object]], str]


def fitted(parts: Sequence[PromptPart], budget: int, render: Render) -> PromptText:
    """The prompt of `parts`, in their order, with the items that fit `budget` tokens.

    An item that does not fit is left out; a later one that is shorter may still fit. Items of rank
    0 are in the prompt even if they alone exceed the budget.
    """
    texts = _Texts(parts, render)
    ranked = sorted(
        (item.rank, number, place)
        for number, part in enumerate(parts)
        for place, item in enumerate(part.items)
    )
    for rank, number, place in ranked:
        texts.add(number, place, None if rank == ALWAYS else budget)
    return texts.prompt()


class _Texts:
    """The texts of parts while items are added to them."""

    def __init__(self, parts: Sequence[PromptPart], render: Render) -> None:
        self._parts = parts
        self._render = render
        self._shown: list[list[int]] = [[] for _ in parts]
        self._texts = ["" for _ in parts]

    def add(self, number: int, place: int, budget: int | None) -> None:
        """Adds an item to a part, unless the whole would then exceed `budget`."""
        part, shown = self._parts[number], sorted([*self._shown[number], place])
        values = [part.items[at].value for at in shown]
        text = self._render(part.template, values).strip("\n")
        texts = [*self._texts[:number], text, *self._texts[number + 1 :]]
        if budget is None or estimated_tokens(_joined(texts)) <= budget:
            self._texts, self._shown[number] = texts, shown

    def prompt(self) -> PromptText:
        counts = tuple(
            PartCount(part.name, estimated_tokens(text), len(shown), len(part.items))
            for part, text, shown in zip(self._parts, self._texts, self._shown, strict=True)
        )
        return PromptText(_joined(self._texts), counts)


def _joined(texts: Iterable[str]) -> str:
    return "\n\n".join(text for text in texts if text) + "\n"
