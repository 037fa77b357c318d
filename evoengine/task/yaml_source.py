"""A YAML reader that records the line and column of every value.

It accepts only plain data: no tags, anchors, aliases or duplicate keys. Numbers mean what they
look like: 010 and 1:30, which YAML 1.1 reads as 8 and 90, stay text.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from reprlib import Repr
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from evoengine.errors import hint
from evoengine.task.names import PATTERN_RULES

Path = tuple[str | int, ...]

# Longer numbers stay text: no value here has more than 19 digits, and Python refuses to print
# numbers of more than 4300.
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9_]{0,24}|0x[0-9a-fA-F]{1,16})")

# an escape can spell half a surrogate pair, which no UTF-8 file can hold
_SURROGATE = re.compile("[\ud800-\udfff]")

_QUOTES = " (a value that begins with * & ! % @ ` or holds ': ' needs quotes)"


@dataclass(frozen=True)
class Mark:
    """The place of a value: line and column count from 1; start and end are offsets into the
    text.
    """

    line: int
    column: int
    start: int
    end: int


class YamlError(ValueError):
    """The text is not valid YAML or not the expected data; the message begins with its place."""


class MisplacedError(ValueError):
    """The value at `path`, relative to the model whose validator raises this, is wrong."""

    def __init__(self, message: str, *path: str | int) -> None:
        super().__init__(message)
        self.path = path


@contextmanager
def misplaced_under(*path: str | int, around: tuple[str, str] = ("", "")) -> Iterator[None]:
    """Raises a MisplacedError of the block with `path` before its own, and with its message between
    the two texts of `around`.
    """
    try:
        yield
    except MisplacedError as error:
        before, after = around
        raise MisplacedError(f"{before}{error}{after}", *path, *error.path) from None


@dataclass(frozen=True)
class YamlSource:
    """A parsed text: its data, and the place of each value."""

    name: str
    data: Any
    marks: dict[Path, Mark]

    def at(self, path: Path) -> str:
        """`file:line:column` of the value at `path`, or of the nearest value around it."""
        while path and path not in self.marks:
            path = path[:-1]
        mark = self.marks.get(path)
        return f"{self.name}:{mark.line}:{mark.column}" if mark else self.name

    def error(self, path: Path, message: str) -> YamlError:
        """An error whose message begins with the place of `path`."""
        return YamlError(f"{self.at(path)}: {message}")

    def explain(self, error: ValidationError, model: type[BaseModel]) -> YamlError:
        """The most helpful of pydantic's errors, with its place in the text.

        An unknown key comes first, because it is often the misspelling of a missing one.
        """
        complaints = error.errors()
        first = next(
            (item for item in complaints if item["type"] == "extra_forbidden"), complaints[0]
        )
        path = self._in_data(first["loc"], first["type"] in ("extra_forbidden", "missing"))
        message = pydantic_message(first)
        if first["type"] == "extra_forbidden":
            known = _known_keys(model, path[:-1])
            message = f"unknown key{hint(str(path[-1]), known) if known else ''}"
        elif first["type"] != "missing" and ", got " not in message:
            kind = (
                "mapping"
                if isinstance(first["input"], dict)
                else "list"
                if isinstance(first["input"], list)
                else ""
            )
            message += (
                f", got a {kind}"
                if kind and first["type"].endswith("_type")
                else ""
                if kind
                else f", got {shown(first['input'])}"
            )
        dotted = ".".join(
            str(part) if re.fullmatch(r"[\w.-]{1,40}", str(part)) else shown(part) for part in path
        )
        place = (*path, *getattr(first.get("ctx", {}).get("error"), "path", ()))
        return self.error(place, f"{dotted}: {message}" if dotted else message)

    def _in_data(self, loc: Path, is_about_a_key: bool) -> Path:
        """`loc` without the parts that name a type of a union instead of a place."""
        path: Path = ()
        for part in loc:
            if (*path, part) in self.marks:
                path = (*path, part)
        return (*path, loc[-1]) if is_about_a_key and path[-1:] != loc[-1:] else path


# by pydantic's type of error; https://docs.pydantic.dev/latest/errors/validation_errors/
_EXPECTED = {
    "missing": "this key is required",
    "dict_type": "expected a mapping",
    "model_type": "expected a mapping",
    "tuple_type": "expected a list",
    "list_type": "expected a list",
    "string_type": "expected text",
    "int_type": "expected a whole number",
    "int_parsing": "expected a whole number",
    "int_parsing_size": "expected a whole number of at most 19 digits",
    "int_from_float": "expected a whole number",
    "float_type": "expected a number",
    "float_parsing": "expected a number",
    "finite_number": "expected a finite number",
    "bool_type": "expected true or false",
    "bool_parsing": "expected true or false",
    "literal_error": "expected {expected}",
    "greater_than": "expected a number > {gt:g}",
    "greater_than_equal": "expected a number >= {ge:g}",
    "less_than": "expected a number < {lt:g}",
    "less_than_equal": "expected a number <= {le:g}",
    "too_short": "expected at least {min_length} in the list",
    "too_long": "expected at most {max_length} in the list",
    "string_too_long": "expected at most {max_length} characters",
}


def pydantic_message(complaint: Any) -> str:
    """The message for one of pydantic's errors, in our words; messages of our own validators are
    unchanged.
    """
    context = complaint.get("ctx", {})
    if "error" in context:
        return str(context["error"])
    if complaint["type"] == "string_pattern_mismatch":
        return f"expected {PATTERN_RULES.get(context['pattern'], context['pattern'])}"
    words = _EXPECTED.get(complaint["type"])
    return words.format(**context) if words else str(complaint["msg"])


def shown(value: Any) -> str:
    """`value` as messages quote it: short, on one line."""
    brief = Repr()
    brief.maxstring = brief.maxother = 80
    return brief.repr(value)


def _known_keys(model: type[BaseModel], path: Path) -> list[str]:
    """The keys that the mapping at `path` may have; empty if the types of `model` do not say."""
    inner: type[BaseModel] | None = model
    for part in path:
        if inner and part in inner.model_fields:
            inner = _model_in(inner.model_fields[str(part)].annotation)
    return [field.alias or key for key, field in inner.model_fields.items()] if inner else []


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_model_in(part) for part in get_args(annotation))
    return next((model for model in found if model), None)


def load(text: str, name: str, first_line: int = 1) -> YamlSource:
    """The data of one YAML document.

    `first_line` is the line of the file on which `text` begins. Raises YamlError.
    """
    places = _Places(text, name, first_line)
    builder = _Builder(places)
    try:
        root = yaml.compose(text, Loader=_Loader)
        data = builder.build(root, ()) if root is not None else None
    except _RefusedError as error:
        raise YamlError(f"{places.at(error.index)}: {error.problem}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = places.at(mark.index) if mark else name
        raise YamlError(f"{place}: not YAML: {error.problem or error.context}{_QUOTES}") from None
    except yaml.reader.ReaderError as error:
        raise YamlError(
            f"{places.at(error.position)}: not YAML: character {chr(error.character)!r} is not"
            " allowed"
        ) from None
    except RecursionError:
        raise YamlError(f"{name}:{first_line}:1: not YAML: nested too deeply") from None
    except (
        yaml.YAMLError,
        ValueError,
    ) as error:  # ValueError: an escape such as \U00110000 that names no character
        raise YamlError(f"{name}:{first_line}:1: not YAML: {error}") from None
    return YamlSource(name, data, builder.marks)


class _Places:
    """Lines and columns of a text as editors count them; YAML would also end lines at U+0085 and
    U+2028.
    """

    def __init__(self, text: str, name: str, first_line: int) -> None:
        self.name = name
        self.first_line = first_line
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def mark(self, start: int, end: int) -> Mark:
        """The place of the text from `start` to `end`."""
        line = bisect_right(self._starts, start) - 1
        return Mark(line + self.first_line, start - self._starts[line] + 1, start, end)

    def at(self, index: int) -> str:
        """`file:line:column` of a character."""
        mark = self.mark(index, index)
        return f"{self.name}:{mark.line}:{mark.column}"


class _RefusedError(yaml.MarkedYAMLError):
    """The text is YAML, but uses a feature that is not allowed here."""

    def __init__(self, problem: str, mark: yaml.Mark) -> None:
        super().__init__(None, None, problem, mark)
        self.index = mark.index


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader without aliases and tags, and with 1e-3 read as a number."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]  # the stubs leave it out
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise _RefusedError(f"anchors and aliases are not allowed{_QUOTES}", event.start_mark)
        if getattr(event, "tag", None) is not None:
            raise _RefusedError(f"tag {shown(event.tag)} is not allowed{_QUOTES}", event.start_mark)
        return super().compose_node(parent, index)


# YAML 1.1 reads 1e-3 (no point) and 1.5e3 (no sign) as text; people write them as numbers.
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]+$"),
    list("-+0123456789"),
)


class _Builder:
    """Turns YAML nodes into data and records the place of each."""

    def __init__(self, places: _Places) -> None:
        self.places = places
        self.marks: dict[Path, Mark] = {}
        self._scalars = yaml.constructor.SafeConstructor()

    def build(self, node: yaml.Node, path: Path) -> Any:
        """The data of `node`, whose place is recorded under `path`."""
        self.marks[path] = self.places.mark(node.start_mark.index, node.end_mark.index)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._scalar(node)

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise _RefusedError("a key must be a plain word", key_node.start_mark)
            key = _text(key_node)
            if key in result:
                raise _RefusedError(f"key {shown(key)} appears twice", key_node.start_mark)
            result[key] = self.build(value_node, (*path, key))
        return result

    def _scalar(self, node: yaml.Node) -> Any:
        kind = node.tag.removeprefix("tag:yaml.org,2002:")
        if kind == "int":
            return int(node.value.replace("_", ""), 0) if _INT.fullmatch(node.value) else node.value
        if kind == "float":
            return _float(node.value)
        return self._scalars.construct_object(node) if kind in ("bool", "null") else _text(node)


def _text(node: yaml.Node) -> str:
    text: str = node.value
    if bad := _SURROGATE.search(text):
        raise _RefusedError(f"character {bad[0]!r} is not allowed", node.start_mark)
    return text


def _float(text: str) -> float | str:
    """The finite number that `text` spells; .inf, 1e999 and 1:30.5 stay text."""
    try:
        number = float(text.replace("_", ""))
    except ValueError:
        return text
    return number if math.isfinite(number) else text
