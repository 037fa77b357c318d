"""The domain of a dimension: which values a case may give it, and which a plan may rely on."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    Tag,
    model_serializer,
    model_validator,
)

from evoengine.records import Frozen
from evoengine.task.yaml_source import MisplacedError

Extent = Annotated[int, Field(gt=0, strict=True)]  # true is no extent


class Domain(Frozen):
    """Some of the positive integers: those of `in`, or the multiples of `multiple_of` from `min` to
    `max`.
    """

    # `in` is a word of Python's grammar
    values: Annotated[tuple[Extent, ...], Field(min_length=1)] | None = Field(None, alias="in")
    multiple_of: Extent = 1
    min: Extent = 1
    max: Extent | None = None

    @model_validator(mode="after")
    def _some(self) -> Domain:
        stated = self.model_fields_set
        if not stated:
            raise ValueError("expected in, or some of min, max and multiple_of; int has no bounds")
        if self.values is not None and len(stated) > 1:
            raise MisplacedError("expected either in, or min, max and multiple_of", "in")
        if self.values is not None and len(set(self.values)) < len(self.values):
            raise MisplacedError(f"in: expected different ones, got {list(self.values)}", "in")
        last = self.max // self.multiple_of * self.multiple_of if self.max is not None else None
        if last is not None and last < self.min:
            raise MisplacedError(f"no number is {self.words()}", "max")
        return self

    @model_serializer(mode="wrap")
    def _as_written(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data: dict[str, Any] = plain(self)
        # a stored task is read as a file is
        values = data.pop("values", None) or data.pop("in", None)
        return {"in": values} if values is not None else data

    def allows(self, value: int) -> bool:
        """Whether a case may have this value."""
        if self.values is not None:
            return value in self.values
        return (
            value % self.multiple_of == 0
            and self.min <= value
            and (self.max is None or value <= self.max)
        )

    def words(self) -> str:
        """The domain as prompts and messages say it, e.g. `a multiple of 8 from 64 to 512`."""
        if self.values is not None:
            *others, last = map(str, self.values)
            return f"{', '.join(others)} or {last}" if others else last
        noun = f"a multiple of {self.multiple_of}" if self.multiple_of > 1 else "an integer"
        if self.max is None:
            return f"{noun} of at least {self.min}" if self.min > 1 else noun
        return f"{noun} from {self.min} to {self.max}"


def _kind(value: Any) -> str:
    return "domain" if isinstance(value, dict | Domain) else "type"


Dimension = Annotated[
    Annotated[Literal["int", "bool"], Tag("type")] | Annotated[Domain, Tag("domain")],
    Discriminator(_kind),
]


def allows(dimension: Dimension, value: int | bool) -> bool:
    """Whether a case may give `value` to this dimension or flag."""
    if dimension == "bool":
        return isinstance(value, bool)
    if isinstance(value, bool) or value <= 0:
        return False
    return dimension.allows(value) if isinstance(dimension, Domain) else True


def values_in_words(dimension: Dimension) -> str:
    """The values that a case may give to this dimension or flag, e.g. `a positive integer`."""
    if isinstance(dimension, Domain):
        return dimension.words()
    return "true or false" if dimension == "bool" else "a positive integer"


def label(dimension: Dimension) -> str:
    """The type of a dimension or flag, or its domain: `int`, `bool`, `64 or 128`."""
    return dimension.words() if isinstance(dimension, Domain) else dimension
