"""YAML whose every value knows its line and column.

Only plain data comes out: no tags, no anchors, no aliases, no duplicate keys.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import yaml
from pydantic import ValidationError

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Mark:
    """Where a value stands: line and column count from 1, start and end are offsets into the text."""

    line: int
    column: int
    start: int
    end: int


class YamlError(ValueError):
    """The text is not the YAML that is wanted; the message begins with file:line:column."""


@dataclass(frozen=True)
class YamlSource:
    """A parsed text: its data, and where each value stands."""

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
        """An error whose message says where `path` stands."""
        return YamlError(f"{self.at(path)}: {message}")

    def explain(self, error: ValidationError) -> YamlError:
        """The first complaint of pydantic, with its place in the text."""
        first = error.errors()[0]
        path: Path = tuple(part for part in first["loc"] if part != "[key]")
        dotted = ".".join(str(part) for part in path)
        message = first["msg"].removeprefix("Value error, ")
        if first["type"] == "extra_forbidden":
            message = "unknown key"
        elif first["type"] != "missing" and not isinstance(first["input"], dict | list):
            message = f"{message}, got {first['input']!r}"
        return self.error(path, f"{dotted}: {message}" if dotted else message)


def load(text: str, name: str, first_line: int = 1) -> YamlSource:
    """The data of one YAML document.

    `first_line` is the line of the file on which `text` begins. Raises YamlError.
    """
    builder = _Builder(name, first_line)
    try:
        root = yaml.compose(text, Loader=_Loader)
        data = builder.build(root, ()) if root is not None else None
    except yaml.MarkedYAMLError as error:
        raise YamlError(_explain_syntax(error, name, first_line)) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise YamlError(f"{name}: not YAML: {error}") from None
    return YamlSource(name, data, builder.marks)


def _explain_syntax(error: yaml.MarkedYAMLError, name: str, first_line: int) -> str:
    mark = error.problem_mark or error.context_mark
    place = f"{name}:{mark.line + first_line}:{mark.column + 1}" if mark else name
    return f"{place}: not YAML: {error.problem or error.context} (a value that begins with * & ! % @ ` or holds ': ' needs quotes)"


class _Loader(yaml.SafeLoader):
    """YAML's own loader, without aliases; numbers like 1e-3 are numbers."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise yaml.composer.ComposerError(None, None, "anchors and aliases are not used here", event.start_mark)
        return super().compose_node(parent, index)


# YAML 1.1 reads 1e-3 as text because it has no point; people write it as a number.
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9]+[eE][-+]?[0-9]+$"), list("-+0123456789"))


class _Builder:
    """Turns nodes into data and notes where each stands."""

    def __init__(self, name: str, first_line: int) -> None:
        self.name = name
        self.first_line = first_line
        self.marks: dict[Path, Mark] = {}
        self._scalars = yaml.constructor.SafeConstructor()

    def build(self, node: yaml.Node, path: Path) -> Any:
        start, end = node.start_mark, node.end_mark
        self.marks[path] = Mark(start.line + self.first_line, start.column + 1, start.index, end.index)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._scalar(node)

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = key_node.value
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a plain word", key_node.start_mark)
            if key in result:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} stands twice", key_node.start_mark)
            result[key] = self.build(value_node, (*path, key))
        return result

    def _scalar(self, node: yaml.Node) -> Any:
        kind = node.tag.removeprefix("tag:yaml.org,2002:")
        if kind == "float" and re.fullmatch(r"[-+]?[0-9]+[eE][-+]?[0-9]+", node.value):
            return float(node.value)
        if kind in ("int", "float", "bool", "null"):
            return self._scalars.construct_object(node)
        if kind in ("str", "timestamp", "value"):
            return node.value
        raise yaml.constructor.ConstructorError(None, None, f"tag {node.tag!r} is not used here", node.start_mark)
